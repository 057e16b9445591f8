//! More threads than CPUs.
//!
//! Where a yield let somebody else run, the others may be what one waits for, and each wait yields from the start: a yield that somebody else uses costs
//! nobody anything. But two sides that happen to run on two CPUs at the same moment are a hundred times closer to each other than a turn of all
//! threads, if only both stay. Neither can know that of the other. So for a little more than half of the time, all at the same time, waits pause for a moment first: two sides that
//! meet so are *in step*, and stay on their CPUs until that time is over. In the rest all take turns, also those whose other side is on their own CPU.

use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// What the waits of one policy have met.
#[derive(Debug)]
pub(super) struct Crowd {
    is_here: AtomicBool,
    /// How often in a row it paused in vain.
    vain: AtomicU32,
    /// How long trials are, by what the last sleep took; 0 if there are none.
    trial_ns: AtomicU32,
}

impl Crowd {
    pub(super) fn new() -> Self {
        Self {
            is_here: AtomicBool::new(false),
            vain: AtomicU32::new(0),
            trial_ns: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(super) fn is_here(&self) -> bool {
        self.is_here.load(Ordering::Relaxed)
    }

    /// Whether a wait that begins at `now_ns` pauses first.
    pub(super) fn pauses(&self, now_ns: u64) -> bool {
        // Who shares a CPU with the other side pauses in vain whenever it does.
        let seldom = self.vain.load(Ordering::Relaxed) == VAIN_MAX;
        let every_ns = if seldom { SELDOM * TURNS_NS } else { TURNS_NS };
        now_ns % every_ns < STEPS_NS
    }

    /// The other side has answered while this one paused.
    #[inline]
    pub(super) fn keep_step(&self) {
        let vain = self.vain.load(Ordering::Relaxed);
        if vain != 0 {
            // Once alone it may be that the kernel gave the CPU to the other side in the middle of a pause.
            self.vain.store(vain.saturating_sub(MET), Ordering::Relaxed);
        }
    }

    /// It has not.
    pub(super) fn lose_step(&self) {
        let vain = self.vain.load(Ordering::Relaxed);
        if vain < VAIN_MAX {
            self.vain.store(vain + 1, Ordering::Relaxed);
        }
    }

    /// Whether there is a crowd, in which nobody answers while one pauses.
    #[inline]
    pub(super) fn shares_its_cpu(&self) -> bool {
        self.is_here() && self.vain.load(Ordering::Relaxed) == VAIN_MAX
    }

    /// For how long a wait that begins at `now_ns`, and would sleep at once, yields instead, as all do at that time.
    pub(super) fn tries_together_for(&self, now_ns: u64) -> Option<u32> {
        let trial_ns = self.trial_ns.load(Ordering::Relaxed);
        let phase_ns = now_ns % (u64::from(trial_ns) * TRIAL_SHARE).max(1);
        let left_ns = u64::from(trial_ns).saturating_sub(phase_ns);
        let is_time = left_ns > 0 && self.is_here();
        u32::try_from(left_ns).ok().filter(|_| is_time)
    }

    /// A wait that slept was over after `waited_ns`.
    pub(super) fn note_sleep(&self, waited_ns: u64) {
        let trial_ns = TRIALS_NS
            .into_iter()
            .find(|&ns| waited_ns < u64::from(ns / 2));
        self.trial_ns
            .store(trial_ns.unwrap_or(0), Ordering::Relaxed);
    }

    /// It is for something else from now on.
    pub(super) fn forget(&self) {
        self.is_here.store(false, Ordering::Relaxed);
        self.vain.store(0, Ordering::Relaxed);
        self.trial_ns.store(0, Ordering::Relaxed);
    }

    /// A yield let somebody else run, or nobody.
    #[inline]
    pub(super) fn note_yield(&self, used: bool) {
        // Loading first keeps the line shared.
        if self.is_here() != used {
            self.is_here.store(used, Ordering::Relaxed);
        }
    }
}

/// How much longer a wait in a crowd may yield: for a turn of fifty threads, some of which must be woken. With 5 fifty threads at each end did 0.15 to 0.24 million round trips
/// a second where they fell out of step, and do 0.46.
pub const CROWD_FACTOR: u32 = 20;

/// A yield that took so long, and not [`LOST_NS`](super::LOST_NS), let another thread have the CPU.
pub const USED_NS: u64 = 900;

/// For how long one who may be in step pauses: a few times what an answer takes.
pub const STEP_NS: u32 = 1_500;

/// Waits pause first in the first [`STEPS_NS`] of each so many nanoseconds, by the clock that all processes share.
pub const TURNS_NS: u64 = 512_000;

/// See [`TURNS_NS`]. Others wait so long for their turn, and must not take that for a [lost](super::LOST_NS) slice.
pub const STEPS_NS: u64 = 288_000;

/// How long trials are: a few times as long as the sleeps that they are to replace.
const TRIALS_NS: [u32; 3] = [1_024_000, 4_096_000, 16_384_000];
/// One in so much time.
const TRIAL_SHARE: u64 = 32;

/// After so many pauses in vain there is another only in each [`SELDOM`]th of these times.
const VAIN_MAX: u32 = 64;
const SELDOM: u64 = 8;
/// How many pauses in vain one makes up for that was not.
const MET: u32 = 8;
