//! Whether the first waits of connections find their answers by polling.
//!
//! A connection of one request has one wait, of which its own policy learns nothing for the next connection. A server that answers such, and whose peers
//! sleep meanwhile, would poll for the end of each for longer than natively it sleeps.

use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use super::{Conn, Way};

impl Conn {
    /// Whether a wait on TCP that begins is one of the first: no more than one call has received.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        self.counts(Way::In).1 <= 1
    }
}

/// Whether a first wait is to poll: all do but where many in a row did so in vain; there one of some.
pub(crate) fn pays() -> bool {
    let vain = VAIN.load(Ordering::Relaxed);
    if vain < MANY {
        return true;
    }
    // A count that two threads lose is worth less than a locked instruction.
    VAIN.store(MANY + (vain + 1) % SELDOM, Ordering::Relaxed);
    vain == MANY
}

/// A first wait polled, and met its answer or not.
pub(crate) fn note(met: bool) {
    let vain = VAIN.load(Ordering::Relaxed);
    if met && vain != 0 {
        VAIN.store(0, Ordering::Relaxed);
    } else if !met && vain < MANY {
        VAIN.store(vain + 1, Ordering::Relaxed);
    }
}

/// First waits of this process that polled in vain, in a row; from [`MANY`] on, those that did not poll since one did.
static VAIN: AtomicU32 = AtomicU32::new(0);

const MANY: u32 = 16;
const SELDOM: u32 = 16;
// Then `MANY + n % SELDOM` counts from `MANY`.
const _: () = assert!(MANY.is_multiple_of(SELDOM));

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, for the count is the process's.
    #[test]
    fn first_waits_poll_seldom_where_that_is_in_vain() {
        note(true);
        for _ in 0..MANY {
            assert!(pays());
            note(false);
        }
        let polled = (0..10 * SELDOM).filter(|_| {
            let polls = pays();
            if polls {
                note(false);
            }
            polls
        });
        assert_eq!(polled.count(), 10);
        while !pays() {}
        note(true);
        assert!((0..100).all(|_| pays()), "one was met");
    }
}
