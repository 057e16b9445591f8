//! What is on TCP: before the ring, and after it.

use std::io::{IoSlice, IoSliceMut};

use sys::errno::Errno;
use sys::stream::{FIN, GONE};
use sys::sync::Ordering;

use super::back::back_at;
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
        {
            let taken = self.taken(kernel)?;
            if rx.taken_from_tcp().is_none() {
                rx.set_taken_from_tcp(taken);
            }
            if taken >= end {
                self.follow_to(ON_RING);
            }
        }
        Ok(())
    }

    /// Begins to count what is taken from TCP: nobody takes any without a turn from consent on, and a connection that is over
    /// has no counts in the kernel.
    pub(super) fn begin_count(&self, kernel: &impl Kernel) {
        let rx = self.stream.rx();
        if rx.taken_from_tcp().is_none()
            && rx.consented()
            && let Ok(taken) = self.taken(kernel)
        {
            rx.set_taken_from_tcp(taken);
        }
    }

    /// `n` bytes more were taken from TCP.
    pub(super) fn count(&self, n: usize) {
        let rx = self.stream.rx();
        if let Some(taken) = rx.taken_from_tcp() {
            rx.set_taken_from_tcp(taken.saturating_add(n as u64));
        }
    }

    /// How much was taken from TCP.
    pub(super) fn taken(&self, kernel: &impl Kernel) -> Result<u64, Errno> {
        let rx = self.stream.rx();
        // Since the sender has gone back, one who knows nothing of rings may send urgent data there.
        let is_marked = || back_at(rx).is_some() && kernel.has_mark();
        if rx.mark().is_some() || is_marked() {
            kernel.taken_past_mark()
        } else {
            kernel.taken()
        }
    }

    /// As [`Flow::taken`], and as it was counted here where the kernel, of a connection that is over, says no more.
    pub(super) fn taken_in_all(&self, kernel: &impl Kernel) -> Result<u64, Errno> {
        match self.taken(kernel) {
            Err(Errno::NOTCONN) => self.stream.rx().taken_from_tcp().ok_or(Errno::NOTCONN),
            taken => taken,
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
        self.go_to_ring(written);
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
        if before && self.is_called(kernel) {
            return Err(Stop::Again);
        }
        if before {
            self.begin_count(kernel);
        }
        if before
            && let Some(end) = rx.to_ring()
            && !(take.leaves() && self.was_never_on_ring()?)
        {
            limit = match self.taken(kernel) {
                Ok(taken) => usize::try_from(end.saturating_sub(taken)).unwrap_or(usize::MAX),
                // Ended on both sides, the kernel counts no more: we did, or what there is, is there.
                Err(Errno::NOTCONN) => match (rx.taken_from_tcp(), kernel.peek(&mut [0])) {
                    (Some(taken), Ok(n)) if n > 0 || taken >= end => {
                        usize::try_from(end.saturating_sub(taken)).unwrap_or(usize::MAX)
                    }
                    (Some(taken), Err(errno)) if taken >= end => {
                        self.note_error(errno);
                        0
                    }
                    // All that is there is the program's, if no doorbell ever was.
                    (None, Ok(n)) if n > 0 && back_at(rx) == Some(end) => usize::MAX - 1,
                    (None, Ok(0)) => 0,
                    // What died with the sender on TCP came before what is on the ring.
                    (_, Err(errno)) => {
                        self.note_error(errno);
                        return Err(self.told(errno.into()));
                    }
                    (_, Ok(_)) if self.error_is_told() => return Err(Stop::End),
                    // So it did if another call was told the error that this one should have been; and no error is worse than a doorbell for a byte.
                    (_, Ok(_)) => {
                        self.note_error(Errno::CONNRESET);
                        return Err(self.told(Stop::Failed(Errno::CONNRESET)));
                    }
                },
                Err(errno) => return Err(errno.into()),
            };
            if limit == 0 {
                self.follow_to(ON_RING);
                return self.receive_here(kernel, into, take);
            }
        }
        // A call of the kernel's begins behind an urgent byte that is next, and one receive ends before it.
        let mut begun = false;
        let more = |room: &mut [u8]| {
            if begun && kernel.is_at_mark() {
                return Err(Errno::AGAIN);
            }
            begun = true;
            self.hear(kernel.recv(room))
        };
        let n = match take {
            Take::Skip(most) => skip(most.min(limit), more),
            Take::Read => fill(into, limit, more),
            Take::Peek => self.peek_on_tcp(kernel, into, limit),
            Take::Count(most) => match self.hear(kernel.peek(&mut [0])) {
                Ok(0) => Ok(0),
                Ok(_) => {
                    let queued = kernel.queued().map_or(1, |queued| queued.max(1));
                    Ok(queued.min(most).min(limit))
                }
                Err(errno) => Err(errno.into()),
            },
        }
        .map_err(|stop| self.told(stop))?;
        if before && !take.leaves() {
            self.count(n);
        }
        if before
            && limit == usize::MAX
            && let Some(end) = rx.to_ring()
            && !self.was_never_on_ring()?
        {
            // The sender went to the ring while we read: what we have beyond that point are doorbells.
            let peeked = if take.leaves() { n as u64 } else { 0 };
            let taken = match self.taken(kernel) {
                Ok(taken) => taken + peeked,
                // Ended on both sides, the kernel counts no more, or it refuses to say: we did. Else it brought no doorbell with the last bytes, or they
                // came late.
                Err(errno) => match rx.taken_from_tcp() {
                    Some(taken) => taken + peeked,
                    None if errno == Errno::NOTCONN => end.saturating_add(u64::from(n == 0)),
                    None => return Err(errno.into()),
                },
            };
            if !take.leaves() && back_at(rx).is_some_and(|back| taken > back) {
                // It went back, too, and we have some that come after what is on the ring, and cannot be told in their turn. What comes before can.
                self.abort(kernel);
            }
            let beyond = usize::try_from(taken.saturating_sub(end))
                .unwrap_or(usize::MAX)
                .min(n);
            if beyond == n && n > 0 {
                return self.receive_here(kernel, into, take);
            }
            return if n == 0 {
                self.receive_here(kernel, into, take)
            } else {
                Ok(n - beyond)
            };
        }
        let wanted = match take {
            Take::Skip(most) | Take::Count(most) => most > 0,
            Take::Read | Take::Peek => !into.iter().all(|buffer| buffer.is_empty()),
        };
        if n == 0 && wanted {
            self.learn_error();
            return Err(self.take_error().map_or(Stop::End, Stop::Failed));
        }
        Ok(n)
    }

    /// Whether the sender was on the ring, and put nothing there, not even a doorbell on TCP: all that comes is the program's.
    fn was_never_on_ring(&self) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        Ok(rx.to_ring().is_some() && back_at(rx) == rx.to_ring() && rx.available()? == 0)
    }

    /// Sends on TCP, before the ring or after it: what the program sends in one call goes in one, for readers there are that count on it.
    pub(super) fn send_plain(
        &self,
        kernel: &impl Kernel,
        pieces: &Pieces<'_>,
    ) -> Result<usize, Stop> {
        let mut rest = pieces.iter().filter(|piece| !piece.is_empty());
        let mut sent = 0;
        loop {
            let mut together = [IoSlice::new(&[]); TOGETHER];
            let count = together
                .iter_mut()
                .zip(&mut rest)
                .map(|(place, piece)| *place = IoSlice::new(piece))
                .count();
            let together = together.get(..count).unwrap_or_default();
            let said = match together {
                [] => return Ok(sent),
                [piece] => kernel.send(piece),
                pieces => kernel.send_pieces(pieces),
            };
            match self.hear(said) {
                Ok(n) => {
                    sent += n;
                    if n < together.iter().map(|piece| piece.len()).sum() {
                        return Ok(sent);
                    }
                }
                Err(_) if sent > 0 => return Ok(sent),
                Err(errno) => return Err(self.told(errno.into())),
            }
        }
    }

    /// What to tell the program of an orderly end of TCP. An end that left with bytes unread and without a word in memory, for its process ended without
    /// a `close`, is one that the kernel would have reset: it does not know of the bytes on the ring.
    pub(super) fn end_means(&self) -> u32 {
        let said = self.stream.rx().finished() != 0 || self.stream.peer_deaf();
        let tx = self.stream.tx();
        // Who left for TCP has not gone with that.
        if !said && self.sends_on_ring() && tx.drained() == Ok(false) && !tx.is_left() {
            Errno::CONNRESET.raw_os_error().cast_unsigned()
        } else {
            ENDED
        }
    }

    /// What to tell the program of an error on a connection that carried doorbells, `None` for an orderly end: a peer that was killed with one of
    /// ours unread is reset, though it had read all of the program's bytes, and the program would have seen an orderly end. And what it sent over TCP may
    /// have died with it.
    pub(super) fn meant(&self, errno: Errno) -> Option<Errno> {
        let all_came = self.receives_on_ring() && back_at(self.stream.rx()).is_none();
        if errno != Errno::CONNRESET {
            return Some(errno);
        }
        if all_came && self.only_bells_are_unread() {
            return None;
        }
        // TCP has not heard of an end that was said in memory.
        Some(if self.peer_has_shut() {
            Errno::PIPE
        } else {
            errno
        })
    }

    /// Whether the peer has said in memory that it sends no more, and went on.
    pub(super) fn peer_has_shut(&self) -> bool {
        self.receives_on_ring() && self.stream.rx().finished() & FIN != 0
    }

    /// Whether nothing but doorbells, which go where the ring is, can have been unread when the peer went, and one can. One that closed is deaf, and says
    /// that it has [`GONE`] unless it means a reset; what the program sends it from then on goes over TCP, and is answered by one. Where no doorbell was
    /// unread, somebody else has ended the connection (`ss -K`), in the middle of what the peer had to say for all we know.
    pub(super) fn only_bells_are_unread(&self) -> bool {
        let gone = self.stream.rx().finished() & GONE != 0;
        let closed = gone || self.stream.peer_deaf();
        let in_order = !self.stream.is_deaf()
            && (!closed || (gone && self.spoke.load(Ordering::Relaxed) == 0));
        let tx = self.stream.tx();
        in_order
            && self.sends_on_ring()
            && tx.drained() == Ok(true)
            && !tx.is_unread_before_ring()
            && tx.untaken_from_tcp() != Some(0)
    }
}

/// So many pieces go in one call of the kernel's. What has more is rare, and may be read in parts.
pub(super) const TOGETHER: usize = 64;
