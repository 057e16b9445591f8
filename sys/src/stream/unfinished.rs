//! What the sender is in the middle of, for a signal handler of the same thread that comes in between and sends as well.
//!
//! A copy into the ring that a handler interrupts goes on when the handler returns, over whatever lies there by then. So the handler first
//! finishes it: it copies the same bytes to the same place, where the rest of the interrupted copy changes nothing, and publishes
//! them before its own. The interrupted one finds the tail moved, and how many of its bytes went with it. Until it ends, nobody who came in
//! between goes round the ring to where it may still write (`floor`).
//!
//! Every field is written by one thread and its handlers only; a handler leaves all as it found them, but for `helped`.

use std::ptr;

use crate::sync::mapped::{AtomicU32, AtomicU64};
use crate::sync::{Ordering, compiler_fence};
use crate::turn::thread_id;

/// All fields are 0 while nobody sends. In memory of this process, for there are addresses in it.
///
/// Each send writes them, so they are to fit into one line of the processor's, with the word that follows.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Who sends, 0 if nobody.
    thread: AtomicU64,
    /// An address in the stack frame of the outermost sender.
    frame: AtomicU64,
    /// From where on the outermost sender may write, up to anywhere.
    floor: AtomicU64,
    /// The tail that goes with the copy under way. Everything from here to `at` is in its place.
    tail: AtomicU64,
    at: AtomicU64,
    /// 0 while there is no copy under way.
    from: AtomicU64,
    /// No more than a ring has.
    len: AtomicU32,
    /// How many bytes from `tail` on a handler has published. No more than a ring has.
    helped: AtomicU32,
}

/// The copy of a piece that a handler came into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) tail: u64,
    pub(super) at: u64,
    pub(super) from: *const u8,
    pub(super) len: usize,
}

/// What a handler found and will put back.
#[derive(Debug)]
pub(super) struct Found {
    words: [u64; 6],
    lens: [u32; 2],
}

impl Unfinished {
    /// Whether this thread is in the middle of sending already.
    #[inline]
    pub(super) fn is_mine(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == thread_id() as u64
    }

    /// The outermost sender begins.
    #[inline]
    pub(super) fn begin(&self) {
        let here = 0u8;
        self.frame
            .store(ptr::from_ref(&here).addr() as u64, Ordering::Relaxed);
        self.helped.store(0, Ordering::Relaxed);
        self.thread.store(thread_id() as u64, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// The outermost sender ends.
    #[inline]
    pub(super) fn end(&self) {
        self.thread.store(0, Ordering::Release);
    }

    /// The outermost sender writes at or after `tail` from now on, and no more before.
    #[inline]
    pub(super) fn set_floor(&self, tail: u64) {
        self.floor.store(tail, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    /// The copy of `piece` to `at` begins, everything from `tail` to there being in place.
    #[inline]
    pub(super) fn copy(&self, tail: u64, at: u64, piece: &[u8]) {
        self.tail.store(tail, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
        self.len.store(piece.len() as u32, Ordering::Relaxed);
        // Never 0, which a reference is not.
        self.from
            .store(piece.as_ptr().expose_provenance() as u64, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// It has ended.
    #[inline]
    pub(super) fn copied(&self) {
        self.from.store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// How many bytes handlers have published for the caller since it last asked.
    pub(super) fn take_helped(&self) -> u64 {
        let helped = self.helped.load(Ordering::Relaxed);
        self.helped.store(0, Ordering::Relaxed);
        helped.into()
    }

    /// A handler says how many bytes it has published for the one whom it interrupted.
    pub(super) fn set_helped(&self, bytes: u64) {
        self.helped.store(bytes as u32, Ordering::Release);
    }

    /// The copy that this thread is in the middle of.
    pub(super) fn interrupted(&self) -> Option<Copy> {
        if !self.is_mine() {
            return None;
        }
        let from = self.from.load(Ordering::Acquire) as usize;
        (from != 0).then(|| Copy {
            tail: self.tail.load(Ordering::Relaxed),
            at: self.at.load(Ordering::Relaxed),
            from: ptr::with_exposed_provenance(from),
            len: self.len.load(Ordering::Relaxed) as usize,
        })
    }

    /// A handler comes in. A sender whose stack frame is gone was left by a `longjmp`, and is forgotten.
    pub(super) fn forget_left(&self) {
        let here = 0u8;
        let left = ptr::from_ref(&here).addr() as u64 >= self.frame.load(Ordering::Relaxed);
        if self.is_mine() && left && !on_other_stack() {
            self.copied();
            self.end();
        }
    }

    /// This thread's sender, if it is in the middle, was left by a jump.
    pub(super) fn forget(&self) {
        if self.is_mine() {
            self.copied();
            self.set_helped(0);
            self.end();
        }
    }

    /// What the handler will put back, and a clean state for itself.
    pub(super) fn come_in(&self) -> Found {
        let found = Found {
            words: self.words().map(|word| word.load(Ordering::Acquire)),
            lens: self.lens().map(|len| len.load(Ordering::Acquire)),
        };
        self.copied();
        self.set_helped(0);
        found
    }

    /// The handler leaves.
    pub(super) fn leave(&self, found: Found) {
        compiler_fence(Ordering::SeqCst);
        for (len, value) in self.lens().into_iter().zip(found.lens) {
            len.store(value, Ordering::Release);
        }
        // Last whether there is a copy.
        for (word, value) in self.words().into_iter().zip(found.words) {
            word.store(value, Ordering::Release);
        }
    }

    fn words(&self) -> [&AtomicU64; 6] {
        [
            &self.thread,
            &self.frame,
            &self.floor,
            &self.tail,
            &self.at,
            &self.from,
        ]
    }

    fn lens(&self) -> [&AtomicU32; 2] {
        [&self.len, &self.helped]
    }
}

/// Whether the thread runs on the stack that it has for handlers, where addresses tell nothing about what is nested in what.
fn on_other_stack() -> bool {
    let mut stack = libc::stack_t {
        ss_sp: ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: only asks; the answer goes to a value of ours.
    let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) };
    asked != 0 || stack.ss_flags & libc::SS_ONSTACK != 0
}
