use std::fmt;

use super::layout::{Direction, TO_RING, TO_TCP};
use super::sleep::{Bytes, Room};
use super::{BACK, Corrupt, LEFT, PLACE_SHIFT, Stream};
use crate::board::Place;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The direction in which an end sends. What changes it is called in a turn of side 0.
#[derive(Clone, Copy)]
pub struct Tx<'a> {
    pub(super) stream: &'a Stream,
    pub(super) index: usize,
}

impl Tx<'_> {
    /// Room in bytes, as far as known; looked up anew if it is less than `wanted`.
    ///
    /// # Errors
    /// [`Corrupt`] if the receiver's cursor is impossible.
    #[inline]
    pub fn room(&self, wanted: usize) -> Result<usize, Corrupt> {
        for _ in 0..TRIES {
            let tail = self.tail();
            match self.room_from(tail, wanted) {
                // A handler wrote between the two loads, and that has been taken.
                Err(Corrupt) if self.tail() != tail => {}
                room => return room,
            }
        }
        Err(Corrupt)
    }

    /// Whether there is enough room to call the stream writable: a quarter of the ring. A sender sleeps only when there is less.
    ///
    /// # Errors
    /// As [`Tx::room`].
    #[inline]
    pub fn writable(&self) -> Result<bool, Corrupt> {
        Ok(self.room(self.ring_len() / 4)? >= self.ring_len() / 4)
    }

    /// Says that the sender is about to sleep until there is room. Look at the room once more after it.
    pub fn arm(&self) {
        self.space().arm();
    }

    /// Takes the receiver's requests to be told: 0 if there are none. With [`SLEEPER`](super::SLEEPER) a byte must be written to the TCP connection, with
    /// [`BOARD`](super::BOARD) it is to be [noted](Tx::note). Call after a [`Tx::write`] that returned bits.
    pub fn knock(&self) -> u32 {
        self.bytes().knock()
    }

    /// Notes on the receiver's board what it asked to be told, in the place that is in `request`; whether a byte must be written to the TCP connection
    /// all the same, because it sleeps, or this process does not have the board.
    pub fn note(&self, request: u32) -> bool {
        let place = Place::from_number(request >> PLACE_SHIFT);
        let post = self.stream.post.as_ref();
        post.is_none_or(|post| post.note(place))
    }

    /// Whether the receiver asks for this direction to go back to TCP.
    #[inline]
    pub fn back_wanted(&self) -> bool {
        self.words().asked.armed_data.load(Ordering::SeqCst) & BACK != 0
    }

    /// Whether the receiver has left this direction to TCP without waiting for the sender to follow.
    #[inline]
    pub fn is_left(&self) -> bool {
        self.words().asked.armed_data.load(Ordering::SeqCst) & LEFT != 0
    }

    /// Before a doorbell is written to the TCP connection: counts it. False if none may go there, because the receiver [has left](Tx::is_left).
    pub fn begin_bell(&self) -> bool {
        self.words().switch.bells.fetch_add(1, Ordering::SeqCst);
        // Pairs with that in `bells`: the receiver sees the count, or this one sees that it has left.
        fence(Ordering::SeqCst);
        let may = !self.is_left();
        if !may {
            self.cancel_bell();
        }
        may
    }

    /// The doorbell could not be written after all.
    pub fn cancel_bell(&self) {
        self.words().switch.bells.fetch_sub(1, Ordering::SeqCst);
    }

    /// How many of the bytes that went to TCP until now, doorbells included, the receiver has not taken, by its count, if it counts. Too many if it was
    /// killed in between, never too few: where an urgent byte was among them, which is not always counted, this says nothing.
    pub fn untaken_from_tcp(&self) -> Option<u64> {
        let words = self.words();
        if words.receiver.mark.load(Ordering::SeqCst) != 0 {
            return None;
        }
        let taken = words
            .receiver
            .taken
            .load(Ordering::Relaxed)
            .checked_sub(1)?;
        let bells = words.switch.bells.load(Ordering::SeqCst);
        let written = self.to_ring()?.saturating_add(bells);
        Some(written.saturating_sub(taken))
    }

    /// Doorbells that this end has written to TCP since it moved to the ring. In its turn.
    pub fn bells(&self) -> u64 {
        self.words().switch.bells.load(Ordering::SeqCst)
    }

    /// Whether the receiver has not taken all that went to TCP before the ring, by its count, if it counts.
    pub fn is_unread_before_ring(&self) -> bool {
        let taken = self.words().receiver.taken.load(Ordering::Relaxed);
        (self.to_ring().zip(taken.checked_sub(1))).is_some_and(|(end, taken)| taken < end)
    }

    /// Bytes that the receiver has taken in all, if it is to be believed.
    #[inline]
    pub fn read(&self) -> u64 {
        self.words().receiver.head.load(Ordering::Relaxed)
    }

    /// Bytes written to the ring in all.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.words().sender.tail.load(Ordering::Relaxed)
    }

    /// Whether the receiver has taken everything.
    ///
    /// # Errors
    /// As [`Tx::room`].
    pub fn drained(&self) -> Result<bool, Corrupt> {
        Ok(self.room(self.ring_len())? == self.ring_len())
    }

    /// Copies out what was written and not yet taken, from `skip` bytes after the oldest: for a sender that takes it back.
    ///
    /// # Errors
    /// As [`Tx::room`].
    pub fn unread(&self, skip: u64, into: &mut [u8]) -> Result<usize, Corrupt> {
        let tail = self.tail();
        let left = (self.ring_len() - self.room_from(tail, self.ring_len())?) as u64;
        let from = tail.wrapping_sub(left).wrapping_add(skip);
        let n = into.len().min(left.saturating_sub(skip) as usize);
        let base = self.words().sender.base.load(Ordering::Relaxed);
        if let Some(into) = into.get_mut(..n) {
            self.stream
                .copy_out(self.index, from.wrapping_sub(base), into);
        }
        Ok(n)
    }

    /// Drops the `n` oldest bytes of what the receiver has not taken, in its place: it has asked for them on TCP and reads no more here.
    ///
    /// # Errors
    /// As [`Tx::room`].
    pub fn take_back(&self, n: usize) -> Result<(), Corrupt> {
        let head = &self.words().receiver.head;
        let at = head.load(Ordering::SeqCst).wrapping_add(n as u64);
        if self.tail().wrapping_sub(at) > self.ring_len() as u64 {
            return Err(Corrupt);
        }
        head.store(at, Ordering::SeqCst);
        Ok(())
    }

    /// Says that nothing more will be written ([`super::FIN`]) or that the end is gone ([`super::GONE`]); bits as [`Tx::write`] returns them.
    pub fn finish(&self, how: u32) -> u32 {
        self.words().sender.fin.fetch_or(how, Ordering::Relaxed);
        self.bytes().finish(how);
        self.bytes().armed()
    }

    /// What [`Tx::finish`] said so far.
    #[inline]
    pub fn finished(&self) -> u32 {
        self.words().sender.fin.load(Ordering::Relaxed)
    }

    /// Whether the receiver has consented to the ring.
    pub fn consented(&self) -> bool {
        self.words().switch.consent.load(Ordering::Acquire) != 0
    }

    /// The count of bytes written to TCP at which this direction moves to the ring, if it has.
    #[inline]
    pub fn to_ring(&self) -> Option<u64> {
        let words = self.words();
        if words.moved.load(Ordering::Acquire) & TO_RING == 0 {
            return None;
        }
        words.switch.to_ring.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Moves the direction to the ring, after `written` bytes on TCP.
    pub fn set_to_ring(&self, written: u64) {
        let words = self.words();
        let to_ring = &words.switch.to_ring;
        to_ring.store(written.saturating_add(1), Ordering::Relaxed);
        self.set_moved(TO_RING);
    }

    /// What is read for each message, and says that the counts are there. One instruction, for handlers that send have turns in this one.
    fn set_moved(&self, step: u32) {
        self.words().moved.fetch_or(step, Ordering::SeqCst);
    }

    /// Whether what is sent goes into the ring: the direction has moved there, and not back.
    #[inline]
    pub fn is_on_ring(&self) -> bool {
        self.words().moved.load(Ordering::Relaxed) & (TO_RING | TO_TCP) == TO_RING
    }

    /// The count of bytes written to TCP, doorbells included, at which this direction goes back to TCP, if it has.
    #[inline]
    pub fn to_tcp(&self) -> Option<u64> {
        let words = self.words();
        if words.moved.load(Ordering::Acquire) & TO_TCP == 0 {
            return None;
        }
        words.switch.to_tcp.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Moves the direction back to TCP, after `written` bytes on it.
    pub fn set_to_tcp(&self, written: u64) {
        let words = self.words();
        let to_tcp = &words.switch.to_tcp;
        to_tcp.store(written.saturating_add(1), Ordering::SeqCst);
        self.set_moved(TO_TCP);
    }

    /// Says that the byte just sent out of band comes after all that is in the ring by now.
    pub fn mark(&self) {
        self.words()
            .receiver
            .mark
            .store(self.tail().saturating_add(1), Ordering::SeqCst);
    }

    /// For turns between processes.
    pub fn turn(&self) -> &AtomicU32 {
        &self.words().sender.turn
    }

    /// The tail, and who sleeps for it.
    #[inline]
    pub(super) fn bytes(&self) -> Bytes<'_, AtomicU64, AtomicU32> {
        let words = self.words();
        Bytes {
            tail: &words.published.tail,
            fin: &words.published.fin,
            armed: &words.asked.armed_data,
        }
    }

    /// The head, and who sleeps for it.
    #[inline]
    pub(super) fn space(&self) -> Room<'_, AtomicU64, AtomicU32> {
        self.words().space(self.stream.size)
    }

    /// Bytes of the ring.
    #[inline]
    pub(super) fn ring_len(&self) -> usize {
        self.stream.size.bytes()
    }

    #[inline]
    pub(super) fn words(&self) -> Direction<'_> {
        self.stream.direction(self.index)
    }
}

impl fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("tail", &self.tail())
            .field("head", &self.words().receiver.head.load(Ordering::Relaxed))
            .field("finished", &self.finished())
            .field("to_ring", &self.to_ring())
            .field("to_tcp", &self.to_tcp())
            .finish_non_exhaustive()
    }
}

/// Handlers that may write in between in a row.
const TRIES: u32 = 1000;
