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
use sys::socket::with_borrowed;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};
use sys::wait::note_sent;
use sys::{fork, ledger};

pub(crate) use self::growth::await_growth;
pub(super) use self::growth::grow_up;
pub use self::growth::settle;
use super::{LISTENER, OTHER, UNKNOWN, entry, is_retired, note_top};
use crate::conn::{Exchanged, Way};
use crate::{epoll, rules};

mod growth;

/// What is known of one: all in one line of the processor's.
#[derive(Debug)]
#[repr(align(64))]
struct Newborn {
    fd: AtomicU32,
    /// The set that watches it, plus 1; 0 if none does.
    set: AtomicU32,
    events: AtomicU32,
    /// Whether the kernel has a call on it under way.
    under_way: AtomicU32,
    data: AtomicU64,
    bytes: [AtomicU32; 2],
    calls: [AtomicU32; 2],
    turns: AtomicU32,
    /// The direction of the last call, plus 1.
    last: AtomicU32,
}

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

impl Newborn {
    const fn new() -> Self {
        Self {
            fd: AtomicU32::new(0),
            set: AtomicU32::new(0),
            events: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            data: AtomicU64::new(0),
            bytes: [const { AtomicU32::new(0) }; 2],
            calls: [const { AtomicU32::new(0) }; 2],
            turns: AtomicU32::new(0),
            last: AtomicU32::new(0),
        }
    }

    #[inline]
    fn open(&self, fd: RawFd) {
        self.fd.store(fd.cast_unsigned(), Ordering::Relaxed);
        let [sent, received] = &self.bytes;
        let [sends, receives] = &self.calls;
        for word in [&self.set, &self.under_way, sent, received, sends, receives] {
            word.store(0, Ordering::Relaxed);
        }
        self.turns.store(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
    }

    /// Counts a call that moved `bytes`; whether it is to be noted from now on, of which this call is still to be told.
    #[inline]
    fn counts(&self, way: Way, bytes: usize) -> bool {
        let index = way as usize;
        let (Some(total), Some(calls)) = (self.bytes.get(index), self.calls.get(index)) else {
            return true;
        };
        let add = |count: &AtomicU32, more: u32| {
            let now = count.load(Ordering::Relaxed).saturating_add(more);
            count.store(now, Ordering::Relaxed);
            now
        };
        let moved = add(total, u32::try_from(bytes).unwrap_or(u32::MAX));
        let many = add(calls, 1) >= CALLS;
        let last = self.last.load(Ordering::Relaxed);
        let is_turn = last != way as u32 + 1;
        // What is received after an end was sent is that of the other end.
        let is_second = is_turn && last != 0 && matches!(way, Way::In) && bytes > 0;
        if is_second || many || moved > LITTLE {
            return true;
        }
        if is_turn {
            add(&self.turns, 1);
            self.last.store(way as u32 + 1, Ordering::Relaxed);
        }
        false
    }

    fn exchanged(&self) -> Exchanged {
        Exchanged {
            bytes: self
                .bytes
                .each_ref()
                .map(|n| n.load(Ordering::Relaxed).into()),
            calls: self
                .calls
                .each_ref()
                .map(|n| n.load(Ordering::Relaxed).into()),
            turns: self.turns.load(Ordering::Relaxed),
            last: self.last.load(Ordering::Relaxed),
        }
    }

    /// It was one, and is closed: what others read is the sums.
    #[inline]
    fn add_up(&self) {
        let Some(totals) = ledger::totals() else {
            return;
        };
        // A count that a signal handler loses is worth less than a locked instruction.
        let add = |total: &AtomicU64, more: u64| {
            let now = total.load(Ordering::Relaxed).wrapping_add(more);
            total.store(now, Ordering::Relaxed);
        };
        add(&totals.connections, 1);
        let pairs = [(&totals.bytes, &self.bytes), (&totals.calls, &self.calls)];
        for (totals, counts) in pairs {
            for (total, count) in totals.iter().zip(counts) {
                add(total, count.load(Ordering::Relaxed).into());
            }
        }
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
/// More than that is no short answer any more: an eighth at most of what a connection exchanges before it leaves TCP, by [the rules](rules::leave_time).
const LITTLE: u32 = 8 << 10;
const CALLS: u32 = 8;
/// What a set watches for until told otherwise: `EPOLLIN`, `EPOLLPRI`, `EPOLLOUT`, `EPOLLERR`, `EPOLLHUP`, `EPOLLRDHUP`, `EPOLLET`.
const USUAL: u32 = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x2000 | 1 << 31;

static NEWBORNS: [Newborn; MANY] = [const { Newborn::new() }; MANY];
/// A bit for each of them that is taken.
static TAKEN: AtomicU32 = AtomicU32::new(0);
static WAITS: AtomicU32 = AtomicU32::new(0);
