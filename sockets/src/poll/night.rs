//! How a poller goes to sleep.

use super::survey::What;
use super::{PollFd, bits, revents, with};
use crate::host::has_threads;
use crate::ready::{self, Bed, Rest};

/// For how long to sleep, the shortest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Night {
    /// As long as the program would.
    Sleep,
    /// For [`LOOK_SELDOM`](crate::ready::LOOK_SELDOM) at most.
    LookSeldom,
    /// For [`LOOK`](crate::ready::LOOK) at most.
    Look,
    /// For a nap.
    Nap,
}

/// Arms all, and sets `scratch` to what the kernel is to sleep on; for how long. `None` if something is ready.
pub(super) fn lie_down(fds: &[PollFd], scratch: &mut [PollFd]) -> Option<Night> {
    let mut night = Night::Sleep;
    for (index, (entry, bed)) in fds.iter().zip(scratch).enumerate() {
        *bed = PollFd {
            revents: 0,
            ..*entry
        };
        let rest = match What::is(entry.fd) {
            What::Ring(conn) => with(entry.fd, |fd| {
                Some(ready::rest(conn, fd, bits(entry.events)))
            }),
            What::Set(set) => Some(set.lie_down(entry.fd)),
            What::Nothing | What::Other => None,
        };
        match rest {
            None => {}
            Some(Rest::Asleep(how)) => {
                bed.events = revents(how.wake);
                if how.over && how.wake == 0 {
                    bed.fd = -1;
                }
                night = night.max(match how {
                    Bed { nap: true, .. } => Night::Nap,
                    Bed { full: true, .. } if has_threads() => Night::Look,
                    Bed { full: true, .. } => Night::LookSeldom,
                    _ => Night::Sleep,
                });
            }
            Some(Rest::Awake) => {
                // Sets before this one have been told that somebody sleeps.
                get_up(fds.get(..index).unwrap_or(fds));
                return None;
            }
        }
    }
    Some(night)
}

/// Tells sets that nobody sleeps any more.
pub(super) fn get_up(fds: &[PollFd]) {
    for entry in fds {
        if let What::Set(set) = What::is(entry.fd) {
            set.get_up();
        }
    }
}
