use std::fmt;

use super::layout::Direction;
use super::{BACK, Corrupt, RING, SLEEPER, Stream};
use crate::mem::Store;
use crate::sync::{Ordering, exchange_here, mapped::AtomicU32};

/// The direction in which an end sends. What changes it is called in a turn of side 0.
#[derive(Clone, Copy)]
pub struct Tx<'a> {
    pub(super) stream: &'a Stream,
    pub(super) index: usize,
}

impl Tx<'_> {
    /// Copies as much as there is room for into the ring and publishes it: how many bytes, and whether to ring the doorbell ([`SLEEPER`], [`BACK`]).
    ///
    /// `nested` is [`Turn::nested`](crate::turn::Turn::nested). `pieces` is called again from the start if a signal handler wrote in between.
    ///
    /// # Errors
    /// [`Corrupt`] if the receiver's cursor is impossible.
    #[inline]
    pub fn write<'b, I>(
        &self,
        nested: bool,
        mut pieces: impl FnMut() -> I,
    ) -> Result<(usize, u32), Corrupt>
    where
        I: Iterator<Item = &'b [u8]>,
    {
        let words = self.words();
        loop {
            let published = &words.published.0;
            let tail = published.tail.load(Ordering::Relaxed);
            let Some(base) = self.base(tail, nested)? else {
                continue;
            };
            let mut at = tail;
            let mut room = self.room_from(tail, 0)?;
            for piece in pieces() {
                if piece.len() > room {
                    room = room.max(self.room_from(tail, RING)? - (at - tail) as usize);
                }
                let part = piece.get(..room).unwrap_or(piece);
                self.stream.copy_in(
                    self.index,
                    at.wrapping_sub(base),
                    part,
                    store_for(part.len()),
                );
                at += part.len() as u64;
                room -= part.len();
                if room == 0 {
                    break;
                }
            }
            if at == tail {
                return Ok((0, 0));
            }
            published.ack.store(self.taken(), Ordering::Relaxed);
            if self.publish(tail, at) {
                return Ok(((at - tail) as usize, self.armed_data()));
            }
        }
    }

    /// Room in bytes, as far as known; looked up anew if it is less than `wanted`.
    ///
    /// # Errors
    /// [`Corrupt`] if the receiver's cursor is impossible.
    #[inline]
    pub fn room(&self, wanted: usize) -> Result<usize, Corrupt> {
        self.room_from(
            self.words().published.0.tail.load(Ordering::Relaxed),
            wanted,
        )
    }

    /// Whether there is enough room to call the stream writable: a quarter of the ring. A sender sleeps only when there is less.
    ///
    /// # Errors
    /// As [`Tx::room`].
    #[inline]
    pub fn writable(&self) -> Result<bool, Corrupt> {
        Ok(self.room(RING / 4)? >= RING / 4)
    }

    /// Says that the sender is about to sleep until there is room. Look at the room once more after it.
    pub fn arm(&self) {
        self.words().armed_room.0.store(SLEEPER, Ordering::SeqCst);
    }

    /// Takes the receiver's request to be woken: non-zero if a byte must be written to the TCP connection. Call after a [`Tx::write`] that
    /// returned bits.
    pub fn knock(&self) -> u32 {
        self.words()
            .armed_data
            .0
            .fetch_and(!SLEEPER, Ordering::SeqCst)
            & SLEEPER
    }

    /// Whether the receiver asks for this direction to go back to TCP.
    #[inline]
    pub fn back_wanted(&self) -> bool {
        self.words().armed_data.0.load(Ordering::SeqCst) & BACK != 0
    }

    /// Bytes written to the ring in all.
    pub fn tail(&self) -> u64 {
        self.words().published.0.tail.load(Ordering::Relaxed)
    }

    /// Whether the receiver has taken everything.
    ///
    /// # Errors
    /// As [`Tx::room`].
    pub fn drained(&self) -> Result<bool, Corrupt> {
        Ok(self.room(RING)? == RING)
    }

    /// Copies out what was written and not yet taken, from `skip` bytes after the oldest: for a sender that takes it back.
    ///
    /// # Errors
    /// As [`Tx::room`].
    pub fn unread(&self, skip: u64, into: &mut [u8]) -> Result<usize, Corrupt> {
        let tail = self.tail();
        let left = RING - self.room_from(tail, RING)?;
        let from = tail - left as u64 + skip;
        let n = into.len().min(tail.saturating_sub(from) as usize);
        let base = self.words().published.0.base.load(Ordering::Relaxed);
        if let Some(into) = into.get_mut(..n) {
            self.stream
                .copy_out(self.index, from.wrapping_sub(base), into);
        }
        Ok(n)
    }

    /// Says that nothing more will be written ([`super::FIN`]) or that the end is gone ([`super::GONE`]); bits as [`Tx::write`] returns them.
    pub fn finish(&self, how: u32) -> u32 {
        self.words().published.0.fin.fetch_or(how, Ordering::SeqCst);
        self.armed_data()
    }

    /// What [`Tx::finish`] said so far.
    pub fn finished(&self) -> u32 {
        self.words().published.0.fin.load(Ordering::Relaxed)
    }

    /// Whether the receiver has consented to the ring.
    pub fn consented(&self) -> bool {
        self.words().switch.0.consent.load(Ordering::Acquire) != 0
    }

    /// The count of bytes written to TCP at which this direction moves to the ring, if it has.
    #[inline]
    pub fn to_ring(&self) -> Option<u64> {
        self.words()
            .switch
            .0
            .to_ring
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }

    /// Moves the direction to the ring, after `written` bytes on TCP.
    pub fn set_to_ring(&self, written: u64) {
        self.words()
            .switch
            .0
            .to_ring
            .store(written.saturating_add(1), Ordering::SeqCst);
    }

    /// The count of bytes written to TCP, doorbells included, at which this direction goes back to TCP, if it has.
    #[inline]
    pub fn to_tcp(&self) -> Option<u64> {
        self.words()
            .switch
            .0
            .to_tcp
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }

    /// Moves the direction back to TCP, after `written` bytes on it.
    pub fn set_to_tcp(&self, written: u64) {
        self.words()
            .switch
            .0
            .to_tcp
            .store(written.saturating_add(1), Ordering::SeqCst);
    }

    /// Says that the byte just sent out of band comes after all that is in the ring by now.
    pub fn mark(&self) {
        self.words()
            .receiver
            .0
            .mark
            .store(self.tail().saturating_add(1), Ordering::SeqCst);
    }

    /// For turns between processes.
    pub fn turn(&self) -> &AtomicU32 {
        &self.words().sender.0.turn
    }

    /// Publishes everything up to `at`, unless somebody published since the tail was `tail`.
    #[inline]
    fn publish(&self, tail: u64, at: u64) -> bool {
        let word = &self.words().published.0.tail;
        // Sequentially consistent with the receiver's arming; release for the bytes and `base`.
        word.compare_exchange(tail, at, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn armed_data(&self) -> u32 {
        self.words().armed_data.0.load(Ordering::SeqCst)
    }

    /// What this end has taken of the other direction.
    #[inline]
    fn taken(&self) -> u64 {
        self.stream
            .direction(self.index ^ 1)
            .head
            .0
            .load(Ordering::Relaxed)
    }

    /// The count that lies at the start of the ring. When the ring is empty it begins there again, so that a stream that carries
    /// little touches few pages; where the peer's acknowledgements do not tell, a look at its cursor per page does.
    /// `None` if a signal handler wrote meanwhile. One that does so says it by the top bit, which no position depends on.
    #[inline]
    fn base(&self, tail: u64, nested: bool) -> Result<Option<u64>, Corrupt> {
        let words = self.words();
        let word = &words.published.0.base;
        let base = word.load(Ordering::Relaxed);
        if nested {
            word.store(base ^ TOP, Ordering::Relaxed);
            return Ok(Some(base));
        }
        if base == tail {
            return Ok(Some(base));
        }
        let seen = words.sender.0.head_seen.load(Ordering::Relaxed);
        let acked = self
            .stream
            .direction(self.index ^ 1)
            .published
            .0
            .ack
            .load(Ordering::Relaxed);
        let new_page = tail.wrapping_sub(base) & (PAGE - 1) < NEAR;
        if seen != tail && acked != tail && !(new_page && self.room_from(tail, RING)? == RING) {
            return Ok(Some(base));
        }
        Ok(exchange_here(word, base, tail).then_some(tail))
    }

    #[inline]
    fn room_from(&self, tail: u64, wanted: usize) -> Result<usize, Corrupt> {
        let seen = &self.words().sender.0.head_seen;
        let used = tail.wrapping_sub(seen.load(Ordering::Relaxed));
        let room = (RING as u64).checked_sub(used);
        if let Some(room) = room
            && room as usize >= wanted.max(1)
        {
            return Ok(room as usize);
        }
        // Acquire: the receiver has read the bytes before it freed the room. Sequentially consistent with its look at `armed_room`.
        let head = self.words().head.0.load(Ordering::SeqCst);
        let room = (RING as u64)
            .checked_sub(tail.wrapping_sub(head))
            .ok_or(Corrupt)?;
        seen.store(head, Ordering::Relaxed);
        Ok(room as usize)
    }

    #[inline]
    fn words(&self) -> &Direction {
        self.stream.direction(self.index)
    }
}

impl fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("tail", &self.tail())
            .field("head", &self.words().head.0.load(Ordering::Relaxed))
            .field("finished", &self.finished())
            .field("to_ring", &self.to_ring())
            .field("to_tcp", &self.to_tcp())
            .finish_non_exhaustive()
    }
}

#[inline]
fn store_for(len: usize) -> Store {
    Store::for_len(len)
}

const PAGE: u64 = 4096;
const TOP: u64 = 1 << 63;
/// A tail so little after a page's start has just crossed it.
const NEAR: u64 = 64;
