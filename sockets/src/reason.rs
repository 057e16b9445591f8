//! Why a connection is on TCP: one numbered list for the whole layer, shown by `sovia stat`.
//!
//! Numbers are for ever: a reason that falls out of use keeps its number. They are grouped by whose doing it is: 1 to 19 nobody's, 20 to 39 the
//! program's, 40 to 59 the peer's, 60 to 79 this host's, 80 to 99 the user's.

use std::fmt;

macro_rules! reasons {
    ($($number:literal $variant:ident $name:literal $explanation:literal)*) => {
        /// Why a connection is on TCP.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum Reason {
            $(#[doc = $explanation] $variant = $number,)*
        }

        impl Reason {
            /// All of them, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// A word for tables and JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A sentence for people.
            #[must_use]
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }
        }
    };
}

reasons! {
    1 NotTried "not-tried" "Too little has been exchanged to look for the other end."
    2 Meeting "meeting" "The two ends are looking for each other."
    3 NotLocal "not-local" "The other end is on another host, or this host cannot tell that it is not."
    4 ToItself "to-itself" "The socket is connected to itself."
    5 NotConnected "not-connected" "The connection is being made or ended."
    6 NobodyCame "peer-without-sovia" "The other end is not under sovia, or did not look for this one."
    7 NotTcp "not-tcp" "It is no plain TCP connection, but UDP, a Unix socket, MPTCP, TLS in the kernel or the like."
    8 Standstill "standstill" "The program waited for room to send, and nobody read: TCP takes more of what is unread."

    20 GaveUp "gave-up" "This end stopped looking, because the program closes or changes the socket."
    21 SharedWithStranger "shared" "A process that does not take part may use the socket too."
    22 Stdio "stdio" "The C library's stdio uses the socket; its own reads and writes cannot be seen."
    23 HandedOver "handed-over" "The socket was handed to a program that is not under sovia."
    24 IoUring "io-uring" "The program uses io_uring, which goes past the C library."
    25 Urgent "urgent" "Urgent data is in the stream."
    26 Option "option" "The program set an option or filter on the socket that only TCP can honour."
    27 RawCalls "raw-calls" "The program makes system calls of its own."
    28 Filtered "seccomp" "The program allowed itself only some system calls (seccomp), so none but its own may be made."
    29 Sets "sets" "The socket is in a set of epoll that is not followed: the program has too many, or other processes have it, or the descriptor is closed that was put there."

    40 FalseProof "false-proof" "Whoever came to the meeting does not hold the other end."
    41 Silent "silent" "The meeting name is taken by someone who does not answer."
    42 Garbage "garbage" "Whoever came to the meeting does not speak the protocol."
    43 Disturbed "disturbed" "Too many strangers came to the meeting."
    44 Version "version" "The other end is another version of sovia."
    45 Layout "layout" "The other end has another layout of the shared memory."
    46 BadMemory "bad-memory" "The memory that the other end offered is not sealed, or not of the right size."
    47 Declined "declined" "The other end declined, for a reason of its own."
    48 PeerGaveUp "peer-gave-up" "The other end stopped looking."
    49 PeerLeft "peer-left" "The other end went away in the middle of the meeting."
    50 PeerWentBack "peer-went-back" "The other end asked to go back to TCP."
    51 Corrupt "corrupt" "The other end wrote into the shared memory what it can not mean."

    60 Descriptors "descriptors" "No descriptor was left."
    61 Memory "memory" "No memory was left."
    62 NoProof "no-proof" "This kernel or sandbox gives no proof of who holds the other end: no /proc, or neither sock_diag nor /proc/net."
    63 Refused "refused" "The kernel or a security module refused a call that the upgrade needs."
    64 NoNic "no-nic" "No VI NIC of this host can carry the stream."

    80 ConfiguredOff "off" "It is switched off by configuration."
    82 RuleNever "rule-never" "A rule of the configuration says never."
}

impl Reason {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u16 {
        // A fieldless enum with this representation.
        self as u16
    }

    /// The reason with that number; [`Reason::NotTried`] if there is none.
    #[must_use]
    pub fn from_number(number: u16) -> Self {
        Self::find(number).unwrap_or(Self::NotTried)
    }

    /// The reason with that number, which somebody else says.
    #[must_use]
    pub fn find(number: u16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.number() == number)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_and_names_are_unique_and_in_order() {
        let numbers: Vec<_> = Reason::ALL.iter().map(|reason| reason.number()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        let names: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for &reason in Reason::ALL {
            assert_eq!(Reason::find(reason.number()), Some(reason));
            assert!(reason.explanation().ends_with('.'));
        }
        assert_eq!(Reason::find(0), None);
        assert_eq!(Reason::from_number(u16::MAX), Reason::NotTried);
    }

    /// What `sovia stat --json` has said stays true: lines may be added, not changed.
    #[test]
    fn numbers_are_stable() {
        let pinned = [
            (1, "not-tried"),
            (3, "not-local"),
            (6, "peer-without-sovia"),
            (20, "gave-up"),
            (21, "shared"),
            (22, "stdio"),
            (23, "handed-over"),
            (24, "io-uring"),
            (25, "urgent"),
            (40, "false-proof"),
            (41, "silent"),
            (44, "version"),
            (46, "bad-memory"),
            (50, "peer-went-back"),
            (51, "corrupt"),
            (60, "descriptors"),
            (61, "memory"),
            (62, "no-proof"),
            (80, "off"),
            (82, "rule-never"),
        ];
        for (number, name) in pinned {
            assert_eq!(Reason::find(number).map(Reason::name), Some(name));
        }
    }
}
