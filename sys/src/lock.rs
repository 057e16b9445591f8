//! A lock for data that is nearly always its owner's alone.

use std::cell::UnsafeCell;
use std::fmt;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::thread;
use std::time::Duration;

use crate::alone::Exchange;
use crate::sync::{Ordering, mapped::AtomicU32};

pub use own::{OwnGuard, OwnLock};

mod own;

/// Mutual exclusion that costs one locked instruction when nobody else wants it (none where there is [one thread](crate::alone)), half of what a
/// mutex costs: releasing is a plain store, because nobody can be asleep in the kernel for it.
///
/// Who finds it taken pauses, then yields, then naps, so a holder that was preempted loses little
/// and a long copy under the lock is not disturbed. It is not fair, and not for data that several
/// threads fight over.
pub struct Lock<T> {
    taken: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, and `taken` lets one guard exist at a time.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above; a shared lock hands the value from thread to thread, so it must be `Send`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock, waiting for it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        self.lock_contended()
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.try_lock_as(SOMEBODY)
    }

    #[inline]
    fn try_lock_as(&self, who: u32) -> Option<Guard<'_, T>> {
        // Acquire pairs with the release in `drop`.
        let free = self.taken.exchange(0, who);
        free.is_ok().then(|| Guard { lock: self })
    }

    #[cold]
    fn lock_contended(&self) -> Guard<'_, T> {
        self.wait_as(SOMEBODY)
    }

    fn wait_as(&self, who: u32) -> Guard<'_, T> {
        let mut tries = 0u32;
        loop {
            // Looking does not take the line away from the holder.
            if self.taken.load(Ordering::Relaxed) == 0
                && let Some(guard) = self.try_lock_as(who)
            {
                return guard;
            }
            tries = tries.saturating_add(1);
            if tries < PAUSES {
                spin_loop();
            } else if tries < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(NAP);
            }
        }
    }
}

impl<T> Lock<T> {
    /// Frees a lock whose guard is in a frame that was left by a jump.
    ///
    /// # Safety
    /// There is no other guard, and the value is one at any instant of a change.
    pub(crate) unsafe fn free_left(&self) {
        self.taken.store(0, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_tuple("Lock").field(&*value).finish(),
            None => f.write_str("Lock(taken)"),
        }
    }
}

/// The lock is taken as long as this lives.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, so nobody else writes the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `try_lock`.
        self.lock.taken.store(0, Ordering::Release);
    }
}

// SAFETY: a guard gives out references to the value and nothing else.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

/// In the lock, taken by a thread that does not say which one it is.
const SOMEBODY: u32 = 1;
const PAUSES: u32 = 64;
const YIELDS: u32 = 1024;
const NAP: Duration = Duration::from_micros(50);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_threads_add_up() {
        let count = Lock::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        *count.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*count.lock(), 200_000);
    }

    #[test]
    fn it_is_taken_as_long_as_its_guard_lives() {
        let lock = Lock::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
