//! How a poller goes to sleep.

use std::slice;

use super::survey::What;
use super::{PollFd, bits, may_miss, revents, with};
use crate::epoll::Set;
use crate::host::has_threads;
use crate::ready::{self, Bed, READ, Rest};

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
            What::Ring(conn) => {
                if bits(entry.events) & READ != 0 {
                    conn.begin_poll();
                }
                let rest = with(entry.fd, |fd| {
                    Some(ready::rest(conn, fd, bits(entry.events)))
                });
                if rest == Some(Rest::Awake) {
                    get_up(slice::from_ref(entry));
                }
                rest
            }
            What::Set(set) => {
                let rest = set.lie_down(entry.fd);
                set.tell_others();
                Some(rest)
            }
            What::PlainSet(set) => lie_down_plainly(set),
            What::Other if may_miss(entry) => {
                night = night.max(Night::LookSeldom);
                None
            }
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
                // Those before this one have been told that somebody sleeps.
                get_up(fds.get(..index).unwrap_or(fds));
                return None;
            }
        }
    }
    Some(night)
}

/// Tells sets, and connections, that nobody sleeps any more.
pub(super) fn get_up(fds: &[PollFd]) {
    for entry in fds {
        match What::is(entry.fd) {
            What::Set(set) | What::PlainSet(set) => set.get_up(),
            What::Ring(conn) if bits(entry.events) & READ != 0 => conn.end_poll(),
            _ => {}
        }
    }
}

/// Tells sets of which only the kernel knows that somebody sleeps; whether all still are such.
pub(super) fn lie_down_unaware(fds: &[PollFd]) -> bool {
    for (index, entry) in fds.iter().enumerate() {
        let awake = match What::is(entry.fd) {
            What::PlainSet(set) => lie_down_plainly(set).is_some(),
            What::Set(_) => true,
            _ => false,
        };
        if awake {
            get_up(fds.get(..index).unwrap_or(fds));
            return false;
        }
    }
    true
}

/// The kernel is to sleep on it as on anything else, if nothing else than awake is said.
fn lie_down_plainly(set: &Set) -> Option<Rest> {
    if set.lie_down_unaware() {
        return None;
    }
    set.get_up();
    Some(Rest::Awake)
}
