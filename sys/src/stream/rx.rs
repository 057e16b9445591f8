use std::fmt;

use super::layout::{BEHIND, BESIDE, Direction, TO_RING, TO_TCP};
use super::sleep::Bytes;
use super::{BACK, BOARD, Corrupt, LEFT, PLACE_SHIFT, SLEEPER, STANDS, Stream, Watch};
use crate::board::Place;
use crate::mem::{STREAM_MIN, Store, prefetch, prefetch_to_write};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The direction in which an end receives. What changes it is called in a turn of side 1.
#[derive(Clone, Copy)]
pub struct Rx<'a> {
    pub(super) stream: &'a Stream,
    pub(super) index: usize,
}

impl Rx<'_> {
    /// Bytes that were written and not taken.
    ///
    /// # Errors
    /// [`Corrupt`] if the sender's cursor is impossible.
    #[inline]
    pub fn available(&self) -> Result<usize, Corrupt> {
        for _ in 0..TRIES {
            let head = self.head();
            match self.behind(head) {
                // A handler took between the two loads.
                Err(Corrupt) if self.head() != head => {}
                Ok(n) => {
                    if n > 0 {
                        // They will be read as soon as whoever polls has its turn.
                        let base: u64 = self.words().published.base.load(Ordering::Relaxed).into();
                        let at = head.wrapping_sub(base);
                        let (first, room) = self.stream.piece(self.index, at);
                        prefetch(first, n.min(room).min(LONG));
                    }
                    return Ok(n);
                }
                Err(Corrupt) => return Err(Corrupt),
            }
        }
        Err(Corrupt)
    }

    /// To look at what the sender shows without a turn; `None` if this process has too many connections for that.
    pub fn watch(&self) -> Option<Watch> {
        Watch::new(self.stream, self.index)
    }

    /// How many bytes of the ring nobody has taken, if the sender is to be believed, and how many it holds.
    pub fn filled(&self) -> (usize, usize) {
        (self.available().unwrap_or(0), self.ring_len())
    }

    /// Bytes taken in all.
    #[inline]
    pub fn head(&self) -> u64 {
        self.words().receiver.head.load(Ordering::Relaxed)
    }

    /// Copies bytes from `at`, which is at or after [`Rx::head`], without taking them; returns how many. Only what is there by now is copied.
    ///
    /// What was copied is right only if nobody took meanwhile, as a signal handler may; [`Rx::take`] tells, also one of no bytes.
    ///
    /// # Errors
    /// As [`Rx::available`].
    #[inline]
    pub fn peek(&self, at: u64, into: &mut [u8]) -> Result<usize, Corrupt> {
        let (there, base) = match self.seen(at, into.len()) {
            Some(seen) => seen,
            None => match self.look(at) {
                Err(Corrupt) if self.was_taken(at) => (0, 0),
                result => result?,
            },
        };
        let n = there.min(into.len());
        if let Some(into) = into.get_mut(..n) {
            self.stream
                .copy_out(self.index, at.wrapping_sub(base), into);
        }
        Ok(n)
    }

    /// Takes what lies between `head` and `at`: true, and whether a sender wants to be woken; or false if a signal handler took
    /// from `head` in between, and what was copied must be copied again.
    #[inline]
    pub fn take(&self, head: u64, at: u64) -> (bool, bool) {
        let tail = self.words().receiver.tail_seen.load(Ordering::Relaxed);
        match self.words().space(self.stream.size).free(head, at, tail) {
            Some(wake) => {
                if self.stream.overtaken.load(Ordering::Relaxed) != 0 {
                    self.stream.overtaken.store(0, Ordering::Relaxed);
                }
                self.expect_answer();
                (true, wake)
            }
            None => (self.give_up(), false),
        }
    }

    /// An answer is likely to follow, to begin where its direction's ring does, and to be as long as the last. The peer has read what was there.
    #[inline]
    fn expect_answer(&self) {
        let index = self.index ^ 1;
        let last = self.stream.direction(index).sender.since_base();
        let behind = self.ring_len() - BEHIND;
        let (begin, len) = match last.checked_sub(behind) {
            // It is short enough to come with the words, which the peer polls.
            None if last >= behind - BESIDE => return,
            None if last < LONG => (0, last.max(SHORT)),
            Some(last) if last <= BEHIND => (behind as u64, last),
            _ => (0, SHORT),
        };
        let (place, room) = self.stream.piece(index, begin);
        prefetch_to_write(place, len.min(room));
    }

    /// So many handlers in a row are none: the peer writes to our cursor. Whoever tries again until it succeeds shall have an end, and
    /// garbage, which is all that this peer sends.
    #[cold]
    fn give_up(&self) -> bool {
        let times = self.stream.overtaken.load(Ordering::Relaxed);
        self.stream
            .overtaken
            .store(times.saturating_add(1), Ordering::Relaxed);
        times >= TRIES
    }

    /// Takes the sender's request to be woken: true if a byte must be written to the TCP connection.
    pub fn knock(&self) -> bool {
        self.words().space(self.stream.size).knock()
    }

    /// Says that the receiver is about to sleep until there is something. Look once more after it, with [`Rx::settled`].
    pub fn arm(&self) {
        self.bytes().arm(SLEEPER);
    }

    /// As [`Rx::arm`], for who looks at a board that the sender [has](Stream::notes_on): it notes there, at `place`, that there is something.
    pub fn arm_at(&self, place: Place) {
        self.bytes().arm_at(BOARD | place.number() << PLACE_SHIFT);
    }

    /// As [`Rx::arm_at`], for all that comes from now on. Where that stands already nothing is written.
    #[inline]
    pub fn stand_at(&self, place: Place) {
        let request = BOARD | STANDS | place.number() << PLACE_SHIFT;
        if !self.bytes().stands(request) {
            self.bytes().arm_at(request);
        }
    }

    /// Whether what [`Rx::stand_at`] said stands.
    #[inline]
    pub fn stands(&self) -> bool {
        self.words().asked.armed_data.load(Ordering::SeqCst) & STANDS != 0
    }

    /// Takes back what [`Rx::stand_at`] said, if that is so: it would be told for nothing.
    pub fn stand_down(&self) {
        if self.stands() {
            self.bytes().disarm_board();
        }
    }

    /// Takes back what [`Rx::arm`] said: nobody sleeps any more.
    pub fn disarm(&self) {
        self.bytes().disarm();
    }

    /// Whether a sender would ring.
    pub fn is_armed(&self) -> bool {
        self.words().asked.armed_data.load(Ordering::Relaxed) & SLEEPER != 0
    }

    /// Whether there is nothing, sequentially consistent with publishing: the look between arming and sleeping.
    pub fn settled(&self) -> bool {
        self.bytes().settled(self.head())
    }

    /// Asks the sender to go back to TCP. Write a byte to the TCP connection afterwards.
    pub fn want_back(&self) {
        self.bytes().arm(BACK);
    }

    /// Says that this end waits no longer for the sender to follow to TCP: no doorbell is begun from now on.
    pub fn set_left(&self) {
        self.bytes().arm(LEFT);
    }

    /// Doorbells that the sender wrote to TCP, or is about to, after it moved to the ring. Once this end [has left](Rx::set_left) no more are written than
    /// this says.
    pub fn bells(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.words().switch.bells.load(Ordering::SeqCst)
    }

    /// What the sender said of its end: [`super::FIN`], [`super::GONE`].
    #[inline]
    pub fn finished(&self) -> u32 {
        self.words().published.fin.load(Ordering::Acquire)
    }

    /// Appends bytes that came on TCP to a ring whose sender has gone back there and writes here no more.
    ///
    /// # Errors
    /// As [`Rx::available`], and if there is no room.
    pub fn put_back(&self, bytes: &[u8]) -> Result<(), Corrupt> {
        let published = self.words().published;
        let tail = published.tail.load(Ordering::SeqCst);
        if self.available()? + bytes.len() > self.ring_len() {
            return Err(Corrupt);
        }
        let base: u64 = published.base.load(Ordering::Relaxed).into();
        self.stream
            .copy_in(self.index, tail.wrapping_sub(base), bytes, Store::Plain);
        published
            .tail
            .store(tail.wrapping_add(bytes.len() as u64), Ordering::SeqCst);
        Ok(())
    }

    /// Consents to the ring: from now on this end looks at [`Rx::to_ring`] before each read.
    pub fn consent(&self) {
        self.words().switch.consent.store(1, Ordering::Release);
    }

    /// Whether it has consented.
    #[inline]
    pub fn consented(&self) -> bool {
        self.words().switch.consent.load(Ordering::Relaxed) != 0
    }

    /// After how many bytes on TCP the ring continues, if the sender has moved there.
    #[inline]
    pub fn to_ring(&self) -> Option<u64> {
        let words = self.words();
        if words.moved.load(Ordering::SeqCst) & TO_RING == 0 {
            return None;
        }
        words.switch.to_ring.load(Ordering::SeqCst).checked_sub(1)
    }

    /// After how many bytes on TCP, doorbells included, TCP continues, if the sender has gone back.
    #[inline]
    pub fn to_tcp(&self) -> Option<u64> {
        let words = self.words();
        if words.moved.load(Ordering::SeqCst) & TO_TCP == 0 {
            return None;
        }
        words.switch.to_tcp.load(Ordering::SeqCst).checked_sub(1)
    }

    /// How far the processes at this end have followed the sender: a number that `sockets` gives a meaning.
    #[inline]
    pub fn phase(&self) -> u32 {
        self.words().receiver.phase.load(Ordering::Relaxed)
    }

    /// Sets [`Rx::phase`].
    pub fn set_phase(&self, phase: u32) {
        self.words().receiver.phase.store(phase, Ordering::Release);
    }

    /// How many bytes the processes at this end have taken from TCP, as they count them, if they have begun to.
    pub fn taken_from_tcp(&self) -> Option<u64> {
        let taken = &self.words().receiver.taken;
        taken.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Sets [`Rx::taken_from_tcp`].
    pub fn set_taken_from_tcp(&self, bytes: u64) {
        let taken = &self.words().receiver.taken;
        taken.store(bytes.saturating_add(1), Ordering::Relaxed);
    }

    /// The count before which out-of-band data was sent, if any was.
    pub fn mark(&self) -> Option<u64> {
        self.words()
            .receiver
            .mark
            .load(Ordering::SeqCst)
            .checked_sub(1)
    }

    /// For turns between processes.
    pub fn turn(&self) -> &AtomicU32 {
        &self.words().receiver.turn
    }

    #[inline]
    fn behind(&self, at: u64) -> Result<usize, Corrupt> {
        // Acquire pairs with the sender's publishing.
        let tail = self.words().published.tail.load(Ordering::Acquire);
        let n = tail.wrapping_sub(at);
        if n > self.ring_len() as u64 {
            Err(Corrupt)
        } else {
            Ok(n as usize)
        }
    }

    /// How many bytes there are after `at` for all that was seen before, and where they lie; `None` if that is not enough.
    #[inline]
    fn seen(&self, at: u64, wanted: usize) -> Option<(usize, u64)> {
        let words = self.words().receiver;
        // A handler may have taken more than what an older look had seen: then this wraps.
        let n = words.tail_seen.load(Ordering::Acquire).wrapping_sub(at);
        let enough = (wanted.max(1) as u64..=self.ring_len() as u64).contains(&n);
        enough.then(|| (n as usize, words.base_seen.load(Ordering::Relaxed)))
    }

    /// The same by a look at the sender's line, which is remembered.
    #[inline]
    fn look(&self, at: u64) -> Result<(usize, u64), Corrupt> {
        let published = self.words().published;
        let n = self.behind(at)?;
        // The tail was acquired, and with it the base that goes with these bytes. It does not change before they are taken.
        let base: u64 = published.base.load(Ordering::Relaxed).into();
        let words = self.words().receiver;
        // In this order: a handler between the two leaves a later base with an earlier tail only if it has taken up to that tail.
        words.base_seen.store(base, Ordering::Relaxed);
        words
            .tail_seen
            .store(at.wrapping_add(n as u64), Ordering::Release);
        Ok((n, base))
    }

    /// Whether there is something for all that was seen before, without a look at the sender's line.
    #[inline]
    pub fn has_seen_bytes(&self) -> bool {
        self.seen(self.head(), 1).is_some()
    }

    /// Whether there is something, by the cheapest look that tells.
    ///
    /// # Errors
    /// As [`Rx::available`].
    #[inline]
    pub fn has_bytes(&self) -> Result<bool, Corrupt> {
        if self.has_seen_bytes() {
            return Ok(true);
        }
        Ok(self.available()? != 0)
    }

    /// Whether the head lies after `at` by now.
    #[cold]
    fn was_taken(&self, at: u64) -> bool {
        (1..1 << 63).contains(&self.head().wrapping_sub(at))
    }

    /// The tail, and who sleeps for it.
    #[inline]
    fn bytes(&self) -> Bytes<'_, AtomicU64, AtomicU32> {
        let words = self.words();
        Bytes {
            tail: &words.published.tail,
            fin: &words.published.fin,
            armed: &words.asked.armed_data,
        }
    }

    /// Bytes of the ring.
    #[inline]
    fn ring_len(&self) -> usize {
        self.stream.size.bytes()
    }

    #[inline]
    pub(super) fn words(&self) -> Direction<'_> {
        self.stream.direction(self.index)
    }
}

impl fmt::Debug for Rx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rx")
            .field("head", &self.head())
            .field("tail", &self.words().published.tail.load(Ordering::Relaxed))
            .field("finished", &self.finished())
            .field("to_ring", &self.to_ring())
            .field("to_tcp", &self.to_tcp())
            .finish_non_exhaustive()
    }
}

/// So many bytes of an answer are asked for whatever the last was: 64 B take 215 to 250 ns one way with it and 340 without, beside 120 of a bare hand-off
/// (`stream_pingpong`).
const SHORT: usize = 256;
/// What is as long is written with streaming stores, and not asked for. There and back, asked for as a whole instead of its first 256 B: 512 B 0.98 to
/// 0.67 µs, 1 KiB 1.21 to 0.84, 2000 B 1.95 to 1.24, 4000 B 2.6 to 2.2.
const LONG: usize = STREAM_MIN;
/// Handlers that may take in between in a row.
const TRIES: u32 = 1000;
