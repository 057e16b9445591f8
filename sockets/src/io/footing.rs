//! What a call goes on with while it waits: the program's descriptor, or one of its own once another thread has closed that.

use std::cell::OnceCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::thread;

use sys::errno::Errno;
use sys::fork::OwnFd;

use crate::conn::{Conn, Counted, Sleepers};
use crate::share::Turn;
use crate::table;

/// Of one call.
pub(super) struct Footing<'a> {
    conn: &'a Conn,
    /// Which of those that have had its place.
    generation: u32,
    /// Where it is counted once it sleeps.
    sleepers: &'a Sleepers,
    program: BorrowedFd<'a>,
    /// From the first sleep to the end of the call: between two sleeps, too, a close by another thread is to leave the connection to this one.
    asleep: OnceCell<Counted<'a>>,
    stay: Option<Stay<'a>>,
}

/// The rest of a call on a descriptor that is another's now. Until it is dropped nobody ends the connection.
struct Stay<'a> {
    kept: Option<Arc<OwnFd>>,
    /// As dozing, and as asleep: left in this order.
    _counted: [Counted<'a>; 2],
}

impl<'a> Footing<'a> {
    pub(super) fn new(conn: &'a Conn, sleepers: &'a Sleepers, program: BorrowedFd<'a>) -> Self {
        Self {
            conn,
            generation: conn.generation(),
            sleepers,
            program,
            asleep: OnceCell::new(),
            stay: None,
        }
    }

    #[inline]
    pub(super) fn conn(&self) -> &'a Conn {
        self.conn
    }

    #[inline]
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stay
            .as_ref()
            .and_then(|stay| stay.kept.as_ref())
            .map_or(self.program, |kept| kept.as_fd())
    }

    /// A turn at `side`; `None` if the connection was closed, and its place may be another's, or if there is no descriptor to go on with.
    #[inline]
    pub(super) fn turn(&self, side: usize) -> Option<Turn<'a>> {
        let is_there = |stay: &Stay<'_>| stay.kept.is_some();
        if !self.stay.as_ref().is_none_or(is_there) {
            return None;
        }
        let turn = self.conn.turn(self.fd(), side);
        turn.filter(|_| self.is_same())
    }

    /// Before the program's descriptor is used again: if it is another's by now, another of this connection is from now on.
    #[inline]
    pub(super) fn follow(&mut self) {
        // Nothing more is done with another connection.
        if self.has_moved_away() && self.is_same() {
            self.stay = Some(Stay::new(self.conn));
            // That counts it.
            self.asleep = OnceCell::new();
        }
    }

    /// This thread is about to sleep, and those who close know it; false if one has closed what it would sleep on.
    pub(super) fn enter(&self) -> bool {
        if self.stay.is_some() || self.asleep.get().is_some() {
            return true;
        }
        self.asleep.get_or_init(|| self.sleepers.enter());
        !self.has_moved_away()
    }

    /// Sleeps on the descriptor. The program's may be another file's once all that sleep do so: who comes late does not.
    pub(super) fn doze(&self, sleep: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        // Who has one of its own is counted for as long as it has that.
        let _dozing = self.stay.is_none().then(|| self.sleepers.doze());
        if self.has_moved_away() {
            return Ok(());
        }
        sleep()
    }

    /// Whether the program's descriptor is another's now: another thread closed it, or put something else there.
    #[inline]
    fn has_moved_away(&self) -> bool {
        let conn = self.conn;
        self.stay.is_none() && (conn.is_closing() || !self.is_there() || !self.is_same())
    }

    /// Whether the program's descriptor is the connection's, as far as anybody still keeps account.
    #[inline]
    fn is_there(&self) -> bool {
        is_there(self.conn, self.program)
    }

    #[cold]
    fn end_if_closed(&self) {
        if self.conn.is_closing() {
            self.conn.end_if_closed();
        }
    }

    #[inline]
    fn is_same(&self) -> bool {
        self.conn.generation() == self.generation
    }
}

impl Drop for Footing<'_> {
    /// The last that slept on what another thread closed ends it, also where it is cancelled: then only frames below that of the C function are unwound.
    #[inline]
    fn drop(&mut self) {
        if self.asleep.take().is_some() || self.stay.take().is_some() {
            self.end_if_closed();
        }
    }
}

/// Whether `fd` is the connection's, as far as anybody still keeps account.
#[inline]
pub(super) fn is_there(conn: &Conn, fd: BorrowedFd<'_>) -> bool {
    is_at(conn, fd.as_raw_fd()) || table::is_retired()
}

#[inline]
fn is_at(conn: &Conn, fd: RawFd) -> bool {
    table::known(fd).is_some_and(|now| std::ptr::eq(now, conn))
}

impl<'a> Stay<'a> {
    #[cold]
    fn new(conn: &'a Conn) -> Self {
        let counted = conn.sleepers.enter();
        let dozing = conn.sleepers.doze();
        // Who closes takes the number away first, and then keeps the connection for those who sleep.
        for _ in 0..YIELDS {
            if !conn.is_about_to_close() {
                break;
            }
            thread::yield_now();
        }
        Self {
            kept: conn.kept().or_else(|| another(conn)),
            _counted: [dozing, counted],
        }
    }
}

/// A duplicate of another descriptor of the program's.
fn another(conn: &Conn) -> Option<Arc<OwnFd>> {
    let mut found = None;
    table::for_each(|fd, _| {
        if found.is_none() && is_at(conn, fd) {
            let own = sys::socket::with_borrowed(fd, |fd| OwnFd::duplicate_of(fd));
            // It may have been closed, and its number given to something else, in between.
            found = own.and_then(Result::ok).filter(|_| is_at(conn, fd));
        }
    });
    found.map(Arc::new)
}

/// One who is in the middle of `close` is soon out of it, or waits for a CPU. One who left it by a jump never ends it.
const YIELDS: u32 = 100_000;
