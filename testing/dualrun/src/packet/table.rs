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

/// Why the program opens no TCP socket that could be of type `SOCK_VIA`: its run says nothing about packets.
pub fn not_applicable(program: &str) -> Option<&'static str> {
    let group = NOT_APPLICABLE
        .iter()
        .find(|group| group.programs.contains(&program));
    group.map(|group| group.reason)
}

fn find(groups: &[Group], program: &str, subject: End) -> Option<&'static str> {
    let with_end = format!("{program} {}", subject.name());
    let group = groups.iter().find(|group| {
        let mut names = group.programs.iter();
        names.any(|name| *name == program || *name == with_end)
    });
    group.map(|group| group.reason)
}

/// Why what the program asks for is nothing that a socket over a VI could have.
pub fn of_tcp_alone(program: &str, subject: End) -> Option<&'static str> {
    find(OF_TCP_ALONE, program, subject)
}

/// Programs that have nothing over packets that could differ.
pub const NOT_APPLICABLE: &[Group] = &[
    Group {
        reason: "it opens no TCP socket",
        programs: &["connect/udp", "connect/unix_listener", "connect/unix_pair"],
    },
    Group {
        reason: "it opens its TCP sockets by syscall(), where programs/via.c does not stand",
        programs: &["raw/accept"],
    },
];

/// Programs about packets of IP, of which a socket over a VI sends none: they run, and see that there are none.
pub const OF_TCP_ALONE: &[Group] = &[
    Group {
        reason: "it asks whether TCP carries what is sent at a rate, or past a filter of packets",
        programs: &["options/asked_before", "options/pacing"],
    },
    Group {
        reason: "it has a filter drop packets, for TCP to send them again: a VI delivers each message once, and has no filters",
        programs: &["options/filter"],
    },
    Group {
        reason: "it asks when packets of TCP's leave",
        programs: &["options/tx_stamps"],
    },
    Group {
        reason: "it has the kernel end a connection of TCP's, as `ss -K` does",
        programs: &["kill/by_somebody_else"],
    },
    Group {
        reason: "it maps a socket, for TCP to put pages of a network card's there",
        programs: &["options/zerocopy_receive"],
    },
];

/// Programs that run over `iwarp`, too: about handlers and cancellation, which meet other sleeps there. `signals/close_in_handler` listens at both ends, which one NIC's
/// port has no room for.
pub const OVER_IWARP: &[&str] = &[
    "signals/accept",
    "signals/cancel",
    "signals/cancel_blocked",
    "signals/cancel_then_close",
    "signals/eintr_poll",
    "signals/eintr_recv",
    "signals/eintr_send",
    "signals/handler_other_socket",
    "signals/handler_recv_interrupted",
    "signals/handler_same_socket",
    "signals/longjmp",
    "signals/longjmp_busy",
    "signals/longjmp_epoll",
    "signals/longjmp_shared",
    "signals/none_elsewhere",
    "signals/resethand",
    "signals/restart_partial",
    "signals/restart_recv",
    "signals/restart_send",
    "signals/setcontext_busy",
    "signals/sigprocmask_kept",
];

