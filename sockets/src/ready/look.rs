//! What a connection shows.

use std::os::fd::{AsRawFd, BorrowedFd};

use sys::sync::Ordering;

use super::Look;
use super::bits::{ALWAYS, ERR, HUP, IN, PRI, RDHUP, READ, WRITE};
use crate::conn::Conn;
use crate::flow::{Flow, RECEIVE, SEND};
use crate::kernel::Kernel;

/// What an edge-triggered observer compares with what he was last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Changes with each byte that arrives, and with the end.
    pub(crate) input: u64,
    /// Bytes sent to the ring in all.
    pub(crate) sent: u64,
    /// When so many have been sent, the ring may have been full.
    pub(crate) full_at: u64,
}

impl Marks {
    #[inline]
    pub(super) fn of(flow: &Flow, arrived: u64, look: Look) -> Self {
        let tx = flow.stream().tx();
        // As `look` has it: what it does not tell is to be told.
        let ended = if flow.receives_on_ring() || flow.is_to_finish() {
            look.ready & RDHUP != 0
        } else {
            flow.kernel_end().is_some()
        };
        let ended = u64::from(ended);
        let sent = tx.tail();
        let room = tx.room(1).unwrap_or(0) as u64;
        Self {
            input: arrived ^ ended << 63 ^ u64::from(flow.read_is_shut()) << 62,
            sent,
            full_at: sent.wrapping_add(room),
        }
    }
}

