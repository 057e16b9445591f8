//! What passes between one who notes that there is something and a set that looks, or goes to sleep.
//!
//! Written for any words, so that loom checks what runs on mapped ones. Every access is sequentially consistent, for two reasons. A bit is set before the
//! summary says so, and the summary is taken before the bits, so a bit that is not taken now is told of again. And the sender sets the summary and then
//! looks whether the set sleeps, and the set says that it sleeps and then looks at the summary, so one of the two sees the other.

use std::ops::Deref;

use crate::sync::{Ordering, Word};

/// The words of a leaf. What holds the groups, one for each line, is the caller's business.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a, W, G> {
    /// [`NOW`], [`ALWAYS`].
    pub(super) asleep: &'a W,
    pub(super) groups: &'a [G],
}

/// Slots that lie in one line of the processor's, so that a note takes one line from the receiver, and a look at it one from the sender.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Group<W> {
    /// A bit stands for a word of bits.
    pub(super) summary: W,
    pub(super) bits: [W; WORDS],
}

impl<W: Word, G: Deref<Target = Group<W>>> Words<'_, W, G> {
    /// Receiver: before anybody knows of it.
    pub(super) fn begin(&self) {
        self.asleep.store(0, Ordering::SeqCst);
    }

    /// Sender: notes that there is something for `slot`; whether its doorbell must be rung.
    #[inline]
    pub(super) fn note(&self, slot: u32) -> bool {
        let (word, bit) = (slot / 32, 1 << (slot % 32));
        let (group, within) = (word as usize / WORDS, word as usize % WORDS);
        let Some(group) = self.groups.get(group) else {
            return true;
        };
        let Some(word) = group.bits.get(within) else {
            return true;
        };
        word.fetch_or(bit, Ordering::SeqCst);
        // Who looks takes the summary before the bits: if it still tells of the word, the look that takes it finds this one, too.
        if group.summary.load(Ordering::SeqCst) & 1 << within == 0 {
            group.summary.fetch_or(1 << within, Ordering::SeqCst);
        }
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

    /// Receiver: whether nothing is noted of the first `groups`.
    #[inline]
    pub(super) fn is_quiet(&self, groups: usize) -> bool {
        self.groups
            .iter()
            .take(groups)
            .all(|group| group.summary.load(Ordering::SeqCst) == 0)
    }

    /// Receiver: takes what is noted of one group of slots, if there is anything.
    #[inline]
    pub(super) fn take(&self, group: u32, mut each: impl FnMut(u32)) {
        let first = group * WORDS as u32;
        let Some(group) = self.groups.get(group as usize) else {
            return;
        };
        if group.summary.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut words = group.summary.swap(0, Ordering::SeqCst);
        while words != 0 {
            let within = words.trailing_zeros();
            words &= words - 1;
            let Some(bits) = group.bits.get(within as usize) else {
                continue;
            };
            let mut bits = bits.swap(0, Ordering::SeqCst);
            while bits != 0 {
                each((first + within) * 32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

/// Words of bits that are in a line with their summary.
pub(super) const WORDS: usize = 15;
/// In `asleep`: the set's thread sleeps.
pub(super) const NOW: u32 = 1;
/// In `asleep`: the set looks no more.
pub(super) const ALWAYS: u32 = 2;
