//! More threads than CPUs.
//!
//! Where a yield let somebody else run, the others may be what one waits for, and each wait yields from the start: a yield that somebody else uses costs
//! nobody anything. But two sides that happen to run on two CPUs at the same moment are a hundred times closer to each other than a turn of all
//! threads, if only both stay. Neither can know that of the other. So now and then, all at the same time, waits pause for a moment first; a side
//! whose answer comes in that time is *in step* and goes on so, until an answer does not come. It lets others have the CPU after each
//! [`STEP_MAX_NS`], or it would be a hog to them.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// What the waits of one policy have met.
#[derive(Debug)]
pub(super) struct Crowd {
    state: AtomicU32,
    /// Since when it has been in step without letting others have the CPU.
    since_ns: AtomicU64,
    /// How often in a row it paused in vain.
    vain: AtomicU32,
}

/// How a wait in a crowd begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// By pausing.
    Pause,
    /// By pausing, but first it is the others' turn.
    StepAside,
    /// By yielding.
    Yield,
}

impl Crowd {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(ALONE),
            since_ns: AtomicU64::new(0),
            vain: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(super) fn is_here(&self) -> bool {
        self.state.load(Ordering::Relaxed) != ALONE
    }

    /// How a wait that begins at `now_ns` does so.
    pub(super) fn begin(&self, now_ns: u64) -> Begin {
        if self.state.load(Ordering::Relaxed) == IN_STEP {
            let since_ns = self.since_ns.load(Ordering::Relaxed);
            if now_ns.saturating_sub(since_ns) < STEP_MAX_NS {
                return Begin::Pause;
            }
            self.since_ns.store(now_ns, Ordering::Relaxed);
            Begin::StepAside
        } else if now_ns % self.look_every_ns() < LOOK_NS {
            Begin::Pause
        } else {
            Begin::Yield
        }
    }

    /// Who shares a CPU with the other side pauses in vain whenever it does.
    fn look_every_ns(&self) -> u64 {
        if self.vain.load(Ordering::Relaxed) < VAIN_MAX {
            LOOK_EVERY_NS
        } else {
            SELDOM * LOOK_EVERY_NS
        }
    }

    /// The other side has answered while this one paused, in a wait that began at `started_ns`.
    #[inline]
    pub(super) fn keep_step(&self, started_ns: u64) {
        if self.state.load(Ordering::Relaxed) != IN_STEP {
            self.since_ns.store(started_ns, Ordering::Relaxed);
            self.vain.store(0, Ordering::Relaxed);
            self.state.store(IN_STEP, Ordering::Relaxed);
        }
    }

    /// It has not.
    pub(super) fn lose_step(&self) {
        let vain = self.vain.load(Ordering::Relaxed);
        if vain < VAIN_MAX {
            self.vain.store(vain + 1, Ordering::Relaxed);
        }
    }

    /// A yield let somebody else run, or nobody.
    #[inline]
    pub(super) fn note_yield(&self, used: bool) {
        let state = if used { APART } else { ALONE };
        // Loading first keeps the line shared.
        if self.state.load(Ordering::Relaxed) != state {
            self.state.store(state, Ordering::Relaxed);
        }
    }
}

const ALONE: u32 = 0;
const APART: u32 = 1;
const IN_STEP: u32 = 2;

/// How much longer a wait in a crowd may yield.
pub const CROWD_FACTOR: u32 = 5;

/// A yield that took so long, and not [`LOST_NS`](super::LOST_NS), let another thread have the CPU.
pub const USED_NS: u64 = 900;

/// For how long one who may be in step pauses: a few times what an answer takes.
pub const STEP_NS: u32 = 1_500;

/// How long one may be in step before others get the CPU: where a few do so in turn, none of them must take that for a [lost](super::LOST_NS) slice.
pub const STEP_MAX_NS: u64 = 100_000;

/// When all pause to find out, by the clock that all processes share: for the first [`LOOK_NS`] of each so many nanoseconds.
pub const LOOK_EVERY_NS: u64 = 256_000;

/// See [`LOOK_EVERY_NS`].
pub const LOOK_NS: u64 = 32_000;

/// After so many pauses in vain there is another only in each [`SELDOM`]th of these times.
const VAIN_MAX: u32 = 64;
const SELDOM: u64 = 8;
