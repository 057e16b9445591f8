//! What is particular about some programs, and the differences that are known. A program that is not named here has one
//! connection, which is upgraded when it is warm and both ends are under sovia.

use crate::ends::Combination;

/// Whether a warm connection between two ends under sovia is upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// The library must say so, or the test would pass without having met the ring.
    Expected,
    /// It is not, and why.
    StaysOnTcp(&'static str),
    /// There is no TCP connection to warm, and why; it runs cold only.
    NoConnection(&'static str),
}

/// What is particular about a program.
#[derive(Clone, Copy, Debug)]
pub struct Particular {
    /// `FAMILY/NAME`.
    pub program: &'static str,
    /// What becomes of its connection.
    pub upgrade: Upgrade,
    /// It goes on as a program without a dynamic linker.
    pub static_twin: bool,
}

/// A difference that we know and accept. It is printed when it shows, and the test fails when it no longer does.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// `FAMILY/NAME`.
    pub program: &'static str,
    /// Where it shows; warm only, unless `cold` as well.
    pub combination: Combination,
    /// It shows on a connection that is not upgraded yet, too.
    pub cold: bool,
    /// Why it is so.
    pub reason: &'static str,
}

/// Rows for the programs that need one.
pub const PARTICULARS: &[Particular] = &[
    no_connection("connect/errors", "every call fails"),
    no_connection("connect/privileged_port", "nobody listens"),
    no_connection("connect/to_nobody", "every connect fails"),
    no_connection("threads/first_sockets", "sockets that go nowhere"),
    no_connection("connect/refused", "nobody listens; what follows is short"),
    no_connection("connect/shut_listener", "nobody connects"),
    no_connection("connect/udp", "datagrams"),
    no_connection("connect/unix_listener", "Unix sockets"),
    no_connection("connect/unix_pair", "Unix sockets"),
    no_connection(
        "connect/itself",
        "within one process; it does its own warming",
    ),
    no_connection("connect/backlog", "short connections stay on TCP"),
    no_connection("connect/without_waiting", "short connections stay on TCP"),
    no_connection("epoll/listener", "within its own turns"),
    twin("exec/epoll_static"),
    twin("exec/silent"),
    twin("exec/silent_both"),
    twin("exec/silent_closes"),
    twin("exec/silent_cut"),
    twin("exec/silent_execs"),
    twin("exec/silent_exits"),
    twin("exec/silent_killed"),
    twin("exec/silent_shuts_down"),
    twin("exec/posix_spawn_elsewhere"),
    twin("exec/static_child"),
    twin("exec/static_close"),
    twin("exec/static_end"),
    twin("exec/static_program"),
    stays_on_tcp(
        "fork/passed_on",
        "two processes have it, one of which got it in a message",
    ),
    stays_on_tcp("limits/ioctl_refused", "what is unread cannot be asked"),
    stays_on_tcp(
        "limits/low_from_the_start",
        "there is no room for another file",
    ),
    stays_on_tcp(
        "options/asked_before",
        "an option of the socket's is only TCP's to honour",
    ),
    stays_on_tcp(
        "options/sigio_from_before",
        "the kernel's signals come with the kernel's bytes",
    ),
    no_connection("shutdown/not_connected", "nothing is connected"),
];

const fn twin(program: &'static str) -> Particular {
    Particular {
        program,
        upgrade: Upgrade::Expected,
        static_twin: true,
    }
}

const fn stays_on_tcp(program: &'static str, reason: &'static str) -> Particular {
    Particular {
        program,
        upgrade: Upgrade::StaysOnTcp(reason),
        static_twin: false,
    }
}

const fn no_connection(program: &'static str, reason: &'static str) -> Particular {
    Particular {
        program,
        upgrade: Upgrade::NoConnection(reason),
        static_twin: false,
    }
}

/// Differences between the kernel and sovia.
pub const KNOWN: &[Known] = &[
    Known {
        program: "fork/epoll_inherited",
        combination: Combination::SOVIA,
        cold: false,
        reason: "after a fork each process keeps to itself what it waits for on connections with rings",
    },
    Known {
        program: "exec/silent_cut",
        combination: Combination::SOVIA,
        cold: false,
        reason: "what had not moved to TCP yet goes with the process that is killed: a reset, which is an error, and not an end",
    },
    Known {
        program: "exec/silent_killed",
        combination: Combination::SOVIA,
        cold: false,
        reason: "what it had sent was in its memory and not in the kernel's, and who left could not take it along: a reset, which is an error, and not an end",
    },
    Known {
        program: "transfer/from_read_only_memory",
        combination: Combination::SOVIA,
        cold: false,
        reason: "whether memory can be written would be a question to the kernel for each receive; our copy meets SIGSEGV where the kernel says EFAULT",
    },
];
