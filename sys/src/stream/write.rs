//! How bytes come into the ring.

use super::unfinished::Copy;
use super::{Corrupt, Tx};
use crate::mem::{STREAM_MIN, Store, prefetch_to_write};
use crate::sync::{Count, Ordering};

impl Tx<'_> {
    /// Copies as much as there is room for into the ring and publishes it: how many bytes, and whether to ring the doorbell
    /// ([`SLEEPER`](super::SLEEPER), [`BACK`](super::BACK)). What is long is published piece by piece, so that the receiver copies at the same time.
    ///
    /// `nested` is [`Turn::nested`](crate::turn::Turn::nested): in a signal handler that came in between, first publishes what the interrupted
    /// write is copying; that write goes on after it. `pieces` may be called several times and must yield the same each time.
    ///
    /// # Errors
    /// [`Corrupt`] if the receiver's cursor is impossible, or the sender's changes all the time.
    #[inline]
    pub fn write<'b, I>(
        &self,
        nested: bool,
        mut pieces: impl FnMut() -> I,
    ) -> Result<(usize, u32), Corrupt>
    where
        I: Iterator<Item = &'b [u8]>,
    {
        if nested {
            return self.write_between(&mut pieces);
        }
        self.write_outermost(&mut pieces)
    }

    #[inline]
    fn write_outermost<'b, I>(
        &self,
        pieces: &mut impl FnMut() -> I,
    ) -> Result<(usize, u32), Corrupt>
    where
        I: Iterator<Item = &'b [u8]>,
    {
        let unfinished = &self.stream.unfinished;
        unfinished.begin();
        let written = self.write_all(false, pieces);
        unfinished.end();
        written
    }

    #[cold]
    fn write_between<'b, I>(&self, pieces: &mut impl FnMut() -> I) -> Result<(usize, u32), Corrupt>
    where
        I: Iterator<Item = &'b [u8]>,
    {
        let unfinished = &self.stream.unfinished;
        unfinished.forget_left();
        if let Some(copy) = unfinished.interrupted() {
            self.finish_copy(copy);
        }
        let between = unfinished.is_mine();
        let found = unfinished.come_in();
        let broken_off = self.take_broken_off();
        let written = if between {
            self.write_all(true, pieces)
        } else {
            self.write_outermost(pieces)
        };
        unfinished.leave(found);
        if broken_off {
            self.stream.broken_off.store(true, Ordering::Relaxed);
        }
        written
    }

    /// In a signal handler that others act after, at this end or on TCP: what its thread is in the middle of writing is written as far as it has begun, and
    /// goes no further. It [says so](Tx::take_broken_off).
    #[cold]
    pub fn break_off(&self) {
        let unfinished = &self.stream.unfinished;
        unfinished.forget_left();
        if unfinished.is_mine() {
            if let Some(copy) = unfinished.interrupted() {
                self.finish_copy(copy);
            }
            self.publish_left();
            // As one that writes in between.
            let base = &self.words().sender.base;
            let lap = base
                .load(Ordering::Acquire)
                .wrapping_add(self.ring_len() as u64);
            base.store(lap, Ordering::Release);
        }
        self.stream.broken_off.store(true, Ordering::Relaxed);
    }

    /// Whether the last write may have been broken off: what it did not write is to be written in a new turn. Asked once.
    pub fn take_broken_off(&self) -> bool {
        let broken_off = self.is_broken_off();
        self.stream.broken_off.store(false, Ordering::Relaxed);
        broken_off
    }

    /// Whether a handler has [broken off](Tx::break_off) what is written, or was about to be.
    #[inline]
    pub fn is_broken_off(&self) -> bool {
        self.stream.broken_off.load(Ordering::Relaxed)
    }

    #[inline]
    fn write_all<'b, I>(
        &self,
        between: bool,
        pieces: &mut impl FnMut() -> I,
    ) -> Result<(usize, u32), Corrupt>
    where
        I: Iterator<Item = &'b [u8]>,
    {
        let mut written = 0;
        let mut tries = 0;
        while !self.advance(between, pieces, &mut written)? {
            written += self.stream.unfinished.take_helped() as usize;
            if self.is_broken_off() {
                break;
            }
            tries += 1;
            // So many handlers in a row are none: the peer writes to our cursor.
            if tries == TRIES {
                return Err(Corrupt);
            }
        }
        if written == 0 {
            return Ok((0, 0));
        }
        Ok((written, self.bytes().armed()))
    }

    /// Writes what comes after the first `written` bytes, and adds to them; false if a handler wrote meanwhile, to begin anew with the rest.
    #[inline]
    fn advance<'b, I>(
        &self,
        between: bool,
        pieces: &mut impl FnMut() -> I,
        written: &mut usize,
    ) -> Result<bool, Corrupt>
    where
        I: Iterator<Item = &'b [u8]>,
    {
        // The order of these two: a handler that writes after the first changes the base, one before it the tail.
        let own = self.words().sender;
        let base = own.base.load(Ordering::Acquire);
        let mut start = own.tail.load(Ordering::Acquire);
        if between {
            let lap = base.wrapping_add(self.ring_len() as u64);
            own.base.store(lap, Ordering::Release);
        } else {
            self.stream.unfinished.set_floor(start);
        }
        let begin = self.begin_at(|| pieces().map(<[u8]>::len).sum());
        let base = self.unless_overtaken(start, self.rebase(between, base, start, begin))?;
        let Some(base) = base.flatten() else {
            return Ok(false);
        };
        let mut skip = *written;
        let mut chunk = if *written == 0 && self.answers() {
            FIRST_CHUNK
        } else {
            CHUNK
        };
        let mut at = start;
        let room = self.room_between(between, start, 0);
        let Some(mut room) = self.unless_overtaken(start, room)? else {
            return Ok(false);
        };
        for piece in pieces() {
            let (gone, piece) = piece.split_at(skip.min(piece.len()));
            skip -= gone.len();
            if piece.len() > room {
                let unpublished = at.wrapping_sub(start) as usize;
                let fresh = self.room_between(between, start, self.ring_len());
                let Some(fresh) = self.unless_overtaken(start, fresh)? else {
                    return Ok(false);
                };
                // A peer that moves its head back takes no room away.
                room = room.max(fresh.saturating_sub(unpublished));
            }
            let mut rest = piece.get(..room).unwrap_or(piece);
            room -= rest.len();
            while !rest.is_empty() {
                let unpublished = at.wrapping_sub(start) as usize;
                let (part, later) = rest.split_at(rest.len().min(chunk - unpublished));
                if !self.copy_piece(base, start, at, part) {
                    return Ok(false);
                }
                at = at.wrapping_add(part.len() as u64);
                rest = later;
                if unpublished + part.len() == chunk {
                    if !self.publish(start, at) {
                        return Ok(false);
                    }
                    *written += chunk;
                    chunk = CHUNK;
                    start = at;
                    if !between {
                        self.stream.unfinished.set_floor(start);
                    }
                }
            }
            if room == 0 {
                break;
            }
        }
        if at != start {
            if begin == 0 {
                self.foresee_next(at.wrapping_sub(base), at.wrapping_sub(start));
            }
            if !self.publish(start, at) {
                return Ok(false);
            }
            *written += at.wrapping_sub(start) as usize;
        }
        Ok(true)
    }

    /// Asks for where the next messages will lie, if they are as long as the one of `len` bytes that ends at `at` of the ring, and short.
    #[inline]
    pub(super) fn foresee_next(&self, at: u64, len: u64) {
        if len < SHORT {
            let (ahead, room) = self.stream.piece(self.index, at.wrapping_add(AHEAD));
            prefetch_to_write(ahead, room.min(len as usize));
        }
    }

    /// `None` if what was found after `start` contradicts only because a handler has written there meanwhile, and the receiver has taken that.
    #[inline]
    fn unless_overtaken<T>(
        &self,
        start: u64,
        found: Result<T, Corrupt>,
    ) -> Result<Option<T>, Corrupt> {
        match found {
            Err(Corrupt) if self.tail() != start => Ok(None),
            found => found.map(Some),
        }
    }

    /// Copies `piece` to `at`; false, and nothing done, if the tail is no longer `start`.
    #[inline]
    pub(super) fn copy_piece(&self, base: u64, start: u64, at: u64, piece: &[u8]) -> bool {
        let unfinished = &self.stream.unfinished;
        unfinished.copy(start, at, piece);
        // From here on a handler helps. One that came before does not see the copy; its bytes must not be overwritten.
        let fresh = self.tail() == start && !self.is_broken_off();
        if fresh {
            self.copy_by_choice(at.wrapping_sub(base), piece);
        }
        unfinished.copied();
        fresh
    }

    #[inline]
    fn copy_by_choice(&self, at: u64, piece: &[u8]) {
        self.note_use(at, piece.len());
        if piece.len() < STREAM_MIN {
            return self.stream.copy_in(self.index, at, piece, Store::Plain);
        }
        // A handler that comes into a timed copy does without.
        let Some(mut choice) = self.stream.choice.try_lock() else {
            return self.stream.copy_in(self.index, at, piece, Store::Plain);
        };
        let is_ahead = || self.is_ahead();
        let copied = choice.copy_for(is_ahead, piece.len(), |store| {
            self.stream.copy_in(self.index, at, piece, store);
            Ok::<_, Corrupt>(())
        });
        debug_assert_eq!(copied, Ok(()));
    }

    /// Whether so much of the ring is full that it is the receiver who has more to do. What cannot be is left to the next look to tell.
    #[inline(never)]
    fn is_ahead(&self) -> bool {
        let ahead = (self.ring_len() / 8).max(AHEAD_MIN);
        let enough = self.ring_len().saturating_sub(ahead);
        let room = self.room_from(self.tail(), enough);
        room.is_ok_and(|room| room < enough)
    }

    /// In a handler: does what the interrupted copy has still to do, and publishes it.
    fn finish_copy(&self, copy: Copy) {
        if self.tail() != copy.tail {
            return;
        }
        let base = self.words().sender.base.load(Ordering::Relaxed);
        // SAFETY: the interrupted frame of this thread borrows these bytes, and goes on only when this one has returned.
        let piece = unsafe { std::slice::from_raw_parts(copy.from, copy.len) };
        self.stream
            .copy_in(self.index, copy.at.wrapping_sub(base), piece, Store::Plain);
        let end = copy.at.wrapping_add(copy.len as u64);
        // If not by this, it is published by a handler that came in between here.
        self.publish(copy.tail, end);
        self.stream
            .unfinished
            .set_helped(end.wrapping_sub(copy.tail));
    }

    /// Publishes everything up to `at`, unless somebody published since the tail was `tail`.
    #[inline]
    pub(super) fn publish(&self, tail: u64, at: u64) -> bool {
        let own = self.words().sender;
        let shown = self.words().published;
        let taken = self.taken();
        // Release, for the taker has read what it acknowledges before that may be overwritten.
        shown.ack.store(taken, Ordering::Release);
        own.answered.store(taken, Ordering::Relaxed);
        self.show_base();
        if !own.tail.exchange_here(tail, at) {
            return false;
        }
        self.bytes().publish(tail, at);
        true
    }

    /// Publishes what was about to be, bytes and the end, by a thread that left for good in that instant: by a jump, or because it was killed.
    pub fn publish_left(&self) {
        let published = self.words().published;
        let shown = published.tail.load(Ordering::Relaxed);
        self.show_base();
        if shown != self.tail() {
            self.bytes().publish(shown, self.tail());
        }
        if published.fin.load(Ordering::Relaxed) != self.finished() {
            self.bytes().finish(self.finished());
        }
    }

    /// Asks for the line that a write will publish in.
    #[inline]
    pub fn foresee(&self) {
        prefetch_to_write(std::ptr::from_ref(self.words().published).cast(), 1);
    }

    /// What this end has taken of the other direction.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.stream
            .direction(self.index ^ 1)
            .receiver
            .head
            .load(Ordering::Relaxed)
    }

    /// [`Tx::room_from`] as far as the write that a handler came into leaves it.
    #[inline]
    fn room_between(&self, between: bool, tail: u64, wanted: usize) -> Result<usize, Corrupt> {
        let room = self.room_from(tail, wanted)?;
        if !between {
            return Ok(room);
        }
        let gone = tail.wrapping_sub(self.stream.unfinished.floor());
        Ok(room.min((self.ring_len() as u64).saturating_sub(gone) as usize))
    }

    /// Room after `tail`, as far as known; looked up anew if it is less than `wanted`.
    #[inline]
    pub(super) fn room_from(&self, tail: u64, wanted: usize) -> Result<usize, Corrupt> {
        let seen = &self.words().sender.head_seen;
        let used = tail.wrapping_sub(seen.load(Ordering::Relaxed));
        let room = (self.ring_len() as u64).checked_sub(used);
        if let Some(room) = room
            && room as usize >= wanted.max(1)
        {
            return Ok(room as usize);
        }
        let head = self.space().seen();
        let room = (self.ring_len() as u64)
            .checked_sub(tail.wrapping_sub(head))
            .ok_or(Corrupt)?;
        seen.store(head, Ordering::Relaxed);
        Ok(room as usize)
    }
}

/// Handlers that may come in between in a row.
const TRIES: u32 = 1000;
/// Publishing waits for the lines that the receiver read a lap ago, so they are asked for ahead, but for those of messages that streaming stores write.
/// Writes of 300 B take 70 ns with it and 83 without, of 1 KiB 82 and 106, of 2000 B 119 and 168, of 4000 B 222 and 242.
const SHORT: u64 = STREAM_MIN as u64;
/// So far ahead: of short messages some. Twice as far, 64 B take 102 ns instead of 86.
const AHEAD: u64 = 512;
/// What is longer is published in pieces of this length. 64 KiB take 15.2 us there and back, and 16.5 in pieces of 32 KiB.
const CHUNK: usize = 16 << 10;
/// What lies before a receiver who keeps up with calls of 64 kB: those bytes, and what is written meanwhile. On a ring that is no longer nobody is ahead.
const AHEAD_MIN: usize = 128 << 10;
/// The first of an answer, which somebody waits for: 16 KiB take 5.5 us there and back, in one piece 6.7. A stream of such is a twentieth slower so.
pub(super) const FIRST_CHUNK: usize = 8 << 10;
