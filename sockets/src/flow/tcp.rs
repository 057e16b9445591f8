//! What is on TCP: before the ring, and after it.

use std::io::IoSliceMut;

use sys::errno::Errno;
use sys::stream::GONE;

use super::{BEFORE, ENDED, Flow, ON_RING, Pieces, Stop, Take};
use crate::kernel::{Kernel, fill, skip};

impl Flow {
    /// Follows the sender to the ring if all that it had put on TCP before has been taken; in a turn of side [`RECEIVE`](super::RECEIVE).
    ///
    /// # Errors
    /// If the kernel does not say how much was taken.
    pub fn follow(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        let rx = self.stream.rx();
        if rx.phase() == BEFORE
            && let Some(end) = rx.to_ring()
            && self.taken(kernel)? >= end
        {
            rx.set_phase(ON_RING);
        }
        Ok(())
    }

    /// How much was taken from TCP.
    pub(super) fn taken(&self, kernel: &impl Kernel) -> Result<u64, Errno> {
        if self.stream.rx().mark().is_some() {
            kernel.taken_past_mark()
        } else {
            kernel.taken()
        }
    }

    /// Moves the sending direction to the ring, if the receiver has consented.
    #[cold]
    pub(super) fn switch(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let tx = self.stream.tx();
        if tx.to_ring().is_some() || !tx.consented() || tx.back_wanted() {
            return Ok(false);
        }
        // After an end on TCP no doorbell can follow. And a connection that is over has no counts; what to say of it the kernel knows.
        let (false, Ok(written)) = (kernel.has_finished(), kernel.written()) else {
            return Ok(false);
        };
        tx.set_to_ring(written);
        Ok(true)
    }

    /// From TCP, before the ring or after it.
    #[cold]
    pub(super) fn receive_plain(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<usize, Stop> {
        let rx = self.stream.rx();
        let before = rx.phase() == BEFORE;
        let mut limit = usize::MAX;
        if before && let Some(end) = rx.to_ring() {
            limit = match self.taken(kernel) {
                Ok(taken) => usize::try_from(end.saturating_sub(taken)).unwrap_or(usize::MAX),
                // Ended on both sides, the kernel counts no more: what there is, is there.
                Err(Errno::NOTCONN) => match kernel.peek(&mut [0]) {
                    Ok(n) if n > 0 => usize::MAX - 1,
                    _ => 0,
                },
                Err(errno) => return Err(errno.into()),
            };
            if limit == 0 {
                rx.set_phase(ON_RING);
                return self.receive(kernel, into, take);
            }
        }
        let n = match take {
            Take::Skip(most) => skip(kernel, most.min(limit))?,
            Take::Read => fill(into, limit, |room| kernel.recv(room))?,
            // One call, for a second would see the same bytes again.
            Take::Peek => fill(into.get_mut(..1).unwrap_or_default(), limit, |room| {
                kernel.peek(room)
            })?,
        };
        if before
            && limit == usize::MAX
            && let Some(end) = rx.to_ring()
        {
            // The sender went to the ring while we read: what we have beyond that point are doorbells.
            let peeked = if take == Take::Peek { n as u64 } else { 0 };
            let taken = match self.taken(kernel) {
                Ok(taken) => taken + peeked,
                // Ended on both sides, the kernel counts no more. It brought no doorbell with the last bytes, or they came late.
                Err(Errno::NOTCONN) => end.saturating_add(u64::from(n == 0)),
                Err(errno) => return Err(errno.into()),
            };
            let beyond = usize::try_from(taken.saturating_sub(end))
                .unwrap_or(usize::MAX)
                .min(n);
            if beyond == n && n > 0 {
                return self.receive(kernel, into, take);
            }
            return if n == 0 {
                self.receive(kernel, into, take)
            } else {
                Ok(n - beyond)
            };
        }
        if n == 0 && !into.iter().all(|buffer| buffer.is_empty()) {
            return Err(self.take_error().map_or(Stop::End, Stop::Failed));
        }
        Ok(n)
    }

    /// What to tell the program of an error on a connection that carried doorbells: a peer that was killed with one of ours unread is
    /// reset, though it had read all of the program's bytes, and the program would have seen an orderly end. One that closed, and is deaf, took the
    /// doorbells first, so if it is reset it meant that.
    pub(super) fn reset_means(&self, errno: Errno) -> u32 {
        let closed = self.stream.rx().finished() & GONE != 0 || self.stream.peer_deaf();
        if errno == Errno::CONNRESET && !closed && self.stream.tx().drained() == Ok(true) {
            ENDED
        } else {
            errno.raw_os_error().cast_unsigned()
        }
    }
}

pub(super) fn send_plain(kernel: &impl Kernel, pieces: &Pieces<'_>) -> Result<usize, Stop> {
    let mut sent = 0;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        match kernel.send(piece) {
            Ok(n) => {
                sent += n;
                if n < piece.len() {
                    break;
                }
            }
            Err(_) if sent > 0 => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(sent)
}
