//! For how long waits poll.

use crate::sync::{AtomicU32, Ordering};

/// How long a wait may poll, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Polling with `pause`, at first. 0 yields from the first poll on.
    pub pause_ns: u32,
    /// Polling with `sched_yield`, counted from the start of the wait, as `pause_ns` is.
    pub yield_ns: u32,
    /// What both may grow to while sleeps end soon; less than either for what must not grow.
    pub far_ns: u32,
}

impl Limits {
    /// For what another CPU writes to memory.
    pub const MEMORY: Self = Self {
        pause_ns: 500,
        yield_ns: 20_000,
        far_ns: FAR_NS,
    };

    /// The same, where a poll is a look at several lines: one that is served in turn with others has its answer in microseconds, and a
    /// yield between two looks made redis with one client a third slower.
    pub const SET: Self = Self {
        pause_ns: 6_000,
        yield_ns: 20_000,
        far_ns: FAR_NS,
    };

    /// Sleeps at once.
    pub const NONE: Self = Self {
        pause_ns: 0,
        yield_ns: 0,
        far_ns: 0,
    };

    /// For what comes through the kernel, where each poll is a system call: pausing first made ping-pong on one CPU 1.8 times slower.
    pub const SOCKET: Self = Self {
        pause_ns: 0,
        yield_ns: 20_000,
        far_ns: 0,
    };

    /// The same, polling for `longest_ns` at most; 0 sleeps at once. What never yields does not begin to.
    #[must_use]
    pub fn at_most(self, longest_ns: u32) -> Self {
        Self {
            pause_ns: self.pause_ns.min(longest_ns),
            yield_ns: if self.yield_ns == 0 { 0 } else { longest_ns },
            far_ns: self.far_ns.min(longest_ns),
        }
    }

    pub(super) fn longest_ns(self) -> u32 {
        self.pause_ns.max(self.yield_ns)
    }
}

/// Limits that change while others wait by them: who reads them meanwhile may find some of each.
#[derive(Debug)]
pub(super) struct Shared {
    pause_ns: AtomicU32,
    yield_ns: AtomicU32,
    far_ns: AtomicU32,
}

impl Shared {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            pause_ns: AtomicU32::new(limits.pause_ns),
            yield_ns: AtomicU32::new(limits.yield_ns),
            far_ns: AtomicU32::new(limits.far_ns),
        }
    }

    pub(super) fn set(&self, limits: Limits) {
        self.pause_ns.store(limits.pause_ns, Ordering::Relaxed);
        self.yield_ns.store(limits.yield_ns, Ordering::Relaxed);
        self.far_ns.store(limits.far_ns, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Limits {
        Limits {
            pause_ns: self.pause_ns(),
            yield_ns: self.yield_ns.load(Ordering::Relaxed),
            far_ns: self.far_ns(),
        }
    }

    #[inline]
    pub(super) fn pause_ns(&self) -> u32 {
        self.pause_ns.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn far_ns(&self) -> u32 {
        self.far_ns.load(Ordering::Relaxed)
    }

    /// Whether waits pause first, and may yield then.
    #[inline]
    pub(super) fn yields_after_pauses(&self) -> bool {
        self.pause_ns() != 0 && self.yield_ns.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(super) fn longest_ns(&self) -> u32 {
        self.pause_ns().max(self.yield_ns.load(Ordering::Relaxed))
    }
}

/// [`Limits::far_ns`] of memory: ten wake-ups.
const FAR_NS: u32 = 200_000;
