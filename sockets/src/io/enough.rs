//! What a receive waits for that asks for more than the first byte (`SO_RCVLOWAT`, `MSG_WAITALL`).

use std::os::fd::BorrowedFd;

use crate::conn::Conn;
use crate::ends::at_mark;
use crate::flow::{Flow, Stop, Take};
use crate::kernel::{Kernel, Tcp};

/// Whether who sleeps would wake at once, for there is something, if not enough.
#[cold]
pub(super) fn shows_some(flow: &Flow, tcp: &Tcp<'_>) -> bool {
    there(flow, tcp).is_ok_and(|n| n > 0)
        || !flow.receives_on_ring() && tcp.is_at_mark() && tcp.has_past_mark(1)
}

/// How much can be received, on TCP and on the ring, up to an urgent byte.
fn there(flow: &Flow, tcp: &Tcp<'_>) -> Result<usize, Stop> {
    if flow.receives_on_ring() {
        flow.available()
    } else {
        flow.waiting(tcp)
    }
}

/// Follows the sender to the ring, and back to TCP, if all that came before has been taken.
#[cold]
pub(super) fn follow(flow: &Flow, tcp: &Tcp<'_>) {
    let rx = flow.stream().rx();
    if !flow.receives_on_ring() {
        // What is wrong the attempt tells.
        let _ = flow.follow(tcp);
    } else if rx.to_tcp().is_some()
        && flow.available() == Ok(0)
        && let Err(stop) = flow.receive(tcp, &mut [], Take::Skip(0))
    {
        flow.tell_later(stop);
    }
}

/// Whether `enough` bytes are there, on TCP and on the ring, or no more will come.
#[cold]
pub(super) fn ends_soon(flow: &Flow, tcp: &Tcp<'_>, enough: usize) -> bool {
    there(flow, tcp).map_or(true, |n| n >= enough)
        || flow.peer_finished()
        || flow.is_to_finish() && flow.has_all_of_tcp(tcp)
        || flow.read_is_shut()
        || flow.receives_on_ring() && flow.stream().rx().to_tcp().is_some()
        || !flow.receives_on_ring() && tcp.has_ended()
        || ends_at_mark(flow, tcp, enough)
}

/// Whether an urgent byte is on TCP that ends a receive: behind others, for it goes on past one that is the next.
#[cold]
fn ends_at_mark(flow: &Flow, tcp: &Tcp<'_>, enough: usize) -> bool {
    if flow.receives_on_ring() && flow.stream().rx().mark().is_none() {
        return false;
    }
    if !flow.receives_on_ring() && tcp.is_at_mark() {
        tcp.has_past_mark(enough)
    } else {
        tcp.has_mark()
    }
}

/// Whether an urgent byte comes next: who has received something receives no more then.
pub(super) fn is_at_mark(conn: &Conn, flow: &Flow, tcp: &Tcp<'_>, fd: BorrowedFd<'_>) -> bool {
    let goes_on = flow.receives_on_ring() && flow.stream().rx().to_tcp().is_none();
    !goes_on && at_mark(conn, fd).unwrap_or_else(|| tcp.is_at_mark())
}
