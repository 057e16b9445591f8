//! Which socket a connection is, and what kind of socket: asked as late as can be.

use std::os::fd::BorrowedFd;

use sys::stream::cookie;
use sys::sync::Ordering;
use sys::{socket, tcp};

use super::{Conn, GUESSED, NONBLOCKING};
use crate::reason::Reason;
use crate::stat;

impl Conn {
    /// Which socket it is; 0 if that was not [asked](Conn::note_socket), or is not told. What has more than one descriptor, or has gone to a meeting, was
    /// asked.
    pub(crate) fn cookie(&self) -> u64 {
        self.cookie.load(Ordering::Relaxed)
    }

    /// Says which socket it is.
    pub(crate) fn set_cookie(&self, cookie: u64) {
        self.cookie.store(cookie, Ordering::Relaxed);
    }

    /// Asks which socket it is, if that is not known.
    pub(crate) fn note_socket(&self, fd: BorrowedFd<'_>) {
        if self.cookie() == 0 {
            self.set_cookie(cookie(fd).unwrap_or(0));
        }
    }

    /// Has the addresses shown. Until they have to be asked for, who reads what is shown finds them by the descriptor.
    pub(crate) fn note_ends(&self, fd: BorrowedFd<'_>) {
        if !stat::is_named(self.record)
            && let Ok((local, peer)) = tcp::addresses(fd)
        {
            stat::name(self.record, [local, peer]);
        }
    }

    /// Whether `connect` has begun it, and not yet said that it is there.
    pub(crate) fn is_connecting(&self) -> bool {
        self.connecting.load(Ordering::Relaxed)
    }

    /// Notes what `connect` says.
    pub(crate) fn set_connecting(&self, under_way: bool) {
        self.connecting.store(under_way, Ordering::Relaxed);
    }

    /// Notes how calls on it seem to wait.
    pub(crate) fn guess_nonblocking(&self, on: bool) {
        let guess = u32::from(on) | GUESSED;
        self.waits.store(guess, Ordering::Relaxed);
    }

    /// Asks the kernel what was believed so far, before the connection leaves TCP: why it may not.
    pub(super) fn identify(&self, fd: BorrowedFd<'_>) -> Option<Reason> {
        if !socket::has_protocol_tcp(fd) {
            return Some(Reason::NotTcp);
        }
        self.note_socket(fd);
        let waits = self.waits.load(Ordering::Relaxed);
        if waits & GUESSED != 0 {
            let Ok(nonblocking) = socket::nonblocking(fd) else {
                return Some(Reason::Refused);
            };
            let now = if nonblocking { NONBLOCKING } else { 0 };
            // What the program has set meanwhile stays.
            let _ = self
                .waits
                .compare_exchange(waits, now, Ordering::Relaxed, Ordering::Relaxed);
        }
        None
    }
}
