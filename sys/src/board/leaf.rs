//! What the receiver has.

use std::fmt;

use super::Id;
use super::layout::{GROUP, GROUPS, LEAVES, LeafPages, SLOTS};
use crate::sync::{Ordering, Word};

/// A set's part of this process's board.
#[derive(Clone, Copy)]
pub struct Leaf {
    board: Id,
    index: u32,
    pages: &'static LeafPages,
}

/// Which bit of a board is a connection's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Leaf {
    pub(super) fn new(board: Id, index: u32, pages: &'static LeafPages) -> Self {
        Self {
            board,
            index,
            pages,
        }
    }

    /// Whose it is.
    pub fn board(&self) -> Id {
        self.board
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// The place of a member; `None` if there are too many.
    #[inline]
    pub fn place(&self, slot: u32) -> Option<Place> {
        (slot < SLOTS as u32).then(|| Place::new(self.index, slot))
    }

    /// Says that the set's thread is about to sleep. Ask [`Leaf::is_quiet`] afterwards.
    #[inline]
    pub fn sleep(&self) {
        self.pages.words().sleep();
    }

    /// Says that it does not.
    #[inline]
    pub fn wake(&self) {
        self.pages.words().wake();
    }

    /// Says that nobody looks here any more: from now on doorbells are rung. What was noted before nobody is told of.
    pub fn leave(&self) {
        self.pages.words().leave();
    }

    /// Whether nothing is noted of the first `slots`, sequentially consistent with noting: the look between [`Leaf::sleep`] and sleeping.
    #[inline]
    pub fn is_quiet(&self, slots: usize) -> bool {
        self.pages.words().is_quiet(Self::groups(slots) as usize)
    }

    /// How many groups the first `slots` have.
    #[inline]
    pub fn groups(slots: usize) -> u32 {
        slots.div_ceil(GROUP).min(GROUPS) as u32
    }

    /// Takes what is noted of one group, if anything is. Peers may have noted what they should not: slots that are nobody's.
    #[inline]
    pub fn take(&self, group: u32, each: impl FnMut(u32)) {
        self.pages.words().take(group, each);
    }

    /// As a peer does.
    #[cfg(all(test, not(loom)))]
    pub(super) fn note(&self, slot: u32) -> bool {
        self.pages.words().note(slot)
    }

    pub(super) fn sleeps(&self) -> bool {
        Word::load(self.pages.words().asleep, Ordering::Relaxed) != 0
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf")
            .field("board", &self.board)
            .field("index", &self.index)
            .field("sleeps", &self.sleeps())
            .finish_non_exhaustive()
    }
}

impl Place {
    /// Both are cut to what there is.
    #[inline]
    pub(super) fn new(leaf: u32, slot: u32) -> Self {
        Self(leaf % LEAVES as u32 * SLOTS as u32 + slot % SLOTS as u32)
    }

    /// As a number of [`Place::BITS`] bits.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The place with that number. Whoever made it up means some place that there is.
    #[inline]
    pub fn from_number(number: u32) -> Self {
        Self(number % (LEAVES * SLOTS) as u32)
    }

    #[inline]
    pub(super) fn leaf(self) -> usize {
        self.0 as usize / SLOTS
    }

    #[inline]
    pub(super) fn slot(self) -> u32 {
        self.0 % SLOTS as u32
    }

    /// Bits of its number.
    pub const BITS: u32 = (LEAVES * SLOTS).ilog2();
}
