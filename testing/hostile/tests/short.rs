//! What a connection that is soon over costs beside the program's own system calls: each would be noticed.

use std::collections::BTreeMap;
use std::process::Command;

use hostile::program::{Program, library};

#[test]
fn whose_calls_wait() {
    costs_as_little_as_natively("blocking");
}

#[test]
fn in_a_set() {
    costs_as_little_as_natively("epoll");
}

fn costs_as_little_as_natively(how: &str) {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: no strace");
        return;
    }
    let program = Program::compile("short");
    let [native, ours] = [false, true].map(|preloaded| calls(&program, how, preloaded));
    println!("{how}: {native:?}");
    assert_eq!(ours, native);
}

/// The system calls of ten connections, but for those that look whether something has come.
fn calls(program: &Program, how: &str, preloaded: bool) -> BTreeMap<String, usize> {
    let mut strace = Command::new("strace");
    if preloaded {
        strace.arg(format!("-ELD_PRELOAD={}", library().display()));
    }
    let output = strace.arg(program.path()).arg(how).output();
    let output = output.expect("strace");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let mut parts = log.split("getppid()");
    let counted = parts.nth(1).filter(|_| parts.next().is_some());
    let counted = counted.expect("between two marks");
    let mut calls = BTreeMap::new();
    for line in counted.lines() {
        if let Some((call, _)) = line.split_once('(')
            && !LOOKS.contains(&call)
        {
            *calls.entry(call.to_owned()).or_default() += 1;
        }
    }
    calls
}

/// How often something has to be looked for depends on the moment.
const LOOKS: [&str; 3] = ["epoll_wait", "epoll_pwait", "sched_yield"];
