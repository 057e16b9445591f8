//! Who waits for room on a ring sleeps until there is some, though the receiver has sent nothing since there are rings.

use std::env;
use std::fs;
use std::process;

use hostile::program::Program;

#[test]
fn in_poll() {
    is_slept_for("poll");
}

#[test]
fn in_epoll() {
    is_slept_for("epoll");
}

#[test]
fn in_send() {
    is_slept_for("send");
}

fn is_slept_for(how: &str) {
    let program = Program::compile("room");
    let trace = env::temp_dir().join(format!("sovia-room-{how}-{}", process::id()));
    let output = program
        .preloaded()
        .arg(how)
        .env("SOVIA_TRACE_UPGRADE", &trace)
        .output()
        .expect("it was compiled");
    // A later one appends.
    fs::remove_file(&trace).expect("both ends were upgraded");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    let woken = said.trim_end().strip_prefix("woken ");
    let woken = woken.and_then(|n| n.parse::<u32>().ok()).expect("a number");
    // Of naps there would be one for each millisecond or two of the receiver's 200, and some ten on a host that is very busy.
    assert!(woken <= 4, "{said}");
}
