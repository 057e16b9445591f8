//! How far into its ring a stream goes.
//!
//! Fresh memory costs more than the copies into it: of the 2 MB that a ring may grow to, 1.0 ms to touch and 0.4 to give back on a virtual machine, in which
//! time 15 MB go through memory that is there. A stream begins at the ring's start whenever that is empty, but where the receiver is always a little
//! behind that is never. So it goes no further than it has gone before, as long as the receiver [empties the ring](Tx::drained) when the sender waits for it.
//! See [decision 64](../../../docs/decisions/0064-drain-before-it-grows.md).

use super::Tx;
use super::layout::{BEHIND, BESIDE};
use crate::sync::Ordering;

impl Tx<'_> {
    /// How many of the next `len` bytes lie where the ring has been written, or may be without more ado. Those after them had better wait until it is empty; if that
    /// takes too long, let it [grow](Tx::grow). A hint: there may be no room for them, or more.
    #[inline]
    pub fn fitting(&self, len: usize) -> usize {
        let reach = self.reach();
        if reach == self.ring_len() {
            return len;
        }
        let place = self.stream.place(self.words().sender.since_base() as u64);
        let fitting = match self.ring_len() - place {
            // In the first page, and after that at the start, or all of it there.
            left if left <= BESIDE + BEHIND => reach,
            _ => reach.saturating_sub(place),
        };
        fitting.min(len)
    }

    /// Lets it go twice as far.
    pub fn grow(&self) {
        let used = &self.words().sender.used;
        let twice = (2 * self.reach()).min(self.ring_len());
        used.store(twice as u64, Ordering::Relaxed);
    }

    /// How far from its start the ring may be written, at most all of it: how many bytes fit into one that is empty.
    #[inline]
    pub fn reach(&self) -> usize {
        let own = self.words().sender;
        if own.tail.load(Ordering::Relaxed) >= LONG {
            return self.ring_len();
        }
        let used = own.used.load(Ordering::Relaxed);
        used.max(FIRST as u64).min(self.ring_len() as u64) as usize
    }
}

/// So far it goes in any case.
pub(super) const FIRST: usize = 256 << 10;
/// A stream that has carried so much goes through all of the ring, unasked: waiting costs writes of 64 kB 13 to 21 us for each MB, so that by 64 to 100 MB it has cost as
/// much as the memory.
pub(super) const LONG: u64 = 32 << 20;
