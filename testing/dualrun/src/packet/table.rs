//! What differs over SOVIA's packets, by reason.

use crate::ends::End;

/// Programs that do something else over packets than over TCP, for one reason.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Why it is so.
    pub reason: &'static str,
    /// `FAMILY/NAME`, or `FAMILY/NAME client` where only that end shows it.
    pub programs: &'static [&'static str],
}

/// Why the program does something else when that end shows the behaviour; `None` if it should do the same.
pub fn reason(program: &str, subject: End) -> Option<&'static str> {
    find(GROUPS, program, subject)
}

/// Why what the program does differs now and then.
pub fn unsteady(program: &str, subject: End) -> Option<&'static str> {
    find(UNSTEADY, program, subject)
}

fn find(groups: &[Group], program: &str, subject: End) -> Option<&'static str> {
    let with_end = format!("{program} {}", subject.name());
    let group = groups.iter().find(|group| {
        let mut names = group.programs.iter();
        names.any(|name| *name == program || *name == with_end)
    });
    group.map(|group| group.reason)
}

/// The groups.
pub const GROUPS: &[Group] = &[
    Group {
        reason: "no connection of the program's is TCP that it opens by socket()",
        programs: &[
            "connect/udp",
            "connect/unix_listener",
            "connect/unix_pair",
            "raw/accept",
        ],
    },
    Group {
        reason: "a program that another becomes has a Unix socket, which has no option of TCP's; where that one is not preloaded nobody could answer for it",
        programs: &["exec/options_kept"],
    },
    Group {
        reason: "what is relayed and breaks while nothing lies in the pair shows its end, and no error",
        programs: &["exec/epoll_static"],
    },
    Group {
        reason: "bytes that go over to the pair are an edge for a set that has told of them",
        programs: &["exec/epoll_told"],
    },
    Group {
        reason: "what the NIC of a process that is killed has not taken yet is lost, and the peer is told of a reset",
        programs: &["kill/itself"],
    },
    Group {
        reason: "a pair of Unix sockets shows an urgent byte as something to read, too",
        programs: &["wait/select_end"],
    },
    Group {
        reason: "no IP packets that a filter, a pace or a lent page would count",
        programs: &[
            "options/asked_before",
            "options/filter",
            "options/pacing",
            "options/zerocopy",
            "options/zerocopy_receive",
        ],
    },
    Group {
        reason: "SO_TYPE is SOCK_VIA, SO_PROTOCOL 0, and there is no option of IP's to ask for",
        programs: &["options/of_a_socket"],
    },
    Group {
        reason: "what is sent has a place at the peer already, so that a full connection has nothing left to send",
        programs: &["options/siocoutq"],
    },
    Group {
        reason: "a NIC needs system calls that the program has forbidden itself",
        programs: &["raw/seccomp"],
    },
    Group {
        reason: "what an instruction of the program's own does to its descriptors is not seen",
        programs: &["raw/closed_past"],
    },
    Group {
        reason: "a socket takes three descriptors, so that one is not enough to accept one",
        programs: &["limits/low_limit"],
    },
    Group {
        reason: "a socket has one VI, and a VI is not connected to itself",
        programs: &["connect/itself"],
    },
    Group {
        reason: "a thread that has a table of descriptors of its own is not told apart from the others",
        programs: &["threads/table_of_its_own"],
    },
    Group {
        reason: "a VI is connected before it carries anything: nobody connects by sending",
        programs: &["connect/fastopen"],
    },
    Group {
        reason: "to poll a socket that is nowhere yet has no POLLHUP: its stand-in is one of a pair of Unix sockets, which is connected",
        programs: &["shutdown/not_connected"],
    },
    Group {
        reason: "our copy meets SIGSEGV where the kernel says EFAULT",
        programs: &["transfer/from_read_only_memory"],
    },
];

/// What shows now and then, so that a run says nothing about it.
pub const UNSTEADY: &[Group] = &[
    Group {
        reason: "sockets of IPv6 have no addresses but ::, ::1 and mapped ones, and whether there is another depends on the host",
        programs: &["connect/link_local"],
    },
    Group {
        reason: "an epoll_wait that does not wait finds nothing now and then, though bytes are there",
        programs: &["signals/longjmp_epoll"],
    },
    Group {
        reason: "a connection is its process's: a child that shares memory and table with it is not told apart",
        programs: &["fork/shared_memory_or_table"],
    },
    Group {
        reason: "a child that has a copy of the connection does not keep it open: the parent's close shows at once, or later",
        programs: &["kill/full_sender_waits"],
    },
    Group {
        reason: "a shutdown of both sides of a full connection shows room a moment before the end",
        programs: &["shutdown/wakes_sender"],
    },
];
