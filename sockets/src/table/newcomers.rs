//! Sockets that the program makes, as the calls that make them tell.
//!
//! A short connection lives for some ten system calls, and would notice each question to the kernel. So what a call tells is believed: until its number
//! is closed, and given to something else, by ways that we do not see. Nothing rests on that but how calls on TCP wait, and that no other process has a socket which
//! this one has just made; the kernel is [asked](Conn::identify) before a connection leaves TCP.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use sys::errno::Errno;
use sys::holders::Fork;
use sys::socket;
use sys::stream::cookie;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};

use super::{
    ENTRIES, FIRST, FORKED, LISTENER, SOCKET, TOP, UNKNOWN, abandon, change, entry, has_duplicates,
    insert_locked, is_retired, known, note_top, renumber, take_place,
};
use crate::conn::{Conn, Origin};
use crate::share;

/// `socket` has just made a TCP socket.
pub fn made(fd: RawFd) {
    let Some(entry) = entry(fd).filter(|_| !is_retired()) else {
        return;
    };
    let before = entry.load(Ordering::Acquire);
    // In the child of `vfork` the number may be a connection of its parent's.
    if before < FIRST && take_place(entry, before, SOCKET) {
        note_top(fd);
    }
}

/// Another process is about to have all sockets that this one has, by this fork if it is one: what [`made`] has noted says no more that one which is connected
/// later is this one's alone.
pub fn share_sockets(by: Option<Fork>) {
    if let Some(fork) = by
        && FORK_TICKS.load(Ordering::Relaxed) == 0
    {
        FORK_PID.store(fork.pid.cast_unsigned(), Ordering::Relaxed);
        FORK_TICKS.store(fork.ticks, Ordering::Relaxed);
    }
    let now = if by.is_some() { FORKED } else { UNKNOWN };
    let top = TOP.load(Ordering::Acquire) as usize;
    for entry in ENTRIES.iter().take(top) {
        if entry.load(Ordering::Relaxed) == SOCKET {
            take_place(entry, SOCKET, now);
        }
    }
}

/// As `share_sockets`, of one; and of those that it may be a duplicate of.
pub fn share_socket(fd: RawFd) {
    if has_duplicates() {
        return share_sockets(None);
    }
    if let Some(entry) = entry(fd) {
        take_place(entry, SOCKET, UNKNOWN);
    }
}

/// The first fork of this process, or of the one that it was forked from: what one of them had before is nobody else's who may not be looked at.
fn first_fork() -> Fork {
    Fork {
        pid: FORK_PID.load(Ordering::Relaxed).cast_signed(),
        ticks: FORK_TICKS.load(Ordering::Relaxed),
    }
}

/// `listen` has succeeded.
pub fn listens(fd: RawFd) {
    if let Some(entry) = entry(fd) {
        take_place(entry, SOCKET, LISTENER);
    }
}

/// Notes what `accept` has just made of what came to `listener`, and whether calls on it wait.
pub fn accepted(listener: RawFd, fd: BorrowedFd<'_>, nonblocking: bool) {
    if is_retired() || !accepts_tcp(listener, fd) {
        return;
    }
    let _guard = change();
    if let Some(entry) = entry(fd.as_raw_fd()) {
        abandon(entry);
    }
    insert_locked(fd, Origin::Accepted, nonblocking);
}

/// What is accepted is a stream. The listener is asked once; what it accepts may be TCP where it is not, as with MPTCP.
fn accepts_tcp(listener: RawFd, fd: BorrowedFd<'_>) -> bool {
    let Some(place) = entry(listener) else {
        return false;
    };
    let value = place.load(Ordering::Acquire);
    if value == LISTENER {
        return true;
    }
    let is_tcp = socket::has_protocol_tcp(fd);
    if is_tcp
        && matches!(value, UNKNOWN | SOCKET | FORKED)
        && socket::with_borrowed(listener, socket::has_protocol_tcp) == Some(true)
    {
        note_top(listener);
        take_place(place, value, LISTENER);
    }
    is_tcp
}

/// `connect` has returned. A socket that is connected, or about to be, is noted if it is TCP's.
pub fn connected(fd: BorrowedFd<'_>, outcome: Result<(), Errno>) {
    let under_way = match outcome {
        Ok(()) => false,
        Err(Errno::INPROGRESS | Errno::INTR) => true,
        // Of a connection that began where we did not see it.
        Err(Errno::ALREADY | Errno::ISCONN) => return connected_unseen(fd),
        Err(_) => return,
    };
    let number = fd.as_raw_fd();
    let mut was_own = false;
    if let Some(conn) = known(number) {
        if !is_another(conn, fd, outcome) {
            conn.set_connecting(under_way);
            return;
        }
        if !share::is_home() {
            return;
        }
        // Its last attempt has failed; or it was closed, and made anew, by ways that we did not see.
        was_own = !conn.may_be_shared();
        renumber(number);
    }
    let noted = || entry(number).map_or(UNKNOWN, |entry| entry.load(Ordering::Acquire));
    let is_new = matches!(noted(), SOCKET | FORKED);
    if is_retired() || !(is_new || socket::is_tcp(fd)) {
        return;
    }
    // One whose calls do not wait is always told that it is under way. So is one after `SO_SNDTIMEO`.
    let nonblocking = outcome == Err(Errno::INPROGRESS);
    let _guard = change();
    let now = noted();
    if let Some(conn) = insert_locked(fd, Origin::Connected, nonblocking) {
        match now {
            SOCKET => {}
            FORKED => conn.set_forked_since(first_fork()),
            _ if was_own => {}
            _ => conn.set_forked(),
        }
        conn.guess_nonblocking(nonblocking);
        conn.set_connecting(under_way);
    }
}

#[cold]
fn connected_unseen(fd: BorrowedFd<'_>) {
    if known(fd.as_raw_fd()).is_none()
        && !is_retired()
        && socket::is_tcp(fd)
        && let Some(conn) = super::insert(fd, Origin::Connected)
    {
        // Another process may have begun it.
        conn.set_forked();
    }
}

/// Whether a socket that `connect` has just connected, or begun to, is not that of the connection that its number stands for.
fn is_another(conn: &Conn, fd: BorrowedFd<'_>, outcome: Result<(), Errno>) -> bool {
    match conn.cookie() {
        // It has no other descriptor. One that is connected is not connected again, and an attempt that has begun does not begin.
        0 => outcome == Err(Errno::INPROGRESS) || !conn.is_connecting(),
        known => cookie(fd).is_ok_and(|cookie| cookie != known),
    }
}

/// See [`first_fork`]; no ticks if there was none.
static FORK_PID: AtomicU32 = AtomicU32::new(0);
static FORK_TICKS: AtomicU64 = AtomicU64::new(0);
