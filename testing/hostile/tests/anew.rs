//! Ends that missed each other, because one process became two in the middle of their meeting, meet anew.

use std::env;
use std::fs;
use std::process;

use hostile::program::Program;

#[test]
fn after_a_child_that_was_soon_gone() {
    both_are_upgraded("0");
}

#[test]
fn after_a_child_that_kept_the_connection_for_a_while() {
    both_are_upgraded("100");
}

fn both_are_upgraded(keeps: &str) {
    let program = Program::compile("anew");
    let trace = env::temp_dir().join(format!("sovia-anew-{keeps}-{}", process::id()));
    let output = program
        .preloaded()
        .arg(keeps)
        .env("SOVIA_TRACE_UPGRADE", &trace)
        .output()
        .expect("it was compiled");
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {wrong}", output.status);
    let upgraded = fs::read_to_string(&trace).unwrap_or_default();
    // A later one appends.
    let _ = fs::remove_file(&trace);
    assert_eq!(upgraded.lines().count(), 2, "{upgraded}");
}
