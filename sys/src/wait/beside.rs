//! Beside a CPU hog.
//!
//! Who yields there forfeits his time slice, so a barred wait does not. But who only sleeps takes as long as the kernel takes to wake the other side and then
//! him, though both have half of a CPU each, and now and then at the same time: then they could answer each other in half a microsecond until one of them
//! has used up his slice. All they need is that one still looks when the other, whom he has woken, answers. So some barred waits pause for [`MEET_NS`]; as
//! long as that goes well all do.

use crate::sync::{AtomicU32, Ordering};

/// What the barred waits of one policy have got for pausing.
#[derive(Debug)]
pub(super) struct Beside {
    /// Waits to come that sleep at once.
    left: AtomicU32,
    /// How many there were the last time.
    last: AtomicU32,
    /// How many answers in a row came while it paused.
    met: AtomicU32,
}

impl Beside {
    pub(super) fn new() -> Self {
        Self {
            left: AtomicU32::new(0),
            last: AtomicU32::new(0),
            met: AtomicU32::new(0),
        }
    }

    /// Whether a wait that begins is to pause.
    pub(super) fn tries(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }

    /// The answer came while it paused.
    #[inline]
    pub(super) fn meet(&self) {
        let met = self.met.load(Ordering::Relaxed);
        if met < WORTH {
            self.met.store(met + 1, Ordering::Relaxed);
        }
    }

    /// It did not. Where the other side runs on this very CPU it never does.
    pub(super) fn miss(&self) {
        let met = self.met.swap(0, Ordering::Relaxed);
        let next = if met < WORTH {
            (2 * self.last.load(Ordering::Relaxed)).clamp(1, SELDOM)
        } else {
            0
        };
        self.last.store(next, Ordering::Relaxed);
        self.left.store(next, Ordering::Relaxed);
    }
}

/// For how long a barred wait pauses: two wake-ups. Beside a hog on each CPU 64 B there and back take 1.4 µs with 25 and 50 µs, 2 to 3 with 100.
pub const MEET_NS: u32 = 40_000;

/// After so many answers in a row the next pause is worth what it costs if it is in vain.
pub(super) const WORTH: u32 = 32;

/// Of waits that pause in vain at least one in so many does: that costs 0.2 µs each, where a message that somebody must be woken for takes tens.
pub(super) const SELDOM: u32 = 256;
