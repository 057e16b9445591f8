//! What one receive takes in more than one piece.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use super::enough::is_at_mark;
use crate::conn::Conn;
use crate::flow::{Flow, Stop, Take};
use crate::kernel::Tcp;

/// After a receive that has taken something: goes on in the same turn, without waiting, where the direction moves. So what a look or FIONREAD has told of on both
/// sides comes in one call, as natively. `got` is how far it is, and how far it may get; the result is how far it has got.
pub(super) fn receive_behind(
    conn: &Conn,
    flow: &Flow,
    tcp: &Tcp<'_>,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    got: Range<usize>,
    take: Take,
) -> usize {
    let Range {
        start: mut got,
        end: wanted,
    } = got;
    let mut goes_on = moves(flow);
    while goes_on && got < wanted && !is_at_mark(conn, flow, tcp, fd) {
        match receive_more(flow, tcp, into, got, take) {
            Ok(0) | Err(Stop::Again | Stop::End) => break,
            Ok(n) => got += n,
            Err(stop) => {
                flow.tell_later(stop);
                break;
            }
        }
        goes_on = moves(flow) || fills(into, got);
    }
    got
}

/// Whether the bytes that come next may lie elsewhere than those before.
fn moves(flow: &Flow) -> bool {
    let rx = flow.stream().rx();
    if flow.receives_on_ring() {
        rx.to_tcp().is_some()
    } else {
        flow.has_bytes_before_ring()
    }
}

/// Whether that is where one of the buffers ends.
fn fills(into: &[IoSliceMut<'_>], got: usize) -> bool {
    let mut end = 0;
    into.iter().any(|buffer| {
        end += buffer.len();
        end == got
    })
}

/// Goes on after the first `got` bytes of the buffers.
pub(super) fn receive_more(
    flow: &Flow,
    tcp: &Tcp<'_>,
    into: &mut [IoSliceMut<'_>],
    got: usize,
    take: Take,
) -> Result<usize, Stop> {
    if let Take::Skip(most) = take {
        return flow.receive(tcp, into, Take::Skip(most.saturating_sub(got)));
    }
    let mut skip = got;
    for buffer in into.iter_mut() {
        if skip >= buffer.len() {
            skip -= buffer.len();
            continue;
        }
        let Some(rest) = buffer.get_mut(skip..) else {
            break;
        };
        return flow.receive(tcp, &mut [IoSliceMut::new(rest)], take);
    }
    Ok(0)
}
