//! What polls of the same descriptors have found before: `poll` has no set that would remember it.

use std::cell::Cell;

use sys::time::coarse_ms;

use super::PollFd;
use crate::ready::Asking;

/// How often this thread asks the kernel for those of which only it may know. One of its handlers may meanwhile have its own: then one is forgotten.
pub(super) struct Habit {
    key: u64,
    asking: Asking,
}

impl Habit {
    /// Of a poll whose descriptors come to this `key`, and whether it is to ask.
    pub(super) fn of(key: u64) -> (Self, bool) {
        let (last, asking) = LAST.get();
        let asking = if last == key { asking } else { Asking::NEW };
        let mut habit = Self { key, asking };
        let is_due = key != NOTHING && habit.asking.is_due(|| Some(coarse_ms()));
        habit.keep();
        (habit, is_due)
    }

    /// As [`Asking::looks`].
    pub(super) fn looks(&self) -> u32 {
        self.asking.looks()
    }

    /// The kernel has been asked.
    pub(super) fn had(&mut self, news: bool) {
        if self.key != NOTHING {
            self.asking.had(news, coarse_ms());
            self.keep();
        }
    }

    fn keep(&self) {
        if self.key != NOTHING {
            LAST.set((self.key, self.asking));
        }
    }
}

/// The key of no descriptors.
pub(super) const NOTHING: u64 = 0;

/// That of one more.
#[inline]
pub(super) fn with(key: u64, entry: &PollFd) -> u64 {
    let entry = (entry.fd.cast_unsigned() as u64) << 16 | entry.events.cast_unsigned() as u64;
    ((key ^ entry).wrapping_mul(ODD) ^ key >> 32).max(1)
}

/// Of the golden ratio: multiplied by it, numbers that differ in few bits differ in many.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

std::thread_local! {
    /// Of the last poll that was for others, too.
    static LAST: Cell<(u64, Asking)> = const { Cell::new((NOTHING, Asking::NEW)) };
}
