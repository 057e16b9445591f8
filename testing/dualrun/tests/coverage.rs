//! The programs together call everything that the library takes, by every name that a compiler gives it.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;

use dualrun::compile::{Build, Sockets, compile};
use dualrun::library;
use dualrun::packet::table as packet;
use dualrun::program::Program;
use dualrun::table;

/// What a plain program calls.
const PLAIN: &[&str] = &[
    "__clone",
    "__close",
    "__connect",
    "__dup2",
    "__fcntl",
    "__fork",
    "__poll",
    "__read",
    "__select",
    "__send",
    "__sysv_signal",
    "__write",
    "_longjmp",
    "accept",
    "accept4",
    "bind",
    "bsd_signal",
    "close",
    "close_range",
    "closefrom",
    "connect",
    "copy_file_range",
    "daemon",
    "daemon",
    "dprintf",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execveat",
    "execvp",
    "execvpe",
    "fcntl",
    "fdopen",
    "fexecve",
    "fork",
    "forkpty",
    "getpeername",
    "getsockname",
    "getsockopt",
    "ioctl",
    "listen",
    "login_tty",
    "longjmp",
    "poll",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "ppoll",
    "pread",
    "preadv",
    "preadv2",
    "pselect",
    "pwrite",
    "pwritev",
    "pwritev2",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "select",
    "send",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "sigaction",
    "siglongjmp",
    "signal",
    "sigset",
    "sockatmark",
    "socket",
    "socketpair",
    "splice",
    "ssignal",
    "syscall",
    "system",
    "sysv_signal",
    "tee",
    "unshare",
    "vfork",
    "vmsplice",
    "write",
    "writev",
];

/// What a fortified program, with large files, calls instead.
const FORTIFIED: &[&str] = &[
    "__dprintf_chk",
    "__fdelt_chk",
    "__longjmp_chk",
    "__poll_chk",
    "__ppoll_chk",
    "__pread64_chk",
    "__read_chk",
    "__recv_chk",
    "__recvfrom_chk",
    "fcntl64",
    "preadv64",
    "preadv64v2",
    "pwrite64",
    "pwritev64",
    "pwritev64v2",
    "sendfile64",
];

#[test]
fn every_call_has_a_program() {
    assert_eq!(missing(Build::Plain, PLAIN), Vec::<&str>::new());
}

#[test]
fn every_alias_has_a_program() {
    assert_eq!(missing(Build::Fortified, FORTIFIED), Vec::<&str>::new());
}

#[test]
fn every_row_has_a_program_and_a_reason() {
    let programs = Program::all().expect("the folder of programs");
    let rows = table::PARTICULARS.iter().map(|row| row.program);
    for named in rows.chain(table::KNOWN.iter().map(|known| known.program)) {
        assert!(
            programs.iter().any(|program| program.path == named),
            "table.rs names {named}, which is not there"
        );
    }
    let groups = || {
        let differing = packet::GROUPS.iter().chain(packet::UNSTEADY);
        differing.chain(packet::NOT_APPLICABLE)
    };
    for named in packet::OVER_IWARP {
        assert!(
            programs.iter().any(|program| program.path == *named),
            "packet/table.rs names {named}, which is not there"
        );
    }
    let mut listed = BTreeSet::new();
    for named in groups().flat_map(|group| group.programs) {
        let (path, end) = named.split_once(' ').unwrap_or((named, "client"));
        assert!(
            programs.iter().any(|program| program.path == path)
                && ["client", "server"].contains(&end),
            "packet/table.rs names {named}, which is not there"
        );
        assert!(listed.insert(named), "packet/table.rs names {named} twice");
    }
    assert!(groups().all(|group| !group.reason.is_empty()));
    assert!(table::KNOWN.iter().all(|known| !known.reason.is_empty()));
}

/// The names that no program takes from a library.
fn missing(build: Build, names: &'static [&'static str]) -> Vec<&'static str> {
    let called = called(build);
    let absent = |name: &&&str| !called.contains(**name);
    names.iter().filter(absent).copied().collect()
}

fn called(build: Build) -> BTreeSet<String> {
    let target = library::target_folder().expect("a test of cargo's");
    let programs = Program::all().expect("the folder of programs");
    let some = programs.len().div_ceil(4);
    thread::scope(|scope| {
        let parts: Vec<_> = programs
            .chunks(some)
            .map(|part| {
                let target = &target;
                scope.spawn(move || {
                    let binaries: Vec<_> = part
                        .iter()
                        .map(|program| {
                            compile(program, build, Sockets::Tcp, target).expect("it compiles")
                        })
                        .collect();
                    let nm = Command::new("nm")
                        .args(["--dynamic", "--undefined-only", "--format=just-symbols"])
                        .args(binaries)
                        .output()
                        .expect("nm of binutils");
                    assert!(nm.status.success(), "{nm:?}");
                    String::from_utf8_lossy(&nm.stdout).into_owned()
                })
            })
            .collect();
        parts
            .into_iter()
            .flat_map(|part| {
                let text = part.join().expect("the thread");
                text.lines()
                    .map(|line| line.split('@').next().unwrap_or(line).to_owned())
                    .collect::<Vec<_>>()
            })
            .collect()
    })
}
