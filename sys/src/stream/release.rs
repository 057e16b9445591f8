//! Physical memory follows use.

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

use super::Tx;
use super::layout::{BEHIND, BESIDE, PAGE};
use crate::quiet::Quiet;
use crate::sync::{Count, Ordering};

impl Tx<'_> {
    /// Gives the pages of an empty ring back to the system, but for the first. For a sender that is about to be idle, in its turn (and, where
    /// processes share the end, having [entered](Tx::enter)). Two loads where no more than the first page was written since the last time;
    /// else some system calls, and a page fault per page when the ring is next filled.
    ///
    /// It races with nobody. With no writer: only who has the turn writes, and signals wait meanwhile. With no reader: in an empty ring
    /// no byte is between the cursors, and what comes next is written to the first page, which stays. A reader whom a handler
    /// overtook may still copy old bytes, sees zeros, and finds at `take` that it must copy again. And with no receiver that
    /// puts bytes back, for it does that only after this direction went to TCP, when nothing is done here.
    pub fn release_unused(&self) {
        let used = &self.words().sender.used;
        if used.load(Ordering::Relaxed) <= PAGE || self.stream.unfinished.is_mine() {
            return;
        }
        let _quiet = Quiet::begin();
        let base = &self.words().sender.base;
        let (was, tail) = (base.load(Ordering::Relaxed), self.tail());
        let empty = self.room_from(tail, self.ring_len()) == Ok(self.ring_len());
        if !empty || self.to_tcp().is_some() || !base.exchange_here(was, tail) {
            return;
        }
        used.store(0, Ordering::Relaxed);
        let len = self.ring_len() - PAGE as usize;
        let start = self.stream.ring(self.index).wrapping_add(PAGE as usize);
        if start.addr().is_multiple_of(page_size()) && len.is_multiple_of(page_size()) {
            // SAFETY: the range is the ring's but for its first page, in a shared mapping of ours; it reads as zeros afterwards, and as above nobody
            // needs what is in it. A kernel that refuses has kept the pages.
            let _ = unsafe { madvise(start.cast(), len, Advice::LinuxRemove) };
        }
    }

    /// Whether there are pages that are worth giving back by [`Tx::release_unused`].
    #[inline]
    pub fn has_grown(&self) -> bool {
        self.words().sender.used.load(Ordering::Relaxed) > 4 * PAGE
    }

    /// Remembers that `len` bytes are written at `at` of the ring.
    #[inline]
    pub(super) fn note_use(&self, at: u64, len: usize) {
        let used = &self.words().sender.used;
        let place = self.stream.place(at);
        let end = match place + len {
            // In the first page, which is not given back, and perhaps after that at its start.
            end if place >= self.ring_len() - BESIDE - BEHIND => {
                end.saturating_sub(self.ring_len())
            }
            // Beyond the end of the ring is its start again, after all of it.
            end => end.min(self.ring_len()),
        } as u64;
        if end > used.load(Ordering::Relaxed) {
            used.store(end, Ordering::Relaxed);
        }
    }
}
