//! A value that one thread has at a time, whichever frames of it are left by a jump.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::held::{self, Left};
use super::{pass_time, thread_id, wait_for};
use crate::alone::Exchange;
use crate::sync::{AtomicUsize, Ordering};

/// As a [`Lock`](crate::lock::Lock), but a thread that has the value and asks for it again, in a signal handler, is refused; and one that leaves
/// it by a jump is found out ([`end_left`](super::end_left)). So the value is to be one at any instant of a change, as far as whoever
/// [mends](Sole::mend) it cannot tell.
pub struct Sole<T> {
    taker: AtomicUsize,
    value: UnsafeCell<T>,
}

/// Another thread has the value.
#[derive(Debug)]
pub struct Busy;

// SAFETY: the value is only reached through a guard, and `taker` lets one guard exist at a time, but for such as were left by a jump.
unsafe impl<T: Send> Sync for Sole<T> {}
// SAFETY: nothing in it is tied to a thread, as far as nothing in `T` is.
unsafe impl<T: Send> Send for Sole<T> {}

impl<T> Sole<T> {
    /// Nobody has it.
    pub fn new(value: T) -> Self {
        Self {
            taker: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the value, waiting for it; `None` in a signal handler that came while its own thread had it.
    #[inline]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        let me = thread_id();
        // Only this thread stores its own number.
        if self.taker.load(Ordering::Relaxed) == me {
            return None;
        }
        held::announce_sole(me, &self.taker);
        // Acquire pairs with the release in `drop`.
        let free = self.taker.exchange(0, me);
        if free.is_err() {
            self.wait(me);
        }
        Some(Guard {
            of: self,
            announced: true,
        })
    }

    /// Naps sooner than who waits for a turn: what is done with a value alone may be long.
    #[cold]
    fn wait(&self, me: usize) {
        for tried in (0..).step_by(4) {
            if wait_for(&self.taker, me, 1) {
                return;
            }
            pass_time(tried);
        }
    }

    /// As [`Sole::enter`], without waiting, and to be kept beyond the frame that calls: a jump does not end it.
    ///
    /// # Errors
    /// If another thread has it.
    pub fn try_hold(&self) -> Result<Option<Guard<'_, T>>, Busy> {
        let me = thread_id();
        match self
            .taker
            .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Ok(Some(Guard {
                of: self,
                announced: false,
            })),
            Err(other) if other == me => Ok(None),
            Err(_) => Err(Busy),
        }
    }

    /// If this is the value that was left: does what is to be done about it before another thread has it.
    pub fn mend<R>(&self, left: &Left, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !left.is(&self.taker) || self.taker.load(Ordering::Relaxed) != thread_id() {
            return None;
        }
        // SAFETY: this thread has the value, and the frame with the guard is one that a jump leaves: nobody comes back to it.
        Some(act(unsafe { &mut *self.value.get() }))
    }
}

impl<T> fmt::Debug for Sole<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sole").finish_non_exhaustive()
    }
}

/// The value is this thread's as long as this lives.
pub struct Guard<'a, T> {
    of: &'a Sole<T>,
    announced: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, so nobody else writes the value.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed mutably.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `enter`.
        self.of.taker.store(0, Ordering::Release);
        if self.announced {
            held::withdraw_sole(thread_id(), &self.of.taker);
        }
    }
}

// SAFETY: a guard gives out references to the value and nothing else.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::stack;
    use crate::turn::{end_left, is_in_sole};

    #[test]
    fn counts_of_several_threads_add_up() {
        let count = Sole::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        *count.enter().expect("not in a handler") += 1;
                    }
                });
            }
        });
        assert_eq!(*count.enter().expect("free"), 200_000);
    }

    #[test]
    fn who_has_it_is_refused_and_others_are_told() {
        let sole = Sole::new(());
        let guard = sole.enter();
        assert!(guard.is_some() && sole.enter().is_none());
        assert!(matches!(sole.try_hold(), Ok(None)));
        thread::scope(|scope| {
            scope.spawn(|| assert!(sole.try_hold().is_err()));
        });
        drop(guard);
        assert!(matches!(sole.try_hold(), Ok(Some(_))));
        assert!(!is_in_sole());
    }

    #[test]
    fn what_a_jump_leaves_is_mended_and_free() {
        #[inline(never)]
        fn left_behind(sole: &Sole<u32>) {
            let mut guard = sole.enter().expect("free");
            *guard = 7;
            std::mem::forget(guard);
        }
        let (sole, other) = (Sole::new(0), Sole::new(1));
        left_behind(&sole);
        let held = other.try_hold();
        assert!(is_in_sole());
        let mut mended = 0;
        end_left(stack::frame(), |left| {
            assert_eq!(other.mend(left, |_| ()), None);
            mended += sole.mend(left, |value| *value).unwrap_or(0);
        });
        assert_eq!(mended, 7);
        assert!(!is_in_sole() && sole.enter().is_some());
        assert!(matches!(held, Ok(Some(_))));
    }
}