/// The groups.
pub const GROUPS: &[Group] = &[
    Group {
        reason: "the last program that the process becomes is not preloaded, and asks the kernel for options of TCP's: what is at the number then is a Unix socket, which has none",
        programs: &["exec/options_kept"],
    },
    Group {
        reason: "what a set has told of by an edge goes over to the pair, where it is new to the kernel: no call puts bytes into a socket without an edge, or takes one back from a set",
        programs: &["exec/epoll_told"],
    },
    Group {
        reason: "the VI is of the process that becomes another program, and a peer that makes no call within two seconds does not come to the new one",
        programs: &[
            "exec/silent",
            "exec/silent_both",
            "exec/silent_execs",
            "exec/silent_shuts_down",
        ],
    },
    Group {
        reason: "the last bytes wait to be combined, in the memory of the process that is killed: they go with it, and the peer, which cannot know whether there were some, is told of a reset",
        programs: &["kill/itself"],
    },
    Group {
        reason: "what a process that is killed had not given to the peer's NIC goes with it, and the peer is told of a reset",
        programs: &["kill/full_sender_killed"],
    },
    Group {
        reason: "what stands in for a connection is a Unix socket, of which the kernel does not say how much has not been sent; SIOCOUTQ is answered",
        programs: &["options/siocoutqnsd"],
    },
    Group {
        reason: "a time-out of less than no time is none",
        programs: &["options/timeo_passed"],
    },
    Group {
        reason: "the kernel shows the urgent byte of a Unix socket as something to read, too, and a program that waits for other bytes cannot be put to sleep by another rule than the kernel's",
        programs: &["options/rcvlowat_after_urgent", "wait/select_end"],
    },
    Group {
        reason: "a stand-in cannot show POLLERR while it is connected, by which the kernel tells that memory is free again: so SO_ZEROCOPY is refused, as by a kernel without it",
        programs: &["options/zerocopy", "shutdown/epipe_by_flags"],
    },
    Group {
        reason: "an urgent byte that was taken out of band is no longer in the Unix socket, where TCP has it until a receive passes the mark: a close finds nothing unread",
        programs: &["flags/oob_taken"],
    },
    Group {
        reason: "an end that is shut both ways says no more than that it sends nothing: what still comes waits in its window, and a sender for the window, until it is closed",
        programs: &["shutdown/rdwr_ends_sender", "shutdown/rdwr_then_data"],
    },
    Group {
        reason: "what the program forbids itself the NIC needs until the end of the process, to wait, to wake and to close",
        programs: &["raw/seccomp"],
    },
    Group {
        reason: "what is unread is known without a system call, which a filter would refuse",
        programs: &["limits/ioctl_refused"],
    },
    Group {
        reason: "a socket that an instruction of the program's own makes is TCP's, and the listener that it looks for is not",
        programs: &["raw/replaced_past"],
    },
    Group {
        reason: "a socket has two descriptors of ours beside the program's, and the kernel gives none past the limit: where it leaves one number there is none for those",
        programs: &["limits/all_numbers", "limits/low_limit"],
    },
    Group {
        reason: "a connection has memory of the NIC's, of which a program has none that may have no more address space, nor a process the thread that relays",
        programs: &["exec/low_address_space", "limits/address_space"],
    },
    Group {
        reason: "a socket has one VI, a connection of VIA's has two ends, and nobody listens: TCP connects a socket to itself because both ends of a simultaneous open are that socket",
        programs: &["connect/itself"],
    },
    Group {
        reason: "a socket that is not connected yet a child of a fork can only close: its VI would be of the parent's NIC",
        programs: &["fork/socket_made_before"],
    },
    Group {
        reason: "the peer makes no call on the connection, in which it would take in more than the window has",
        programs: &[
            "epoll/edge_of_room_after_poll",
            "transfer/written_before_it_is_read",
            "wait/written_before_it_is_read",
        ],
    },
    Group {
        reason: "our copy meets SIGSEGV where the kernel says EFAULT, as over the ring: to ask beforehand would be a system call for each message",
        programs: &["transfer/from_read_only_memory"],
    },
];

/// What shows now and then, so that a run says nothing about it.
pub const UNSTEADY: &[Group] = &[
    Group {
        reason: "the peer ends as the two seconds do in which the process that becomes another program waits for it",
        programs: &["exec/silent_closes", "exec/silent_exits"],
    },
    Group {
        reason: "connections that another program has had are relayed, and an edge may be told once more",
        programs: &["epoll/changes_at_random"],
    },
    Group {
        reason: "a stand-in is given an urgent byte and the end one after the other, and who looks between sees one of them",
        programs: &["shutdown/both_behind_urgent"],
    },
];
