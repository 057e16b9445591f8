//! How a newborn becomes a connection as others are.

use std::os::fd::RawFd;
use std::thread;

use sys::alone::{self, Exchange};
use sys::socket::with_borrowed;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use super::{NEWBORNS, any, give_back, of};
use crate::conn::{Conn, Origin};
use crate::epoll;
use crate::reason::Reason;
use crate::table::{self, UNKNOWN, change, entry, place};

/// All are connections as others are from now on.
#[inline]
pub fn settle() {
    if any() {
        settle_all();
    }
}

#[cold]
fn settle_all() {
    for newborn in &NEWBORNS {
        let fd = newborn.fd.load(Ordering::Relaxed).cast_signed();
        let word = entry(fd).map_or(UNKNOWN, |entry| entry.load(Ordering::Relaxed));
        if of(word).is_some_and(|of| std::ptr::eq(of, newborn)) {
            grow_up(fd, word);
        }
    }
}

/// The connection that is to be behind `fd`, whose entry is `word`, if that is one of these.
#[cold]
pub(in crate::table) fn grow_up(fd: RawFd, word: u32) -> Option<&'static Conn> {
    let newborn = of(word)?;
    let exchanged = newborn.exchanged();
    let set = newborn.set.load(Ordering::Relaxed).checked_sub(1);
    let (events, data) = (
        newborn.events.load(Ordering::Relaxed),
        newborn.data.load(Ordering::Relaxed),
    );
    let is_under_way = newborn.under_way.load(Ordering::Relaxed) != 0;
    let _adoption = set.map(|_| Adoption::begin());
    let conn = {
        let _guard = change();
        let entry = entry(fd)?;
        let now = entry.load(Ordering::Acquire);
        if now != word {
            // Another thread was here: there are several now.
            return table::conn(now.checked_sub(table::FIRST)?);
        }
        // At no instant is it unknown what it is.
        let conn = with_borrowed(fd, |fd| {
            place(fd, entry, word, |conn| {
                conn.open(fd, Origin::Accepted, true);
                conn.resume_young(&exchanged);
            })
        });
        let conn = conn.flatten();
        // There are too many, or a signal handler was quicker.
        if conn.is_some() || entry.exchange(word, UNKNOWN).is_ok() {
            give_back(word);
        }
        conn
    };
    let adopted = set.is_none_or(|set| {
        let event = epoll::Event { events, data };
        epoll::adopts(set.cast_signed(), fd, event)
    });
    let conn = conn?;
    if is_under_way {
        // This is a signal handler, which came into a call of the kernel's: that one may go on after whatever is done here.
        conn.stay_on_tcp(Reason::GaveUp);
    }
    if !adopted {
        conn.stay_on_tcp(Reason::Sets);
    }
    Some(conn)
}

/// One is a connection as others are already, and not yet a member of its set.
struct Adoption;

impl Adoption {
    fn begin() -> Self {
        ADOPTIONS.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        let less = |adoptions: u32| adoptions.checked_sub(1);
        // None: others have given up waiting for this one.
        let _ = ADOPTIONS.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    }
}

/// Where another thread is in the middle of an adoption: waits for its end, or what a set is told would be told of no member.
#[inline]
pub(crate) fn await_growth() {
    if ADOPTIONS.load(Ordering::Acquire) != 0 && !alone::is_alone() {
        await_adoptions();
    }
}

#[cold]
fn await_adoptions() {
    for _ in 0..YIELDS {
        if ADOPTIONS.load(Ordering::Acquire) == 0 {
            return;
        }
        thread::yield_now();
    }
    // A signal handler has left it by a jump, or came into it.
    ADOPTIONS.store(0, Ordering::Release);
}

/// How many are under way.
static ADOPTIONS: AtomicU32 = AtomicU32::new(0);
const YIELDS: u32 = 10_000;
