//! Why a process cannot be looked at.

use std::fs;
use std::io;

use rustix::process::geteuid;

use crate::error::Error;

/// What to say of `error`, with which a look at a process ended.
pub(super) fn unseen(pid: u32, error: io::Error) -> Error {
    let source = match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("no such process"),
        io::ErrorKind::PermissionDenied => io::Error::other(denied(pid)),
        _ => error,
    };
    Error::File {
        path: format!("process {pid}"),
        source,
    }
}

/// What `/proc` shows of a process to everybody.
fn denied(pid: u32) -> &'static str {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    reason(&String::from_utf8_lossy(&status), geteuid().as_raw())
}

fn reason(status: &str, me: u32) -> &'static str {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().split_ascii_whitespace()
    };
    let me = me.to_string();
    let mut users = field("Uid:").peekable();
    if users.peek().is_none() || users.any(|user| user != me) {
        return "it is another user's, whose connections only root may see";
    }
    match field("State:").next() {
        Some("Z" | "X") => "it has ended, and has nothing any more",
        _ => "it lets nobody look at it but root (prctl(2), PR_SET_DUMPABLE)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_it_is_decides_first() {
        let status = |state: &str, users: &str| {
            format!("Name:\tx\nState:\t{state}\nPid:\t7\nUid:\t{users}\nGid:\t1\t1\t1\t1\n")
        };
        for (state, users, said) in [
            ("S (sleeping)", "1000\t1000\t1000\t1000", "it lets nobody"),
            ("Z (zombie)", "1000\t1000\t1000\t1000", "it has ended"),
            ("Z (zombie)", "0\t0\t0\t0", "it is another user's"),
            // As a setuid program has them.
            ("S (sleeping)", "1000\t0\t0\t0", "it is another user's"),
        ] {
            let found = reason(&status(state, users), 1000);
            assert!(found.starts_with(said), "{state}, {users}: {found}");
        }
        assert!(reason("", 1000).starts_with("it is another user's"));
    }
}
