//! What a wait asks the time, and how it passes it.

use rustix::thread::sched_yield;
use rustix::time::{ClockId, clock_gettime};

use super::pause;
use crate::sync::{Ordering, mapped::AtomicU64 as StaticU64};

/// Time, and how to pass it.
pub trait Clock {
    /// Monotonic.
    fn now_ns(&self) -> u64;
    /// Passes some nanoseconds on the CPU.
    fn pause(&self);
    /// Lets another thread have the CPU, if one is waiting for it.
    fn yield_now(&self);
    /// Until when the last policy that met a hog is barred.
    fn barred_until_ns(&self) -> u64 {
        0
    }
    /// A policy is barred until then.
    fn bar_until_ns(&self, until_ns: u64) {
        let _ = until_ns;
    }
}

/// The real clock.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }

    #[inline]
    fn pause(&self) {
        pause();
    }

    #[inline]
    fn yield_now(&self) {
        sched_yield();
    }

    fn barred_until_ns(&self) -> u64 {
        LAST_BAR_NS.load(Ordering::Relaxed)
    }

    fn bar_until_ns(&self, until_ns: u64) {
        LAST_BAR_NS.store(until_ns, Ordering::Relaxed);
    }
}

/// [`Clock::barred_until_ns`].
static LAST_BAR_NS: StaticU64 = StaticU64::new(0);
