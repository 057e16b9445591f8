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
        let most = match flow.sends_on_ring() {
            _ if nested || left < LONG => left,
            true => match next_round(conn, flow, left) {
                Some(most) => most,
                None if sent == skip => return Err(Stop::Again),
                None => return Ok(sent - skip),
            },
            // It may move to the ring with this one.
            false if may_switch => left.min(flow.stream().tx().reach()),
            false => left,
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
///
/// `None` if the turn is to begin anew: a handler that came into the wait has had others act at this end, or the direction go back to TCP.
#[inline]
fn next_round(conn: &Conn, flow: &Flow, left: usize) -> Option<usize> {
    let tx = flow.stream().tx();
    if flow.stream().peer_deaf() {
        // Who has gone, or reads no more, empties nothing, and all of it is for TCP to answer.
        return Some(left);
    }
    let fitting = tx.fitting(left);
    if fitting == left || fitting >= LONG {
        return Some(fitting);
    }
    let empties = empties(conn, flow);
    if tx.is_broken_off() || !flow.sends_on_ring() {
        return None;
    }
    if empties {
        return Some(tx.reach().min(left));
    }
    tx.grow();
    // Where a handler wrote meanwhile it may be nothing.
    Some(tx.fitting(left).max(LONG))
}

/// Whether the receiver soon has all that is in the ring.
#[cold]
fn empties(conn: &Conn, flow: &Flow) -> bool {
    let mut spin = conn.memory.begin();
    let tx = flow.stream().tx();
    while tx.drained() == Ok(false) {
        if tx.is_broken_off() || !spin.again() {
            // The waits for answers, which have the same patience, have met nothing in vain.
            spin.paid();
            return false;
        }
    }
    spin.hit();
    true
}

/// What is shorter does not wait.
const LONG: usize = 16 << 10;
