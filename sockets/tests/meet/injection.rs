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
    let log = run(None).1;
    let mark = log.lines().find_map(|line| line.split_once("getppid()"));
    // Says which thread: strace counts the calls of each.
    let thread = mark.expect("the meeting's mark").0;
    let calls: Vec<_> = log
        .lines()
        .filter_map(|line| line.strip_prefix(thread))
        .collect();
    let mut parts = calls.split(|call| call.starts_with("getppid()"));
    let (Some(before), Some(meeting)) = (parts.next(), parts.next()) else {
        panic!("two marks: {log}");
    };
    let (mut failed, mut met) = (0, 0);
    for call in CALLS {
        let first = count(before, call) + 1;
        for nth in first..first + count(meeting, call) {
            let (text, log) = run(Some((call, nth)));
            assert!(log.contains("(INJECTED)"), "{call} {nth}: {log}");
            failed += 1;
            met += usize::from(text.contains("both met"));
        }
    }
    println!("{failed} calls failed; met all the same in {met}");
    assert!(
        failed > CALLS.len(),
        "each is made at least once, but of the two that open"
    );
}

fn count(calls: &[&str], call: &str) -> usize {
    let start = format!("{}(", call.trim_start_matches('?'));
    calls.iter().filter(|call| call.starts_with(&start)).count()
}

/// What one meeting says, and strace of it, if the n-th of a call fails.
fn run(fails: Option<(&str, usize)>) -> (String, String) {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", &format!("trace=getppid,{}", CALLS.join(","))]);
    if let Some((call, nth)) = fails {
        let error = if nth.is_multiple_of(2) {
            "EPERM"
        } else {
            "ENOMEM"
        };
        strace.args(["-e", &format!("inject={call}:error={error}:when={nth}")]);
    }
    let output = strace
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", "injection::one_meeting", "--nocapture"])
        .env(INJECTION, "1")
        .output()
        .expect("strace");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{fails:?}: {text}{log}");
    (text, log)
}

#[test]
fn one_meeting() {
    if env::var_os(INJECTION).is_none() {
        println!("skipped: it is for a process of its own, which every_call_may_fail starts");
        return;
    }
    let _alone = alone();
    let mut ends = Ends::new();
    // The n-th call of each thread fails: ours come after all that load and start the program.
    for _ in 0..64 {
        fs::read("/dev/null").expect("read");
        let memory = shm().create(sys::stream::LEN).expect("memory");
        Stream::map(memory, sys::stream::Side::A).expect("map");
    }
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
