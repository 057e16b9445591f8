//! What a call does for the peer beside its own work.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::conn::{Conn, Way};
use crate::epoll;
use crate::flow::{RECEIVE, SEND};
use crate::host::host;
use crate::share::Turn;

/// A receiver that takes nothing may have been killed, and then says nothing in memory. The kernel knows.
#[cold]
pub(crate) fn look_at_peer(conn: &Conn, fd: BorrowedFd<'_>) {
    let Some(Ok(events)) = host().map(|host| host.poll(fd, POLL_RDHUP, 0)) else {
        return;
    };
    let tcp = conn.tcp(fd);
    if events & (POLL_ERR | POLL_HUP | POLL_RDHUP) != 0
        && let Some(turn) = conn.turn(fd, RECEIVE)
    {
        let _ = turn.drain_to_end(&tcp);
    }
    if let Some(turn) = conn.turn(fd, SEND) {
        if events & (POLL_ERR | POLL_HUP) != 0 {
            turn.note_end();
        } else if events & POLL_RDHUP != 0 {
            // If it only sends no more, a doorbell too many does no harm. If it is gone it is reset by that.
            let _ = turn.ring_for_another(&tcp, SEND);
        }
    }
}

/// Puts on TCP what the peer wants there, who is about to leave the ring. If it does not all fit, the next call goes on. True if a call is to look once
/// more: what has come on TCP waited for this, or the connection is over instead.
#[cold]
pub(super) fn serve_back(conn: &Conn, fd: BorrowedFd<'_>) -> bool {
    let mut is_first = false;
    let failed = |flow: Turn<'_>| {
        let was_on_ring = flow.stream().tx().to_tcp().is_none();
        let served = flow.serve_back(&conn.tcp(fd));
        is_first = was_on_ring && flow.stream().tx().to_tcp().is_some();
        conn.heed_call_back(&flow);
        served.is_err()
    };
    if !conn.turn(fd, SEND).is_some_and(failed) || is_first {
        return is_first;
    }
    look_at_peer(conn, fd);
    (conn.turn(fd, RECEIVE)).is_some_and(|turn| turn.kernel_end().is_some())
}

/// Goes to TCP with what this end sends, where it has waited for room for so long that it would for ever. True if it has.
#[cold]
pub(crate) fn end_standstill(conn: &Conn, fd: BorrowedFd<'_>) -> bool {
    let tcp = conn.tcp(fd);
    // What a handler has come into publishes its bytes on the ring.
    let leaves = |turn: Turn<'_>| {
        !turn.nested() && conn.has_stood_still(&turn, &tcp) && turn.leave_ring(&tcp).is_ok()
    };
    let left = conn.turn(fd, SEND).is_some_and(leaves);
    if left {
        conn.note_standstill_ended();
    }
    left
}

/// After a call that gave the program's buffer to the kernel, under which the connection may have been upgraded: no doorbell could go meanwhile.
#[inline]
pub(super) fn pay_late(conn: &Conn, fd: BorrowedFd<'_>) {
    if conn.is_mapped() && (conn.flow.take(RECEIVE)).is_some_and(|flow| flow.owes_bell()) {
        pay_bell(conn, fd);
    }
}

/// What a receive had still to do that was left by a jump.
#[cold]
pub(crate) fn pay_for_left(conn: &Conn, fd: BorrowedFd<'_>) {
    if conn.turn(fd, RECEIVE).is_some_and(|turn| turn.took_bell()) {
        epoll::rang(fd.as_raw_fd(), conn);
    }
    pay_bell(conn, fd);
}

#[cold]
pub(super) fn pay_bell(conn: &Conn, fd: BorrowedFd<'_>) {
    let Some(turn) = conn.turn(fd, SEND) else {
        return;
    };
    let on_ring = turn.sends_on_ring();
    // A connection that is gone has woken its sleepers.
    let _ = turn.pay_bell(&conn.tcp(fd), conn.is_quiet(Way::Out));
    let moved = !on_ring && turn.sends_on_ring();
    drop(turn);
    if moved {
        // The program may be waiting for room on TCP, which is of no use any more.
        epoll::moved(fd.as_raw_fd(), conn);
    }
}

const POLL_ERR: i16 = 0x8;

const POLL_HUP: i16 = 0x10;

const POLL_RDHUP: i16 = 0x2000;
