//! What a receive waits for that asks for more than the first byte (`SO_RCVLOWAT`, `MSG_WAITALL`).

use std::os::fd::BorrowedFd;

use crate::conn::Conn;
use crate::ends::at_mark;
use crate::flow::{Flow, Stop};
use crate::kernel::{Kernel, Tcp};

/// How much can be received, on TCP and on the ring.
pub(super) fn there(flow: &Flow, tcp: &Tcp<'_>) -> Result<usize, Stop> {
    if flow.receives_on_ring() {
        flow.available()
    } else {
        flow.waiting(tcp)
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
        // A receive ends at an urgent byte.
        || (!flow.receives_on_ring() || flow.stream().rx().mark().is_some()) && tcp.has_mark()
}

/// Whether an urgent byte comes next: who has received something receives no more then.
pub(super) fn is_at_mark(conn: &Conn, flow: &Flow, tcp: &Tcp<'_>, fd: BorrowedFd<'_>) -> bool {
    let goes_on = flow.receives_on_ring() && flow.stream().rx().to_tcp().is_none();
    !goes_on && at_mark(conn, fd).unwrap_or_else(|| tcp.is_at_mark())
}
