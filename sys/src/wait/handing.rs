//! Yielding without a look at the clock.
//!
//! Where both sides share a CPU, and others want it too, an answer that is not there comes by a yield, and by nothing else: to ask the time before and after it,
//! each time, is in vain. After a wait that has found its answer so, a few take that as known.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// What the waits of one policy have met, where they pause in vain.
#[derive(Debug)]
pub(super) struct Handing {
    /// How many of the next waits yield first.
    credit: AtomicU32,
    answered_ns: AtomicU64,
    careful_until_ns: AtomicU64,
}

impl Handing {
    pub(super) fn new() -> Self {
        Self {
            credit: AtomicU32::new(0),
            answered_ns: AtomicU64::new(0),
            careful_until_ns: AtomicU64::new(0),
        }
    }

    /// Whether a wait that begins is to yield first.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let credit = self.credit.load(Ordering::Relaxed);
        if credit != 0 {
            self.credit.store(credit - 1, Ordering::Relaxed);
        }
        credit != 0
    }

    /// All is to be asked again.
    pub(super) fn end(&self) {
        self.credit.store(0, Ordering::Relaxed);
    }

    /// A yield, which was over at `now_ns`, has brought what one waited for.
    pub(super) fn note_answer(&self, now_ns: u64) {
        let before_ns = self.answered_ns.load(Ordering::Relaxed);
        self.answered_ns.store(now_ns, Ordering::Relaxed);
        if now_ns.saturating_sub(before_ns) > QUICK_NS {
            // A hog may have had a slice, of which waits that look at no clock know nothing.
            let until_ns = now_ns + CAREFUL_NS;
            self.careful_until_ns.store(until_ns, Ordering::Relaxed);
        } else if now_ns > self.careful_until_ns.load(Ordering::Relaxed) {
            self.credit.store(CREDIT, Ordering::Relaxed);
        }
    }
}

/// Four pairs, the sides of each on one CPU, have 0.99 million round trips a second with 0, 1.07 with 3 and 7, 1.13 with 15 (medians of
/// eight runs); but eight pairs, some on one CPU and some on two, have 3.45, 3.54 and 3.15 times as many as over TCP with 3, 7 and 15 (six to eight runs).
const CREDIT: u32 = 7;

/// [`CREDIT`] waits and one take a tenth of this among eight pairs on two CPUs.
const QUICK_NS: u64 = super::LOST_NS / 2;

/// Long enough to notice [two lost slices](super::CROWD_AGAIN_NS).
const CAREFUL_NS: u64 = super::CROWD_AGAIN_NS * 3 / 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn due(handing: &Handing) -> u32 {
        (0..100).map(|_| u32::from(handing.is_due())).sum()
    }

    #[test]
    fn a_few_waits_yield_first_where_answers_come_quickly() {
        let handing = Handing::new();
        let mut now_ns = 1_000_000_000;
        handing.note_answer(now_ns);
        assert_eq!(due(&handing), 0, "the first");
        while due(&handing) == 0 {
            assert!(now_ns <= 1_000_000_000 + CAREFUL_NS);
            now_ns += QUICK_NS;
            handing.note_answer(now_ns);
        }
        now_ns += QUICK_NS;
        handing.note_answer(now_ns);
        assert_eq!(due(&handing), CREDIT);
    }

    #[test]
    fn none_does_for_some_time_after_a_slice_was_lost() {
        let handing = Handing::new();
        let mut now_ns = 1_000_000_000;
        for i in 0..200 {
            let lost = i == 100;
            now_ns += if lost {
                super::super::LOST_NS
            } else {
                QUICK_NS
            };
            handing.note_answer(now_ns);
            let careful = i < 31 || (100..131).contains(&i);
            assert_eq!(due(&handing), if careful { 0 } else { CREDIT }, "{i}");
        }
    }
}
