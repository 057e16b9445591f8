//! Whether a connection with rings is ready, and what to do before one sleeps until it is.
//!
//! `poll`, `select` and `epoll` are built on two questions. `look`: which events does memory show, and which does only the kernel know?
//! `rest`: may one sleep until some event comes, and on which events of the kernel? A doorbell is a byte on TCP, so it wakes whoever
//! sleeps on the descriptor with [`IN`].

use std::os::fd::{AsRawFd, BorrowedFd};

use sys::board::{Id, Place};
use sys::stream::Watch;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use crate::conn::Conn;
use crate::epoll;
use crate::flow::RECEIVE;
use crate::share::Turn;

pub(crate) use asking::Asking;
pub(crate) use bits::{ALWAYS, READ, WRITE};
pub use bits::{ERR, HUP, IN, NVAL, OUT, PRI, RDBAND, RDHUP, RDNORM, WRBAND, WRNORM};
pub(crate) use look::{Marks, has_ended, is_silent};
pub(crate) use rest::{Bed, Bells, Rest, lie_down, lie_down_again, rest};
pub(crate) use time::{Deadline, LOOK, LOOK_SELDOM, NAP, Naps, nap_within, worth_polling};

use look::{arrived, asked_of_kernel, follow, look_at};

mod asking;
mod bits;
mod look;
mod rest;
mod time;

/// What a connection shows. The bits are those of `poll` and `epoll`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Events that memory shows.
    pub(crate) ready: u32,
    /// Events for which the kernel's answer counts.
    pub(crate) ask: u32,
    /// Events that the kernel may show and the program is not to be told: those of a reset by a doorbell.
    pub(crate) hush: u32,
    /// Nothing but the sender's next bytes, or its end, will change what there is to receive, unless this process does.
    pub(crate) settled: bool,
    /// The kernel's answer counts for nothing but urgent data, whatever is asked for.
    pub(crate) in_memory: bool,
}

/// Where on a board a connection is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) board: Id,
    pub(crate) place: Place,
    /// It is to be told of all that comes, for each look at the connection comes of that.
    pub(crate) stands: bool,
}

impl Spot {
    /// The place, if the sender has the board, and nobody but the set whose board it is looks after the connection.
    fn of(self, conn: &Conn, turn: &Turn<'_>) -> Option<Place> {
        let alone = !turn.stream().holders().is_shared() && !conn.signals();
        let noted = turn.receives_on_ring() && alone && turn.stream().notes_on(self.board);
        noted.then_some(self.place)
    }
}

/// A connection has got rings. Who sleeps in the kernel does not know that, and must be woken by the first bytes there.
pub(crate) fn upgraded(fd: BorrowedFd<'_>, conn: &Conn) {
    // After `Unaware::new`, or that one sees the rings.
    if UNAWARE.load(Ordering::SeqCst) != 0 {
        arm(conn);
    }
    epoll::upgraded(fd.as_raw_fd(), conn);
}

/// Has the next bytes ring.
pub(crate) fn arm(conn: &Conn) {
    if let Some(turn) = conn.flow.take(RECEIVE) {
        turn.stream().rx().arm();
    }
}

/// Notes that a thread goes to sleep in the kernel on connections that had no rings when it last looked. It looks once more afterwards, and
/// says when it sleeps no more; one that is cancelled does not, which costs a doorbell a connection.
pub(crate) fn unaware() {
    UNAWARE.fetch_add(1, Ordering::SeqCst);
}

/// After [`unaware`].
pub(crate) fn aware() {
    let _ = UNAWARE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
}

static UNAWARE: AtomicU32 = AtomicU32::new(0);

/// What the connection shows of the events of `interest`; `None` if it has no rings (any more).
#[inline]
pub(crate) fn look(conn: &Conn, fd: BorrowedFd<'_>, interest: u32) -> Option<Look> {
    let turn = conn.turn(fd, RECEIVE)?;
    Some(look_at(conn, &turn, fd, interest))
}

