use std::fmt;

use super::layout::Direction;
use super::{BACK, Corrupt, RING, SLEEPER, Stream};
use crate::sync::{Ordering, exchange_here, fence, mapped::AtomicU32};

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
        self.behind(self.head())
    }

    /// Bytes taken in all.
    #[inline]
    pub fn head(&self) -> u64 {
        self.words().head.0.load(Ordering::Relaxed)
    }

    /// Copies bytes from `at`, which is at or after [`Rx::head`], without taking them; returns how many. Only what is there by now is copied.
    ///
    /// # Errors
    /// As [`Rx::available`].
    #[inline]
    pub fn peek(&self, at: u64, into: &mut [u8]) -> Result<usize, Corrupt> {
        let n = self.behind(at)?.min(into.len());
        let base = self.words().published.0.base.load(Ordering::Relaxed);
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
        let words = self.words();
        // Release, so that the sender overwrites only what has been read.
        if !exchange_here(&words.head.0, head, at) {
            return (false, false);
        }
        let used = words
            .published
            .0
            .tail
            .load(Ordering::Relaxed)
            .wrapping_sub(head);
        // See the module: nobody sleeps for room in a ring that was not a quarter full.
        if used <= (RING / 4) as u64 {
            return (true, false);
        }
        fence(Ordering::SeqCst);
        (true, words.armed_room.0.load(Ordering::SeqCst) != 0)
    }

    /// Takes the sender's request to be woken: true if a byte must be written to the TCP connection.
    pub fn knock(&self) -> bool {
        self.words().armed_room.0.swap(0, Ordering::SeqCst) != 0
    }

    /// Says that the receiver is about to sleep until there is something. Look once more after it, with [`Rx::settled`].
    pub fn arm(&self) {
        self.words()
            .armed_data
            .0
            .fetch_or(SLEEPER, Ordering::SeqCst);
    }

    /// Whether a sender would ring.
    pub fn is_armed(&self) -> bool {
        self.words().armed_data.0.load(Ordering::Relaxed) & SLEEPER != 0
    }

    /// Whether there is nothing, sequentially consistent with publishing: the look between arming and sleeping.
    pub fn settled(&self) -> bool {
        let published = &self.words().published.0;
        published.tail.load(Ordering::SeqCst) == self.head()
            && published.fin.load(Ordering::SeqCst) == 0
    }

    /// Asks the sender to go back to TCP. Write a byte to the TCP connection afterwards.
    pub fn want_back(&self) {
        self.words().armed_data.0.fetch_or(BACK, Ordering::SeqCst);
    }

    /// What the sender said of its end: [`super::FIN`], [`super::GONE`].
    #[inline]
    pub fn finished(&self) -> u32 {
        self.words().published.0.fin.load(Ordering::Acquire)
    }

    /// Consents to the ring: from now on this end looks at [`Rx::to_ring`] before each read.
    pub fn consent(&self) {
        self.words().switch.0.consent.store(1, Ordering::Release);
    }

    /// Whether it has consented.
    #[inline]
    pub fn consented(&self) -> bool {
        self.words().switch.0.consent.load(Ordering::Relaxed) != 0
    }

    /// After how many bytes on TCP the ring continues, if the sender has moved there.
    #[inline]
    pub fn to_ring(&self) -> Option<u64> {
        self.words()
            .switch
            .0
            .to_ring
            .load(Ordering::SeqCst)
            .checked_sub(1)
    }

    /// After how many bytes on TCP, doorbells included, TCP continues, if the sender has gone back.
    #[inline]
    pub fn to_tcp(&self) -> Option<u64> {
        self.words()
            .switch
            .0
            .to_tcp
            .load(Ordering::SeqCst)
            .checked_sub(1)
    }

    /// How far the processes at this end have followed the sender: a number that `sockets` gives a meaning.
    #[inline]
    pub fn phase(&self) -> u32 {
        self.words().receiver.0.phase.load(Ordering::Relaxed)
    }

    /// Sets [`Rx::phase`].
    pub fn set_phase(&self, phase: u32) {
        self.words()
            .receiver
            .0
            .phase
            .store(phase, Ordering::Release);
    }

    /// The count before which out-of-band data was sent, if any was.
    pub fn mark(&self) -> Option<u64> {
        self.words()
            .receiver
            .0
            .mark
            .load(Ordering::SeqCst)
            .checked_sub(1)
    }

    /// For turns between processes.
    pub fn turn(&self) -> &AtomicU32 {
        &self.words().receiver.0.turn
    }

    #[inline]
    fn behind(&self, at: u64) -> Result<usize, Corrupt> {
        // Acquire pairs with the sender's publishing.
        let tail = self.words().published.0.tail.load(Ordering::Acquire);
        let n = tail.wrapping_sub(at);
        if n > RING as u64 {
            Err(Corrupt)
        } else {
            Ok(n as usize)
        }
    }

    #[inline]
    fn words(&self) -> &Direction {
        self.stream.direction(self.index)
    }
}

impl fmt::Debug for Rx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rx")
            .field("head", &self.head())
            .field(
                "tail",
                &self.words().published.0.tail.load(Ordering::Relaxed),
            )
            .field("finished", &self.finished())
            .field("to_ring", &self.to_ring())
            .field("to_tcp", &self.to_tcp())
            .finish_non_exhaustive()
    }
}