/// Bytes that have come by the ring. They come once more when what came over TCP before them has all been taken: who has got less than it asked for at the
/// end of that waits for an edge.
#[inline]
pub(super) fn arrived(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> u64 {
    let rx = flow.stream().rx();
    let by_ring = || rx.available().unwrap_or(0) as u64;
    if flow.receives_on_ring() {
        rx.head().wrapping_add(by_ring())
    } else if conn.low_water.load(Ordering::Relaxed) > 1 {
        // Of these the kernel, which does not know what is enough, tells nothing.
        let on_tcp = sys::tcp::received(fd).unwrap_or(0).wrapping_add(by_ring());
        rx.head().wrapping_add(on_tcp) ^ ON_TCP
    } else if flow.has_bytes_before_ring() && rx.has_bytes() == Ok(true) {
        rx.head().wrapping_add(by_ring()) ^ BEHIND
    } else {
        rx.head()
    }
}

/// In [`Marks::input`], for counts of one kind to differ from those of the others.
const BEHIND: u64 = 1 << 61;
const ON_TCP: u64 = 1 << 60;

// What is put together in memory and read back as a whole is waited for: 15 ns a look.
#[inline(always)]
pub(super) fn look_at(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>, interest: u32) -> Look {
    if !is_usual(conn, flow, interest) {
        return look_at_all(conn, flow, fd, interest);
    }
    Look {
        ready: usually_ready(flow, interest),
        ask: PRI,
        hush: 0,
        settled: true,
        in_memory: flow.sends_on_ring(),
    }
}

/// [`Look::ready`] of a connection that [is usual](is_usual). A peer that spoils the stream is for the call that moves bytes to find.
#[inline]
fn usually_ready(flow: &Flow, interest: u32) -> u32 {
    let readable = flow.stream().rx().has_bytes() != Ok(false);
    let writable = interest & WRITE != 0 && flow.stream().tx().writable() != Ok(false);
    let bits = |is_ready: bool, bits: u32| if is_ready { bits } else { 0 };
    bits(readable, READ) | bits(writable, WRITE)
}

/// Whether both directions are on the ring, as far as they are asked for, and nothing has ended: most connections at any time.
#[inline]
fn is_usual(conn: &Conn, flow: &Flow, interest: u32) -> bool {
    flow.goes_on_in_memory()
        && (interest & WRITE == 0 || flow.sends_on_ring() && flow.stream().tx().finished() == 0)
        && conn.low_water.load(Ordering::Relaxed) <= 1
}

/// [`Look::ask`] alone.
#[inline]
pub(super) fn asked_of_kernel(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>, interest: u32) -> u32 {
    if is_usual(conn, flow, interest) {
        PRI
    } else {
        look_at_all(conn, flow, fd, interest).ask
    }
}

#[inline(never)]
fn look_at_all(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>, interest: u32) -> Look {
    let mut look = Look {
        ready: 0,
        ask: PRI,
        hush: 0,
        settled: false,
        in_memory: false,
    };
    let mut awaits_tcp = false;
    if !flow.receives_on_ring() || flow.stream().rx().to_tcp().is_some() {
        awaits_tcp = follow(conn, flow, fd);
    }
    if flow.stream().peer_deaf() && flow.kernel_end().is_none() {
        // It is closing or closed. How, TCP tells: with bytes unread it is reset.
        last_words(conn, flow, fd);
    }
    if awaits_tcp {
        look.ask |= READ | RDHUP;
    } else if flow.receives_on_ring() {
        if flow.readable() && enough(conn, flow) {
            look.ready |= READ;
        }
        if flow.peer_finished() || flow.read_is_shut() {
            look.ready |= READ | RDHUP;
            look.ready |= if has_finished(conn, flow, fd) { HUP } else { 0 };
        }
        if flow.stream().rx().to_tcp().is_some() {
            // What the sender says from then on it says there, its end, too; and bytes there are news where some are unread here.
            look.ask |= READ | RDHUP | HUP;
            // But not that both have ended, where this end said so in memory.
            let both_ended = flow.finished() && has_ended(fd);
            look.ready |= if both_ended { HUP } else { 0 };
        }
    } else if flow.is_to_finish() && flow.has_all_of_tcp(&conn.tcp(fd)) {
        // The kernel does not know that it has, but whether the connection is over.
        look.ask |= HUP;
        look.ready |= READ | RDHUP;
        look.ready |= if has_finished(conn, flow, fd) { HUP } else { 0 };
    } else if flow.finished() && has_ended(fd) {
        // The kernel does not know that we have, too, but whether that was an error.
        look.ask |= ERR;
        look.ready |= READ | RDHUP | HUP;
    } else if conn.low_water.load(Ordering::Relaxed) <= 1 {
        look.ask |= READ | RDHUP;
        look.ready |= if has_more_behind(conn, flow, fd) {
            READ
        } else {
            0
        };
    } else {
        look.ask |= RDHUP | HUP;
        look.ready |= if enough_in_all(conn, flow, fd) {
            READ
        } else {
            0
        };
    }
    let deaf = flow.stream().peer_deaf();
    look.settled = flow.receives_on_ring() && flow.stream().rx().to_tcp().is_none() && !deaf;
    if interest & WRITE == 0 {
        // The lines of the other direction are as far away as those of this one.
    } else if flow.sends_on_ring() && !deaf {
        look.ready |= if flow.writable() { WRITE } else { 0 };
    } else {
        look.ask |= WRITE;
    }
    if let Some(end) = flow.kernel_end() {
        look.ready |= if end.is_some() { ERR } else { 0 };
        look.ready |= if end.is_some() || flow.error_is_told() {
            HUP
        } else {
            0
        };
        look.ask |= ALWAYS;
        look.settled = false;
    }
    if flow.stream().is_deaf() {
        // What comes now the kernel answers with a reset, of which nothing is said in memory.
        look.ask |= ALWAYS;
        look.settled = false;
    }
    if flow.is_reset_by_bell(&conn.tcp(fd)) {
        look.hush = if flow.finished() { ERR } else { ALWAYS };
    }
    look
}

/// Follows a sender that has moved to the ring, or back; whether what comes before the way back has still to come over TCP.
#[cold]
pub(super) fn follow(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> bool {
    let tcp = conn.tcp(fd);
    // The same turn again, and against other processes.
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return false;
    };
    if turn.owes_back()
        && let Some(send) = conn.turn(fd, SEND)
    {
        // Until the peer is answered nothing is taken off TCP, and who only looks makes no other call.
        let _ = send.serve_back(&tcp);
        conn.heed_call_back(&send);
    }
    // What is wrong with the connection is for the call that moves bytes to find.
    if !flow.receives_on_ring() {
        let _ = flow.follow(&tcp);
    }
    // One that has gone there and back since is followed all the way, or its way back would look like bytes.
    if !flow.receives_on_ring() || flow.stream().rx().to_tcp().is_none() {
        return false;
    }
    if flow.available() == Ok(0) {
        let _ = flow.came_back(&tcp);
    }
    flow.receives_on_ring() && flow.awaits_tcp(&tcp)
}

/// Reads TCP's end, if it has come.
#[cold]
fn last_words(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) {
    // As in `follow`, for both.
    if let Some(_turn) = conn.turn(fd, RECEIVE) {
        let _ = flow.drain_to_end(&conn.tcp(fd));
    }
}

/// Whether nothing waits on TCP, and no end.
#[cold]
pub(crate) fn is_silent(fd: BorrowedFd<'_>) -> bool {
    sys::epoll::shows(fd.as_raw_fd(), (IN | RDHUP) as u16) == 0
}

/// Whether the peer has ended, as TCP has it.
#[cold]
pub(crate) fn has_ended(fd: BorrowedFd<'_>) -> bool {
    sys::epoll::shows(fd.as_raw_fd(), RDHUP as u16) != 0
}

/// Whether this end sends no more, in memory or on TCP.
fn has_finished(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> bool {
    flow.finished() || (!flow.sends_on_ring() && conn.tcp(fd).has_finished())
}

/// Whether bytes are there on the ring, and on TCP some from before them: of those on the ring the kernel tells nobody.
#[cold]
fn has_more_behind(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> bool {
    flow.has_bytes_before_ring()
        && flow.stream().rx().has_bytes() == Ok(true)
        && conn.tcp(fd).queued().is_ok_and(|queued| queued > 0)
}

/// `SO_RCVLOWAT`: less than that is nothing yet.
#[inline]
fn enough(conn: &Conn, flow: &Flow) -> bool {
    let least = conn.low_water.load(Ordering::Relaxed) as usize;
    least <= 1
        // What was sent behind is on TCP.
        || flow.stream().rx().to_tcp().is_some()
        || flow
            .available()
            .map_or(true, |n| n >= least.min(low_water_max(flow)) || n == 0)
}

/// As [`enough`], where bytes are on TCP, and perhaps on the ring after them; the kernel knows nothing of `SO_RCVLOWAT` then.
#[cold]
fn enough_in_all(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> bool {
    let least = (conn.low_water.load(Ordering::Relaxed) as usize).min(low_water_max(flow));
    let Ok(there) = flow.waiting(&conn.tcp(fd)) else {
        return true;
    };
    there >= least || has_ended(fd) || has_enough_past_mark(conn, flow, fd, there, least)
}

/// Whether `least` bytes are on TCP, where an urgent one comes after those that are `there`.
#[cold]
fn has_enough_past_mark(
    conn: &Conn,
    flow: &Flow,
    fd: BorrowedFd<'_>,
    there: usize,
    least: usize,
) -> bool {
    let tcp = conn.tcp(fd);
    let at_mark = tcp.is_at_mark();
    let is_there = || flow.stream().rx().mark().is_some() || tcp.has_mark();
    if flow.has_bytes_before_ring() || !(at_mark || (there > 0 && is_there())) {
        return false;
    }
    tcp.has_past_mark(least)
}

/// More than this never lies in a ring that a sender waits to fill.
fn low_water_max(flow: &Flow) -> usize {
    flow.stream().size().bytes() / 4
}
