//! Memory that bulk has left behind on connections that are idle now.
//!
//! A ring keeps the pages it was written to, up to half a megabyte a direction: as long as bytes flow that is what makes it fast. Who goes to
//! sleep on a connection in `poll` or `epoll_wait` notes those of his own ring; if a second or two later nothing has been sent again, they are given back. Nobody else
//! has to do anything, and a process that sleeps for long is woken for it once.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use sys::time;

use crate::conn::Conn;
use crate::flow::{Flow, SEND};
use crate::table;

/// Notes what a connection keeps, before somebody sleeps on it.
#[inline]
pub(crate) fn note(conn: &Conn, flow: &Flow) {
    let tx = flow.stream().tx();
    if tx.has_grown() && conn.idle_tail.swap(tx.tail(), Ordering::Relaxed) != tx.tail() {
        conn.idle_since
            .store(time::seconds().max(1), Ordering::Relaxed);
        NOTED.store(1, Ordering::Release);
    }
}

/// Gives back what has been idle for long enough. To be called before a sleep, outside of turns; returns how long that may be at most, if there is
/// more to come.
#[inline]
pub(crate) fn settle() -> Option<Duration> {
    (NOTED.load(Ordering::Relaxed) != 0)
        .then(settle_now)
        .flatten()
}

/// The shorter of what is left of a wait and what [`settle`] says.
#[inline]
pub(crate) fn within(left: Option<Duration>) -> Option<Duration> {
    match (left, settle()) {
        (Some(left), Some(limit)) => Some(left.min(limit)),
        (left, limit) => left.or(limit),
    }
}

#[cold]
fn settle_now() -> Option<Duration> {
    let (now, last) = (time::seconds(), LAST.load(Ordering::Relaxed));
    let mine = now != last
        && LAST
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
    if !mine {
        return Some(PAUSE);
    }
    // Before the search: what is noted meanwhile is found by the next.
    NOTED.store(0, Ordering::Release);
    let mut more = false;
    table::for_each(|fd, conn| match conn.idle_since.load(Ordering::Relaxed) {
        0 => {}
        since if now.wrapping_sub(since) < IDLE_SECONDS => more = true,
        _ => {
            sys::socket::with_borrowed(fd, |fd| give_back(conn, fd));
        }
    });
    if more {
        NOTED.store(1, Ordering::Release);
    }
    more.then_some(PAUSE)
}

/// Gives back the pages of what this end sends, if the peer has read it all.
#[cold]
fn give_back(conn: &Conn, fd: BorrowedFd<'_>) {
    conn.idle_since.store(0, Ordering::Relaxed);
    if let Some(turn) = conn.turn(fd, SEND) {
        turn.stream().tx().release_unused();
    }
}

/// Whether some connection may have something.
static NOTED: AtomicU32 = AtomicU32::new(0);
/// When all were last looked at.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Whole seconds: what is idle for less than two may be so for little more than one.
const IDLE_SECONDS: u32 = 2;
/// From one look to the next.
const PAUSE: Duration = Duration::from_secs(1);
