//! Who has an end: how many processes, and whether more than one may act there.
//!
//! Both words are its own processes' alone; a peer that writes them spoils its own connection. The count is never below the number of processes that
//! have the end and have not said that they left: then the last would leave unsaid, or one would act without a turn among processes. It may be above, by
//! those that were killed.
//!
//! A process that ends leaves before it does its last acts: what is in the buffers of `stdio` is still to come, and its other threads go on. So turns among
//! processes stay until it is gone, for which its number is kept beside `shared`.

use crate::sync::{AtomicU32, Ordering};

/// The words of one end.
#[derive(Clone, Copy, Debug)]
pub struct Holders<'a> {
    pub(super) count: &'a AtomicU32,
    pub(super) shared: &'a AtomicU32,
}

impl Holders<'_> {
    /// How many there are.
    pub fn count(&self) -> u32 {
        // Acquire pairs with `leave`: whoever acts as the only one sees all that those did who have left.
        self.count.load(Ordering::Acquire)
    }

    /// Whether there is one, who is asking.
    pub fn is_one(&self) -> bool {
        self.count() == 1
    }

    /// One more, who is not there yet, or is the caller. Says nothing to the others: they are told by what makes it one.
    pub fn join(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Another process has the end from now on. For who has both [turns](crate::turn) of this one, so that nobody acts meanwhile.
    pub fn share(&self) {
        self.join();
        // Relaxed: who acts next at this end in this process has the turn after the caller's, and the other process begins after this.
        self.shared.fetch_or(SHARED, Ordering::Relaxed);
    }

    /// The caller has the end no more; true if nobody else has it.
    pub fn leave(&self) -> bool {
        // Release, and acquire for the last, who decides by what the others took and sent whether all was read.
        let before = self
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        // None before: something was missed.
        matches!(before, Ok(1) | Err(_))
    }

    /// As [`Holders::leave`], of the process with the number `pid`, which may act until it has ended.
    pub fn leave_at_exit(&self, pid: u32) -> bool {
        // Relaxed: who finds itself the only one has read the count, which is written after this.
        let _ = self
            .shared
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
                let leaving = match word / LEAVING {
                    0 => pid.min(SEVERAL),
                    _ => SEVERAL,
                };
                Some((word & SHARED) | (leaving * LEAVING))
            });
        self.leave()
    }

    /// Who has left and may still act.
    pub fn leaving(&self) -> Option<Leaving> {
        let word = self.shared.load(Ordering::Relaxed);
        (word / LEAVING != 0).then_some(Leaving(word / LEAVING))
    }

    /// They have ended. Not if another one has left meanwhile.
    pub fn have_ended(&self, leaving: Leaving) {
        // Relaxed: the kernel has ordered what they did before it.
        let word = SHARED | (leaving.0 * LEAVING);
        let _ = self
            .shared
            .compare_exchange(word, SHARED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The other process that was [counted](Holders::share) did not come to be. The caller is one itself, whatever was counted meanwhile.
    pub fn take_back(&self) {
        // Relaxed: nobody did anything.
        let _ = self
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n > 1).then(|| n - 1)
            });
    }

    /// The kernel knows of nobody else, and did when there were `count`: the others were killed. Not if somebody came meanwhile, in a signal handler's fork.
    pub fn set_one(&self, count: u32) {
        // Relaxed: the kernel has ordered what the dead did before it.
        let _ = self
            .count
            .compare_exchange(count, 1, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether more than one process may act, so that each takes turns among processes too. In a turn of this process.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Turns among threads are enough again, if there is one holder, and none that has left may still act. For who has both turns of this process.
    pub fn unshare(&self) {
        if self.is_one() {
            // Relaxed, as in `share`.
            let _ = self
                .shared
                .compare_exchange(SHARED, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Processes that have left, and may act until they have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving(u32);

impl Leaving {
    /// The number of the process, if it is one.
    pub fn pid(self) -> Option<u32> {
        (self.0 != SEVERAL).then_some(self.0)
    }
}

/// In `shared`: turns are taken among processes.
const SHARED: u32 = 1;
/// The other bits of it are the number of the process that is leaving.
const LEAVING: u32 = 2;
/// As such a number: more than one.
const SEVERAL: u32 = u32::MAX / LEAVING;

#[cfg(all(test, loom))]
mod tests {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::sync::UnsafeCell;

    /// An end, and something that its processes keep.
    #[derive(Default)]
    struct End {
        count: AtomicU32,
        shared: AtomicU32,
        kept: UnsafeCell<u32>,
    }

    // SAFETY: who has the end by itself has `kept`; loom checks that.
    unsafe impl Sync for End {}
    // SAFETY: as above.
    unsafe impl Send for End {}

    impl End {
        fn holders(&self) -> Holders<'_> {
            Holders {
                count: &self.count,
                shared: &self.shared,
            }
        }
    }

    /// Here without the streams' other words, which order more than is their duty.
    #[test]
    fn loom_who_is_left_alone_sees_what_the_other_did() {
        loom::model(|| {
            let end = Arc::new(End::default());
            end.holders().join();
            end.holders().share();
            let other = {
                let end = end.clone();
                thread::spawn(move || {
                    // SAFETY: the first does not touch it before this one has left.
                    end.kept.with_mut(|kept| unsafe { *kept = 7 });
                    assert!(!end.holders().leave());
                })
            };
            while !end.holders().is_one() {
                thread::yield_now();
            }
            end.holders().unshare();
            assert!(!end.holders().is_shared());
            // SAFETY: nobody else has the end; loom checks that.
            assert_eq!(end.kept.with(|kept| unsafe { *kept }), 7);
            assert!(end.holders().leave());
            other.join().expect("no panic");
        });
    }
}
