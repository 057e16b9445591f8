use crate::sync::{Ordering, Word, mapped};

/// How one side is, in a word of its own: 0 is open, everything else the reason why not.
#[derive(Debug)]
pub(crate) struct State<'a, W: Word = mapped::AtomicU32>(&'a W);

impl<'a, W: Word> State<'a, W> {
    #[inline]
    pub(crate) fn new(word: &'a W) -> Self {
        Self(word)
    }

    /// Whatever was written before is visible to who sees it.
    pub(crate) fn set(&self, state: u32) {
        // Release pairs with the acquire in `get`.
        self.0.store(state, Ordering::Release);
    }

    /// Look at the ring after this: what the other side sent before it closed still counts.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}
