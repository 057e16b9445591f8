//! For how long waits poll.

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

/// [`Limits::far_ns`] of memory: ten wake-ups.
const FAR_NS: u32 = 200_000;
