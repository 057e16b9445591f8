//! Connections of which nothing is noted yet but what they have exchanged.
//!
//! A server that answers one request for each connection accepts it, has a set watch it, receives, sends and closes it, all before it sleeps again. What would be noted of
//! such a one (a place, a member of a set, a line for `sovia stat`) is for what comes later, and between two of these calls the kernel has used the
//! processor's cache. So it has a few words here instead, and is made a [`Conn`](crate::conn::Conn) as soon as anything but those calls concerns it, when a second request comes, when it has
//! exchanged some kilobytes, and before its process sleeps for longer. Only a process with one thread has such, and only of connections whose calls do not wait. See
//! [decision 59](../../../docs/decisions/0059-newborn-connections.md).

use std::os::fd::RawFd;
use std::time::Duration;

use sys::alone::{self, Exchange};
use sys::errno::Errno;
use sys::fork;
use sys::socket::with_borrowed;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use sys::wait::note_sent;

pub(crate) use self::growth::await_growth;
pub(super) use self::growth::grow_up;
pub use self::growth::settle;
use self::record::{LITTLE, Newborn};
use super::{LISTENER, OTHER, UNKNOWN, entry, is_retired, note_top};
use crate::conn::Way;
use crate::epoll::EDGE;
use crate::ready::{ERR, HUP, IN, OUT, PRI, RDHUP};
use crate::{epoll, rules};

mod growth;
mod record;

/// `accept` has made `fd` of what came to `listener`, and calls on it do not wait. Whether it is one of these from now on.
#[inline]
pub fn begin(listener: RawFd, fd: RawFd) -> bool {
    let is_listener =
        entry(listener).is_some_and(|entry| entry.load(Ordering::Relaxed) == LISTENER);
    // What is at the numbers of standard streams has its own rules.
    if fd < 3 {
        return false;
    }
    // The first of a process is none: others are to read of it.
    if !(is_listener && alone::is_alone() && fork::seems_home() && super::has_any())
        || is_retired()
        || epoll::concerns(fd)
        || !rules::leave_time()
    {
        return false;
    }
    let Some(entry) = entry(fd).filter(|entry| entry.load(Ordering::Relaxed) == UNKNOWN) else {
        return false;
    };
    let taken = TAKEN.load(Ordering::Relaxed);
    let index = taken.trailing_ones();
    let Some(newborn) = NEWBORNS.get(index as usize) else {
        settle();
        return false;
    };
    // A signal handler may come in between, and no more: there is one thread.
    if TAKEN.exchange(taken, taken | 1 << index).is_err() {
        return false;
    }
    newborn.open(fd);
    if taken == 0 {
        WAITS.store(0, Ordering::Relaxed);
    }
    note_top(fd);
    entry.store(FIRST + index, Ordering::Release);
    true
}

/// Whether that is one.
#[inline]
pub fn is(fd: RawFd) -> bool {
    at(fd).is_some()
}

/// Whether there are any.
#[inline]
pub fn any() -> bool {
    TAKEN.load(Ordering::Relaxed) != 0
}

/// A wait begins: whether those that there are have been that for long, or are to be no more since there are other threads.
#[inline]
pub(crate) fn are_old() -> bool {
    let waits = WAITS.load(Ordering::Relaxed) + 1;
    WAITS.store(waits, Ordering::Relaxed);
    waits > LONG || !alone::is_alone()
}

/// Has the kernel do a call that moves bytes of one, and counts. `None`, and nothing is done, if it is no newborn, or not to be one any more.
#[inline]
pub fn pass(
    fd: RawFd,
    way: Way,
    native: impl FnOnce() -> Result<usize, Errno>,
) -> Option<Result<usize, Errno>> {
    let newborn = at(fd).filter(|_| alone::is_alone())?;
    newborn.under_way.store(1, Ordering::Relaxed);
    let result = native();
    newborn.under_way.store(0, Ordering::Relaxed);
    if let Ok(bytes) = result {
        if matches!(way, Way::Out) {
            note_sent();
        }
        if newborn.counts(way, bytes) {
            with_borrowed(fd, |fd| {
                if let Some(conn) = super::connection(fd) {
                    conn.advance(fd, way);
                }
            });
        }
    }
    Some(result)
}

/// Whether a call of so many bytes is short enough to be [passed](pass) whole.
#[inline]
pub fn is_little(bytes: usize) -> bool {
    bytes <= LITTLE as usize
}

/// The set at `set` is to watch one with `events` and `data`: whether that may be noted here.
#[inline]
pub(crate) fn may_join(fd: RawFd, events: u32) -> bool {
    events & !USUAL == 0
        && alone::is_alone()
        && at(fd).is_some_and(|newborn| newborn.set.load(Ordering::Relaxed) == 0)
}

/// It is about to watch it.
#[inline]
pub(crate) fn joins(fd: RawFd, set: RawFd, events: u32, data: u64) {
    if let Some(newborn) = at(fd) {
        newborn.events.store(events, Ordering::Relaxed);
        newborn.data.store(data, Ordering::Relaxed);
        newborn
            .set
            .store(set.cast_unsigned() + 1, Ordering::Relaxed);
    }
}

/// It does not watch it after all.
#[cold]
pub(crate) fn leaves(fd: RawFd) {
    if let Some(newborn) = at(fd) {
        newborn.set.store(0, Ordering::Relaxed);
    }
}

/// Its number is about to be closed: whether it was one, and is none any more.
#[inline]
pub fn end(fd: RawFd) -> bool {
    let Some(entry) = entry(fd) else {
        return false;
    };
    let word = entry.load(Ordering::Relaxed);
    if word < FIRST || !alone::is_alone() || !fork::seems_home() {
        return false;
    }
    if entry.exchange(word, OTHER).is_err() {
        return false;
    }
    if let Some(newborn) = of(word) {
        newborn.add_up();
    }
    give_back(word);
    true
}

/// What was behind an entry has gone by ways that we did not see.
#[cold]
pub(super) fn forget(word: u32) {
    if of(word).is_some() {
        give_back(word);
    }
}

#[inline]
fn at(fd: RawFd) -> Option<&'static Newborn> {
    of(entry(fd)?.load(Ordering::Relaxed))
}

#[inline]
fn of(word: u32) -> Option<&'static Newborn> {
    if word < FIRST {
        return None;
    }
    NEWBORNS.get((word - FIRST) as usize)
}

fn give_back(word: u32) {
    let mut taken = TAKEN.load(Ordering::Relaxed);
    while let Err(now) = TAKEN.exchange(taken, taken & !(1 << (word - FIRST))) {
        taken = now;
    }
}

/// An entry of the table that is one of these, and which, in its lower bits.
pub(super) const FIRST: u32 = 1 << 31;
/// So many at a time: one more, and all are noted.
const MANY: usize = 32;
/// After so many waits in which there were some, all are noted.
const LONG: u32 = 64;
/// So long after its last event a process notes them, before it sleeps on.
pub(crate) const STILL: Duration = Duration::from_millis(100);
/// What a set watches for until told otherwise: it has no memory of it, as `EPOLLONESHOT` asks for.
const USUAL: u32 = IN | PRI | OUT | ERR | HUP | RDHUP | EDGE;

static NEWBORNS: [Newborn; MANY] = [const { Newborn::new() }; MANY];
/// A bit for each of them that is taken.
static TAKEN: AtomicU32 = AtomicU32::new(0);
static WAITS: AtomicU32 = AtomicU32::new(0);
