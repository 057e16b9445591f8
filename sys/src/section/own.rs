//! The sections of a thread, in memory of its own, which it and its handlers write.

use std::marker::PhantomData;

use super::{cancel, signal};
use crate::stack;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use crate::thread_words::thread_words;
use crate::turn::thread_id;

/// All zero at first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Words {
    /// Sections, one within the other.
    pub(super) depth: AtomicU32,
    /// Whether signals wait for the end: 0 or 1.
    pub(super) put_off: AtomicU32,
    /// What the program is to have of a sleep that ended early: [`NOTHING`], [`GOES_ON`], [`ENDS`].
    pub(super) verdict: AtomicU32,
    /// How many cancellations there had been before the outermost section.
    pub(super) since: AtomicU32,
    /// Where the outermost is.
    frame: AtomicUsize,
    /// The signals that are blocked outside, once some are put off.
    pub(super) mask: AtomicU64,
}

impl Words {
    /// The later of two that says more.
    pub(super) fn judge(&self, verdict: u32) {
        if self.verdict.load(Ordering::Relaxed) < verdict {
            self.verdict.store(verdict, Ordering::Relaxed);
        }
    }

    /// There is no section any more: what was put off comes now.
    #[cold]
    fn deliver(&self) {
        self.verdict.store(NOTHING, Ordering::Relaxed);
        self.put_off.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        signal::unblock(self.mask.load(Ordering::Relaxed));
    }

    /// A section within another; or one behind what a handler of a fault has left by a jump of which nobody told.
    #[cold]
    fn enter_again(&self, frame: usize, since: u32) {
        let outer = self.frame.load(Ordering::Relaxed);
        if outer < frame && stack::is_left(outer, frame) {
            self.depth.store(0, Ordering::Relaxed);
            self.end();
            self.enter(frame, since);
        } else {
            let depth = self.depth.load(Ordering::Relaxed);
            self.depth.store(depth.saturating_add(1), Ordering::Relaxed);
        }
    }

    #[inline]
    fn enter(&self, frame: usize, since: u32) {
        self.since.store(since, Ordering::Relaxed);
        self.frame.store(frame, Ordering::Relaxed);
        self.depth.store(1, Ordering::Relaxed);
    }

    /// The last one has ended.
    #[inline]
    fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        if self.put_off.load(Ordering::Relaxed) != 0 {
            self.deliver();
        }
    }
}

/// As long as it lives no handler of the program's runs on this thread, but for those of faults.
#[derive(Debug)]
pub struct Section {
    /// It is the thread's.
    _here: PhantomData<*const ()>,
}

impl Section {
    /// From now on. `since` is what [`cancellations`](super::cancellations) said before the thread was last asked whether it is to end.
    #[inline]
    #[must_use = "it is over when this is dropped"]
    pub fn begin(since: u32) -> Self {
        let words = words();
        if words.depth.load(Ordering::Relaxed) == 0 {
            words.enter(stack::frame(), since);
        } else {
            words.enter_again(stack::frame(), since);
        }
        compiler_fence(Ordering::SeqCst);
        Self { _here: PhantomData }
    }

    /// Whether a call whose sleep has ended early is to be made again: only handlers wait that have calls go on (`SA_RESTART`), or the thread is to be
    /// asked whether it ends. No sleep with a limit goes on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        words().verdict.load(Ordering::Relaxed) == GOES_ON
    }
}

impl Drop for Section {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let words = words();
        let depth = words.depth.load(Ordering::Relaxed).saturating_sub(1);
        words.depth.store(depth, Ordering::Relaxed);
        if depth == 0 {
            words.end();
        }
    }
}

/// Whether this thread is in a section.
#[inline]
pub fn is_in() -> bool {
    words().depth.load(Ordering::Relaxed) != 0
}

/// Whether something waits for the end of the section that this thread is in: who may sleep does not.
#[inline]
pub fn is_pending() -> bool {
    let words = words();
    words.depth.load(Ordering::Relaxed) != 0
        && (words.put_off.load(Ordering::Relaxed) != 0
            || words.since.load(Ordering::Relaxed) != cancel::cancellations())
}

/// Does what may take long and is no sleep of ours, with handlers as outside.
pub fn paused<R>(act: impl FnOnce() -> R) -> R {
    let words = words();
    let depth = words.depth.load(Ordering::Relaxed);
    if depth == 0 {
        return act();
    }
    words.depth.store(0, Ordering::Relaxed);
    words.end();
    let result = act();
    words.depth.store(depth, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    result
}

/// A handler, of a fault, is about to jump to a frame at `target`: its thread is in no section there that has been left.
#[cold]
pub fn end_left(target: usize) {
    let words = words();
    if words.depth.load(Ordering::Relaxed) != 0
        && stack::is_left(words.frame.load(Ordering::Relaxed), target)
    {
        words.depth.store(0, Ordering::Relaxed);
        words.end();
    }
}

/// Those of this thread.
#[inline]
pub(super) fn words() -> &'static Words {
    words_of(thread_id())
}

thread_words!(fn words_of(me) -> Words as "sovia_section");

/// Nobody has said.
const NOTHING: u32 = 0;
/// The call goes on.
pub(super) const GOES_ON: u32 = 1;
/// The call ends with `EINTR`, or with what it has done.
pub(super) const ENDS: u32 = 2;
