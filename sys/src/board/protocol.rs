//! What passes between one who notes that there is something and a set that looks, or goes to sleep.
//!
//! Written for any words, so that loom checks what runs on mapped ones. Every access is sequentially consistent, for two reasons. A bit is set before the
//! summary says so, and the summary is taken before the bits, so a bit that is not taken now is told of again. And the sender sets the summary and then
//! looks whether the set sleeps, and the set says that it sleeps and then looks at the summary, so one of the two sees the other.

use crate::sync::{Ordering, Word};

/// The words of a leaf.
#[derive(Clone, Copy)]
pub(super) struct Words<'a, W> {
    /// [`NOW`], [`ALWAYS`].
    pub(super) asleep: &'a W,
    pub(super) summary: &'a [W],
    pub(super) bits: &'a [W],
}

impl<W: Word> Words<'_, W> {
    /// Receiver: before anybody knows of it.
    pub(super) fn begin(&self) {
        self.asleep.store(0, Ordering::SeqCst);
    }

    /// Sender: notes that there is something for `slot`; whether its doorbell must be rung.
    #[inline]
    pub(super) fn note(&self, slot: u32) -> bool {
        let (word, bit) = (slot / 32, 1 << (slot % 32));
        let (group, of_word) = (word / 32, 1 << (word % 32));
        let (Some(word), Some(group)) = (
            self.bits.get(word as usize),
            self.summary.get(group as usize),
        ) else {
            return true;
        };
        word.fetch_or(bit, Ordering::SeqCst);
        group.fetch_or(of_word, Ordering::SeqCst);
        self.asleep.load(Ordering::SeqCst) != 0
    }

    /// Receiver: about to sleep. Ask [`Words::is_quiet`] afterwards.
    #[inline]
    pub(super) fn sleep(&self) {
        self.asleep.fetch_or(NOW, Ordering::SeqCst);
    }

    /// Receiver: awake. Relaxed: who sees it late rings for nothing.
    #[inline]
    pub(super) fn wake(&self) {
        self.asleep.fetch_and(!NOW, Ordering::Relaxed);
    }

    /// Receiver: nobody looks here any more. What was noted before is to be looked for elsewhere.
    pub(super) fn leave(&self) {
        self.asleep.fetch_or(ALWAYS, Ordering::SeqCst);
    }

    /// Receiver: whether nothing is noted of the first `slots`.
    #[inline]
    pub(super) fn is_quiet(&self, slots: u32) -> bool {
        let groups = slots.div_ceil(32 * 32) as usize;
        self.summary
            .iter()
            .take(groups)
            .all(|group| group.load(Ordering::SeqCst) == 0)
    }

    /// Receiver: takes what is noted of one group of slots, if there is anything.
    #[inline]
    pub(super) fn take(&self, group: u32, mut each: impl FnMut(u32)) {
        let Some(summary) = self.summary.get(group as usize) else {
            return;
        };
        if summary.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut words = summary.swap(0, Ordering::SeqCst);
        while words != 0 {
            let word = group * 32 + words.trailing_zeros();
            words &= words - 1;
            let Some(bits) = self.bits.get(word as usize) else {
                continue;
            };
            let mut bits = bits.swap(0, Ordering::SeqCst);
            while bits != 0 {
                each(word * 32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

/// In `asleep`: the set's thread sleeps.
pub(super) const NOW: u32 = 1;
/// In `asleep`: the set looks no more.
pub(super) const ALWAYS: u32 = 2;
