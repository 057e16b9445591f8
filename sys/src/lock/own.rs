//! A lock that knows which thread has it.

use super::{Guard, Lock};
use crate::stack;
use crate::sync::{Ordering, compiler_fence, mapped::AtomicU64};
use crate::turn::{Busy, thread_id};

/// Mutual exclusion among threads, into which signal handlers may come: one that finds its own thread in it would wait for itself.
#[derive(Debug)]
pub struct OwnLock {
    lock: Lock<()>,
    /// Where who has it took it; [`NOWHERE`] until he says so, and where it outlives his frame.
    frame: AtomicU64,
}

/// The lock is taken as long as this lives.
pub struct OwnGuard<'a> {
    frame: &'a AtomicU64,
    /// Freed after that.
    _guard: Guard<'a, ()>,
}

impl Drop for OwnGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.frame.store(NOWHERE, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}

impl OwnLock {
    /// A free one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            lock: Lock::new(()),
            frame: AtomicU64::new(NOWHERE),
        }
    }

    /// Takes it, waiting for it, unless the calling thread has it already: then this is a signal handler that came into what that does, and is alone with it
    /// as long as it runs.
    // The frame is that of who calls, and is to live as long as the guard.
    #[inline(always)]
    pub fn enter(&self) -> Option<OwnGuard<'_>> {
        let me = mark();
        let guard = match self.lock.try_lock_as(me) {
            Some(guard) => guard,
            None if self.is_left_at(stack::frame()) || !self.is_mine() => self.lock.wait_as(me),
            None => return None,
        };
        self.frame.store(stack::frame() as u64, Ordering::Relaxed);
        Some(self.guarded(guard))
    }

    /// As [`OwnLock::enter`] if no other thread has it, and for longer than any frame: no jump frees it.
    ///
    /// # Errors
    /// One has.
    pub fn try_enter(&self) -> Result<Option<OwnGuard<'_>>, Busy> {
        let Some(guard) = self.lock.try_lock_as(mark()) else {
            return if self.is_mine() { Ok(None) } else { Err(Busy) };
        };
        Ok(Some(self.guarded(guard)))
    }

    #[inline]
    fn guarded<'a>(&'a self, guard: Guard<'a, ()>) -> OwnGuard<'a> {
        OwnGuard {
            frame: &self.frame,
            _guard: guard,
        }
    }

    /// Whether the calling thread has it.
    // Nobody else writes its mark there, or takes it away.
    #[inline]
    pub fn is_mine(&self) -> bool {
        self.lock.is_own()
    }

    /// The calling thread jumps to a frame at `target`: what it leaves for good has the lock no more.
    #[cold]
    pub fn end_left(&self, target: usize) {
        self.is_left_at(target);
    }

    /// Whether the calling thread had it in a frame that one at `target` has left for good. It is free then.
    #[cold]
    fn is_left_at(&self, target: usize) -> bool {
        let frame = self.frame.load(Ordering::Relaxed) as usize;
        // A handler that came in between may have freed it, and another thread have it.
        let left = self.is_mine()
            && stack::is_left(frame, target)
            && self
                .lock
                .taken
                .compare_exchange(mark(), 0, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        if left {
            self.frame.store(NOWHERE, Ordering::Relaxed);
        }
        left
    }
}

impl<T> Lock<T> {
    /// As [`Lock::try_lock`], and notes whose it is: for a lock that is taken in no other way.
    #[inline]
    pub fn try_lock_own(&self) -> Option<Guard<'_, T>> {
        self.try_lock_as(mark())
    }

    /// Whether the calling thread has it.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == mark()
    }
}

impl Default for OwnLock {
    fn default() -> Self {
        Self::new()
    }
}

/// What is in the lock of this thread: a thread's control block is a multiple of 64. Two that lie 128 GiB apart would look alike.
#[inline]
fn mark() -> u32 {
    (thread_id() >> 6) as u32 | MARK
}

/// No frame is above it.
const NOWHERE: u64 = u64::MAX;
/// No other value of the lock has this bit.
const MARK: u32 = 1 << 31;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_has_entered_does_not_wait_for_himself() {
        let lock = OwnLock::new();
        let guard = lock.enter();
        assert!(guard.is_some() && lock.is_mine());
        in_handler(&lock);
        thread::scope(|scope| {
            scope.spawn(|| assert!(matches!(lock.try_enter(), Err(Busy)) && !lock.is_mine()));
        });
        drop(guard);
        assert!(matches!(lock.try_enter(), Ok(Some(_))));
    }

    /// Below who has it, as handlers are.
    #[inline(never)]
    fn in_handler(lock: &OwnLock) {
        assert!(lock.enter().is_none());
        assert!(matches!(lock.try_enter(), Ok(None)));
        lock.end_left(stack::frame());
        assert!(lock.is_mine());
    }

    #[test]
    fn a_value_knows_whose_it_is() {
        let lock = Lock::new(1);
        let guard = lock.try_lock_own();
        assert!(guard.is_some() && lock.is_own() && lock.try_lock_own().is_none());
        thread::scope(|scope| {
            scope.spawn(|| assert!(!lock.is_own() && lock.try_lock_own().is_none()));
        });
        drop(guard);
        assert!(!lock.is_own());
    }

    #[test]
    fn what_outlives_its_frame_is_not_left() {
        let lock = OwnLock::new();
        let kept = keep(&lock);
        lock.end_left(stack::frame());
        assert!(lock.enter().is_none() && lock.is_mine());
        drop(kept);
        assert!(!lock.is_mine());
    }

    /// As before a fork.
    #[inline(never)]
    fn keep(lock: &OwnLock) -> Option<OwnGuard<'_>> {
        std::hint::black_box(lock.try_enter()).ok().flatten()
    }

    #[test]
    fn who_left_it_has_it_no_more() {
        let lock = OwnLock::new();
        leave(&lock);
        assert!(lock.is_mine());
        lock.end_left(stack::frame());
        assert!(!lock.is_mine());
        leave(&lock);
        assert!(lock.enter().is_some(), "told of by nobody");
    }

    /// As a jump does.
    #[inline(never)]
    fn leave(lock: &OwnLock) {
        std::mem::forget(std::hint::black_box(lock.enter()));
    }
}
