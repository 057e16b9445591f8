//! Long pieces go into the ring in rounds, so that a stream stays in memory that is there.

use std::io::IoSlice;

use crate::conn::Conn;
use crate::flow::{Flow, Pieces, Stop};
use crate::kernel::Kernel;

/// Sends what there is room for of the buffers, but for the first `skip` bytes of the `wanted` that they are, in a turn that is `nested` or not.
/// `may_switch` is [`Flow::send`]'s.
///
/// # Errors
/// As [`Flow::send`], if nothing was sent.
#[inline]
pub(super) fn send_in_rounds(
    conn: &Conn,
    flow: &Flow,
    tcp: &impl Kernel,
    buffers: &[IoSlice<'_>],
    (skip, wanted): (usize, usize),
    nested: bool,
    may_switch: bool,
) -> Result<usize, Stop> {
    let mut sent = skip;
    loop {
        let left = wanted - sent;
        let most = if nested || left < LONG || !flow.sends_on_ring() {
            left
        } else {
            next_round(conn, flow, left)
        };
        let pieces = Pieces {
            buffers,
            skip: sent,
            most,
        };
        match flow.send(tcp, &pieces, nested, may_switch) {
            Ok(n) => {
                sent += n;
                if n < most || sent == wanted {
                    return Ok(sent - skip);
                }
            }
            Err(stop) if sent == skip => return Err(stop),
            Err(stop) => {
                if stop != Stop::Again {
                    flow.tell_later(stop);
                }
                return Ok(sent - skip);
            }
        }
    }
}

/// How many of `left` bytes come next. Where they would go beyond what the ring has grown to, the receiver first gets some time to empty that: who is rung
/// for all that is there, and reads, does it in less than new memory takes. One that does not lets it grow, so it is waited for a few times at most.
#[inline]
fn next_round(conn: &Conn, flow: &Flow, left: usize) -> usize {
    let tx = flow.stream().tx();
    let fitting = tx.fitting(left);
    if fitting == left || fitting >= LONG {
        return fitting;
    }
    if empties(conn, flow) {
        return tx.reach().min(left);
    }
    tx.grow();
    // Where a handler wrote meanwhile it may be nothing.
    tx.fitting(left).max(LONG)
}

/// Whether the receiver soon has all that is in the ring.
#[cold]
fn empties(conn: &Conn, flow: &Flow) -> bool {
    let mut spin = conn.memory.begin();
    while flow.stream().tx().drained() == Ok(false) {
        if !spin.again() {
            return false;
        }
    }
    spin.hit();
    true
}

/// What is shorter does not wait.
const LONG: usize = 16 << 10;