/// For which events of `interest` the kernel's answer counts; `None` if the connection has no rings (any more).
#[inline]
pub(crate) fn asks(conn: &Conn, fd: BorrowedFd<'_>, interest: u32) -> Option<u32> {
    let turn = conn.turn(fd, RECEIVE)?;
    Some(asked_of_kernel(conn, &turn, fd, interest))
}

/// As [`look()`], of a connection that is noted on a board; whether it goes on to be, whatever comes. Then who receives says when nothing is left.
#[inline]
pub(crate) fn look_at_noted(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    interest: u32,
) -> Option<(Look, bool)> {
    let turn = conn.turn(fd, RECEIVE)?;
    // A handler may have come into a receive that has found nothing left, and not said so yet.
    let stands = !turn.nested() && turn.stream().rx().stands();
    if stands {
        // First: what is taken from now on is not what the look finds.
        conn.await_emptying();
    }
    Some((look_at(conn, &turn, fd, interest), stands))
}

/// For looks without a turn at what the peer shows.
pub(crate) fn watch(conn: &Conn, fd: BorrowedFd<'_>) -> Option<Watch> {
    let turn = conn.turn(fd, RECEIVE)?;
    turn.stream().rx().watch()
}

/// As [`look()`], and what an edge-triggered observer compares.
#[inline]
pub(crate) fn look_closely(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    interest: u32,
) -> Option<(Look, Marks)> {
    let turn = conn.turn(fd, RECEIVE)?;
    if !turn.receives_on_ring() || turn.stream().rx().to_tcp().is_some() {
        // Else the look does, and what it finds there is new once more at the next.
        follow(conn, &turn, fd);
    }
    // First: what comes in between, and does not show, must be new at the next look.
    let before = arrived(conn, &turn, fd);
    let look = look_at(conn, &turn, fd, interest);
    let came = if look.ready & READ != 0 {
        // Who is told of what shows finds all that is there by now. A second edge would be one of nothing new.
        arrived(conn, &turn, fd)
    } else {
        before
    };
    Some((look, Marks::of(&turn, came, look)))
}

/// One who slept on the connection among others is awake and looks at it: what comes need not ring, unless somebody else sleeps on it.
pub(crate) fn awake(conn: &Conn, fd: BorrowedFd<'_>) {
    // Whoever sleeps says so before he arms, and arms in a turn.
    if let Some(turn) = conn.turn(fd, RECEIVE)
        && turn.stream().rx().is_armed()
        && conn.nobody_sleeps()
        && UNAWARE.load(Ordering::SeqCst) == 0
        && POLLERS.load(Ordering::SeqCst) == 0
        && !turn.stream().holders().is_shared()
        && !turn.nested()
        && !conn.signals()
    {
        turn.stream().rx().disarm();
    }
}

/// The connection need not be noted on a board any more, as far as this process goes: one that forked it, or that it forked, may sleep on that.
pub(crate) fn stand_down(conn: &Conn, fd: BorrowedFd<'_>) {
    if let Some(turn) = conn.turn(fd, RECEIVE)
        && !turn.stream().holders().is_shared()
    {
        turn.stream().rx().stand_down();
    }
}

/// Notes that a thread goes to sleep in `poll`, before it arms.
pub(crate) fn poller_rests() {
    POLLERS.fetch_add(1, Ordering::SeqCst);
}

/// After [`poller_rests`]. One that is cancelled does not come here, which costs doorbells.
pub(crate) fn poller_is_up() {
    let _ = POLLERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
}

static POLLERS: AtomicU32 = AtomicU32::new(0);

/// What one who sleeps on TCP's own events is told that the end of TCP has come: reads it, so that memory shows it.
#[cold]
pub(crate) fn note_end(conn: &Conn, fd: BorrowedFd<'_>) {
    if let Some(turn) = conn.turn(fd, RECEIVE) {
        // What is wrong shows at the next look.
        let _ = turn.drain_to_end(&conn.tcp(fd));
        turn.stream().rx().arm();
    }
}
