//! Where a ring begins.

use super::layout::{BEHIND, BESIDE, PAGE};
use super::{Corrupt, Tx};
use crate::sync::{Count, Ordering};

impl Tx<'_> {
    /// Where so many bytes had better begin in the ring, if it is empty. In the first page, if the peer has said something since this end last sent, and so waits for
    /// them: a sender who goes on would write to lines that the peer reads meanwhile.
    #[inline]
    pub(super) fn begin_at(&self, len: impl FnOnce() -> usize) -> u64 {
        if !self.answers() {
            return 0;
        }
        let len = len();
        let from_end = if len <= BESIDE {
            BESIDE + BEHIND
        } else if len <= BEHIND {
            BEHIND
        } else {
            return 0;
        };
        (self.ring_len() - from_end) as u64
    }

    /// Whether the peer has said something since this end last sent, or nothing was sent yet.
    #[inline]
    pub(super) fn answers(&self) -> bool {
        let own = self.words().sender;
        own.answered.load(Ordering::Relaxed) != self.taken()
            || own.tail.load(Ordering::Relaxed) == 0
    }

    /// Bytes that the receiver had taken when it last sent something, by what it says: it may have taken more since.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        let shown = self.stream.direction(self.index ^ 1).published;
        // Acquire pairs with the release in `publish`.
        shown.ack.load(Ordering::Acquire)
    }

    /// The count that lies at the start of the ring. When the ring is empty it begins anew at `begin`, so that a stream that carries
    /// little touches few pages; where the peer's acknowledgements do not tell, a look at its cursor per page does.
    ///
    /// `None` if a handler wrote meanwhile. It says so by going on a whole ring, which no place depends on; itself it stays where the interrupted one is.
    #[inline]
    pub(super) fn rebase(
        &self,
        between: bool,
        base: u64,
        tail: u64,
        begin: u64,
    ) -> Result<Option<u64>, Corrupt> {
        if between || self.stream.place(tail.wrapping_sub(base)) as u64 == begin {
            return Ok(Some(base));
        }
        let words = self.words();
        let seen = words.sender.head_seen.load(Ordering::Relaxed);
        let acked = self.acknowledged();
        let new_page = tail.wrapping_sub(base) & (PAGE - 1) < NEAR;
        if seen != tail
            && acked != tail
            && !(new_page && self.room_from(tail, self.ring_len())? == self.ring_len())
        {
            return Ok(Some(base));
        }
        let new = tail.wrapping_sub(begin);
        if !words.sender.base.exchange_here(base, new) {
            return Ok(None);
        }
        Ok(Some(new))
    }

    /// Shows where the bytes lie that are about to be published, each time: whoever moved the base may have been killed since. Where there are some that were
    /// not taken it has not changed, but for laps.
    #[inline]
    pub(super) fn show_base(&self) {
        let base = self.words().sender.base.load(Ordering::Relaxed);
        let shown = &self.words().published.base;
        shown.store(base as u32, Ordering::Release);
    }
}

/// A tail so little after a page's start has just crossed it.
const NEAR: u64 = 64;
