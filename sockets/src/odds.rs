//! Whether waits of one kind find their answers by polling.
//!
//! A connection of one request has one wait, of which its own policy learns nothing for the next connection. A server that answers such, and whose peers
//! sleep meanwhile, would poll in each for longer than natively it sleeps.

use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

/// What was learned of waits that are each of another object.
#[derive(Debug)]
pub(crate) struct Odds {
    /// Waits that polled in vain, in a row; from [`MANY`] on, those that did not poll since one did.
    vain: AtomicU32,
}

impl Odds {
    /// Of nothing yet: all poll.
    pub(crate) const fn good() -> Self {
        Self {
            vain: AtomicU32::new(0),
        }
    }

    /// Of nothing yet: one of some polls, but not the first.
    pub(crate) const fn poor() -> Self {
        Self {
            vain: AtomicU32::new(MANY + 1),
        }
    }

    /// Whether the next wait is to poll: all do but where many in a row did so in vain; there one of some.
    pub(crate) fn pays(&self) -> bool {
        let vain = self.vain.load(Ordering::Relaxed);
        if vain < MANY {
            return true;
        }
        // A count that two threads lose is worth less than a locked instruction.
        self.vain
            .store(MANY + (vain + 1) % SELDOM, Ordering::Relaxed);
        vain == MANY
    }

    /// A wait polled, and met its answer or not.
    pub(crate) fn note(&self, met: bool) {
        let vain = self.vain.load(Ordering::Relaxed);
        if met && vain != 0 {
            self.vain.store(0, Ordering::Relaxed);
        } else if !met && vain < MANY {
            self.vain.store(vain + 1, Ordering::Relaxed);
        }
    }
}

const MANY: u32 = 16;
const SELDOM: u32 = 16;
// Then `MANY + n % SELDOM` counts from `MANY`.
const _: () = assert!(MANY.is_multiple_of(SELDOM));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_poll_seldom_where_that_is_in_vain() {
        let odds = Odds::good();
        for _ in 0..MANY {
            assert!(odds.pays());
            odds.note(false);
        }
        let polled = (0..10 * SELDOM).filter(|_| {
            let polls = odds.pays();
            if polls {
                odds.note(false);
            }
            polls
        });
        assert_eq!(polled.count(), 10);
        while !odds.pays() {}
        odds.note(true);
        assert!((0..100).all(|_| odds.pays()), "one was met");
    }

    #[test]
    fn where_they_are_poor_at_first_one_that_is_met_makes_them_good() {
        let odds = Odds::poor();
        assert!((1..SELDOM).all(|_| !odds.pays()));
        assert!(odds.pays());
        odds.note(true);
        assert!((0..100).all(|_| odds.pays()));
    }
}
