//! The n-th call of each system call of a meeting fails, for every n: strace sees to it.

use std::env;
use std::process::Command;

use super::*;

#[test]
fn every_call_may_fail() {
    let _alone = alone();
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: no strace");
        return;
    }
    let (mut failed, mut met) = (0, 0);
    for call in CALLS {
        for nth in 1.. {
            match run(call, nth) {
                Hit::Before => {}
                Hit::Meeting(both_met) => {
                    failed += 1;
                    met += usize::from(both_met);
                }
                Hit::After => break,
            }
        }
    }
    println!("{failed} calls failed; met all the same in {met}");
    assert!(
        failed >= CALLS.len() - 1,
        "each is made at least once, but of the two that open"
    );
}

/// Where the failure was.
enum Hit {
    Before,
    /// In the meeting; whether it was one all the same.
    Meeting(bool),
    /// After it, or nowhere.
    After,
}

fn run(call: &str, nth: u32) -> Hit {
    let error = if nth.is_multiple_of(2) { "EPERM" } else { "ENOMEM" };
    let inject = format!("inject={call}:error={error}:when={nth}");
    let output = Command::new("strace")
        .args(["-f", "-e", &format!("trace={call},getppid"), "-e", &inject])
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", "injection::one_meeting", "--nocapture"])
        .env(INJECTION, "1")
        .output()
        .expect("strace");
    let log = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let injected = log.find("(INJECTED)");
    let mut marks = log.match_indices("getppid()").map(|(at, _)| at);
    let (Some(at), begin, end) = (injected, marks.next(), marks.next()) else {
        assert!(output.status.success(), "{text}{log}");
        return Hit::After;
    };
    if begin.is_none_or(|begin| at < begin) {
        return Hit::Before;
    }
    if end.is_some_and(|end| at > end) {
        return Hit::After;
    }
    assert!(output.status.success(), "{call} {nth}: {text}{log}");
    Hit::Meeting(text.contains("both met"))
}

#[test]
fn one_meeting() {
    if env::var_os(INJECTION).is_none() {
        println!("skipped: it is for a process of its own, which every_call_may_fail starts");
        return;
    }
    let _alone = alone();
    let mut ends = Ends::new();
    mark();
    ends.finish(shm());
    mark();
    let met = ends.streams().is_some();
    let reasons = [ends.reason(0), ends.reason(1)];
    assert!(met || reasons.iter().all(Option::is_some), "{reasons:?}");
    println!("{}", if met { "both met" } else { "none met" });
    ends.assert_untouched();
}

/// A call that the log shows and nothing else makes.
fn mark() {
    let _ = std::os::unix::process::parent_id();
}

/// All but `close`, which cannot fail so that the descriptor stays.
const CALLS: [&str; 20] = [
    "accept4",
    "bind",
    "connect",
    "fcntl",
    "fstat",
    "fstatfs",
    "ftruncate",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "memfd_create",
    "mmap",
    "?open",
    "openat",
    "recvfrom",
    "recvmsg",
    "sendmsg",
    "sendto",
    "socket",
];
const INJECTION: &str = "SOVIA_MEET_INJECTION";
