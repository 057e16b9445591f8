//! What a wait asks the time, and how it passes it.

use rustix::thread::sched_yield;
use rustix::time::{ClockId, clock_gettime};

use super::Bar;
use super::pause::pause_in_wait;
use crate::sync::{Ordering, mapped::AtomicU64 as StaticU64};

/// Time, and how to pass it.
pub trait Clock {
    /// Monotonic.
    fn now_ns(&self) -> u64;
    /// Passes some nanoseconds on the CPU.
    fn pause(&self);
    /// Lets another thread have the CPU, if one is waiting for it.
    fn yield_now(&self);
    /// The last that a policy had.
    fn last_bar(&self) -> Bar {
        Bar::default()
    }
    /// A policy has this from now on.
    fn note_bar(&self, bar: Bar) {
        let _ = bar;
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
        pause_in_wait();
    }

    #[inline]
    fn yield_now(&self) {
        sched_yield();
    }

    fn last_bar(&self) -> Bar {
        Bar {
            until_ns: LAST_UNTIL_NS.load(Ordering::Relaxed),
            len_ns: LAST_LEN_NS.load(Ordering::Relaxed),
        }
    }

    fn note_bar(&self, bar: Bar) {
        LAST_UNTIL_NS.store(bar.until_ns, Ordering::Relaxed);
        LAST_LEN_NS.store(bar.len_ns, Ordering::Relaxed);
    }
}

/// [`Clock::last_bar`]. Two threads that store at once may leave a mixture, which is a bar as good as either.
static LAST_UNTIL_NS: StaticU64 = StaticU64::new(0);
static LAST_LEN_NS: StaticU64 = StaticU64::new(0);
