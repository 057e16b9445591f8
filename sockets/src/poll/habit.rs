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
        if key == NOTHING {
            let asking = Asking::NEW;
            return (Self { key, asking }, false);
        }
        let (last, asking) = LAST.get();
        let asking = if last == key { asking } else { Asking::NEW };
        let mut habit = Self { key, asking };
        let is_due = habit.asking.is_due(|| Some(coarse_ms()));
        LAST.set((key, habit.asking));
        (habit, is_due)
    }

    /// As [`Asking::looks`].
    pub(super) fn looks(&self) -> u32 {
        self.asking.looks()
    }

    /// The kernel has been asked.
    pub(super) fn had(&mut self, news: bool) {
        if self.key != NOTHING {
            self.asking.had(news, false, coarse_ms());
            LAST.set((self.key, self.asking));
        }
    }
}

/// The key of no descriptors.
pub(super) const NOTHING: u64 = 0;

/// That of one more.
#[inline]
pub(super) fn key_with(key: u64, entry: &PollFd) -> u64 {
    let entry = (entry.fd.cast_unsigned() as u64) << 16 | entry.events.cast_unsigned() as u64;
    ((key ^ entry).wrapping_mul(ODD) ^ key >> 32).max(1)
}

/// Of the golden ratio: multiplied by it, numbers that differ in few bits differ in many.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

std::thread_local! {
    /// Of the last poll that was for others, too.
    static LAST: Cell<(u64, Asking)> = const { Cell::new((NOTHING, Asking::NEW)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a poll for these, of which the kernel has nothing, asks at once.
    fn asks(fds: &[i32]) -> bool {
        let entry = |&fd| PollFd {
            fd,
            events: 1,
            revents: 0,
        };
        let key = fds
            .iter()
            .fold(NOTHING, |key, fd| key_with(key, &entry(fd)));
        let (mut habit, due) = Habit::of(key);
        if due {
            habit.had(false);
        }
        due
    }

    #[test]
    fn another_list_begins_anew() {
        // Few of them begin in another tick of the clock.
        let in_turn = |fds: &[i32]| (0..100).filter(|_| asks(fds)).count();
        assert!(in_turn(&[3, 4]) < 50);
        assert!(in_turn(&[4, 3]) > 8);
        assert!(asks(&[3, 4]));
    }

    #[test]
    fn who_polls_for_memory_alone_does_not_ask() {
        assert!(!asks(&[]));
    }
}
