//! How a poller goes to sleep.

use super::survey::What;
use super::{PollFd, bits, may_miss, revents, with};
use crate::conn::{Conn, Counted};
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

/// The connections that one who sleeps until something can be received is counted on, as long as it lives: so that others leave him their doorbells. They are
/// the first few: who waits for many is not one of several threads that wait for the same.
pub(super) struct Watched {
    places: [Option<Counted<'static>>; WATCHED_MAX],
    used: usize,
}

impl Watched {
    pub(super) const fn none() -> Self {
        Self {
            places: [const { None }; WATCHED_MAX],
            used: 0,
        }
    }

    fn add(&mut self, conn: &'static Conn) {
        if let Some(place) = self.places.get_mut(self.used) {
            *place = Some(conn.pollers.enter());
            self.used += 1;
        }
    }
}

const WATCHED_MAX: usize = 8;

/// Arms all, and sets `scratch` to what the kernel is to sleep on; for how long. `None` if something is ready.
pub(super) fn lie_down(
    fds: &[PollFd],
    scratch: &mut [PollFd],
    watched: &mut Watched,
) -> Option<Night> {
    let mut night = Night::Sleep;
    for (index, (entry, bed)) in fds.iter().zip(scratch).enumerate() {
        *bed = PollFd {
            revents: 0,
            ..*entry
        };
        let rest = match What::is(entry.fd) {
            What::Ring(conn) => {
                if bits(entry.events) & READ != 0 {
                    watched.add(conn);
                }
                with(entry.fd, |fd| {
                    Some(ready::rest(conn, fd, bits(entry.events)))
                })
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
        if let What::Set(set) | What::PlainSet(set) = What::is(entry.fd) {
            set.get_up();
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
