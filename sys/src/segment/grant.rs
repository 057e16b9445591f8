use crate::sync::{Ordering, Word, fence, mapped};

/// Leave to use something of the granting side's (memory that the user has mapped), which can be taken back.
///
/// The user says that it is busy and then asks whether the grant is valid; the granter makes it invalid and then asks whether
/// the user is busy. Between the two steps of each is a full fence, so at least one of them sees the other.
/// A user that is hostile or dead can stay busy for ever: the granter waits with a limit, then unshares the memory.
#[derive(Debug)]
pub struct Grant<'a, W: Word = mapped::AtomicU32> {
    valid: &'a W,
    busy: &'a W,
}

impl<'a, W: Word> Grant<'a, W> {
    pub(super) fn new(valid: &'a W, busy: &'a W) -> Self {
        Self { valid, busy }
    }

    /// Granter: offers the grant, under a value (not 0) that tells the user which one it is.
    pub fn offer(&self, value: u32) {
        // Release pairs with the acquire in `enter`: the user sees what the grant is for.
        self.valid.store(value, Ordering::Release);
    }

    /// Granter: takes the grant back. It is over once this has returned and [`Grant::is_busy`] has been false.
    pub fn revoke(&self) {
        self.valid.store(0, Ordering::Relaxed);
        // Pairs with the fence in `enter`.
        fence(Ordering::SeqCst);
    }

    /// Granter: whether the user says that it is at it.
    pub fn is_busy(&self) -> bool {
        // Acquire pairs with the release in `leave`: what the user did is done.
        self.busy.load(Ordering::Acquire) != 0
    }

    /// User: begins, if the grant is valid, and returns its value. One at a time may do so.
    #[must_use = "a user that has entered must leave"]
    pub fn enter(&self) -> Option<u32> {
        self.busy.store(1, Ordering::Relaxed);
        // Pairs with the fence in `revoke`.
        fence(Ordering::SeqCst);
        let value = self.valid.load(Ordering::Acquire);
        if value == 0 {
            self.leave();
            return None;
        }
        Some(value)
    }

    /// User: has done what it entered for.
    pub fn leave(&self) {
        self.busy.store(0, Ordering::Release);
    }

    /// The value offered, 0 if none: a hint, which only [`Grant::enter`] turns into leave.
    pub fn value(&self) -> u32 {
        self.valid.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicU32;

    #[test]
    fn only_an_offered_grant_can_be_entered() {
        let (valid, busy) = (AtomicU32::new(0), AtomicU32::new(0));
        let grant = Grant::new(&valid, &busy);
        assert_eq!(grant.enter(), None);
        assert!(!grant.is_busy());

        grant.offer(7);
        assert_eq!(grant.enter(), Some(7));
        grant.revoke();
        assert!(grant.is_busy());
        grant.leave();
        assert!(!grant.is_busy());
        assert_eq!(grant.enter(), None);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::sync::{AtomicU32, UnsafeCell};

    struct Granted {
        valid: AtomicU32,
        busy: AtomicU32,
        memory: UnsafeCell<u32>,
    }

    // SAFETY: `memory` is written by the user between `enter` and `leave` and read by the granter once revoked; loom checks that.
    unsafe impl Sync for Granted {}
    // SAFETY: as above.
    unsafe impl Send for Granted {}

    #[test]
    fn loom_a_revoked_grant_is_not_used() {
        loom::model(|| {
            let granted = Arc::new(Granted {
                valid: AtomicU32::new(1),
                busy: AtomicU32::new(0),
                memory: UnsafeCell::new(0),
            });
            let user = {
                let granted = granted.clone();
                thread::spawn(move || {
                    let grant = Grant::new(&granted.valid, &granted.busy);
                    if grant.enter().is_some() {
                        // SAFETY: the grant is valid.
                        granted.memory.with_mut(|byte| unsafe { *byte = 1 });
                        grant.leave();
                    }
                })
            };
            let grant = Grant::new(&granted.valid, &granted.busy);
            grant.revoke();
            while grant.is_busy() {
                thread::yield_now();
            }
            // SAFETY: the grant is over.
            granted.memory.with(|byte| unsafe { *byte });
            user.join().expect("no panic");
        });
    }

    #[test]
    fn loom_what_was_there_before_an_offer_is_there_with_it() {
        loom::model(|| {
            let granted = Arc::new(Granted {
                valid: AtomicU32::new(0),
                busy: AtomicU32::new(0),
                memory: UnsafeCell::new(0),
            });
            let user = {
                let granted = granted.clone();
                thread::spawn(move || {
                    let grant = Grant::new(&granted.valid, &granted.busy);
                    if grant.enter() == Some(7) {
                        // SAFETY: the grant is valid; loom checks that the granter has written.
                        assert_eq!(granted.memory.with(|byte| unsafe { *byte }), 1);
                        grant.leave();
                    }
                })
            };
            // SAFETY: nothing is granted yet.
            granted.memory.with_mut(|byte| unsafe { *byte = 1 });
            Grant::new(&granted.valid, &granted.busy).offer(7);
            user.join().expect("no panic");
        });
    }
}
