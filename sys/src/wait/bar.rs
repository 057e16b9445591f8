//! For how long waits do without yielding, after a CPU hog has had its time slice.

/// Yielding is barred until then, and for how long it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// Monotonic.
    pub until_ns: u64,
    /// 0 before the first.
    pub len_ns: u64,
}

impl Bar {
    /// Whether one who loses a slice at `now_ns` has lost the last one to the same hog.
    #[must_use]
    pub fn stays(self, now_ns: u64) -> bool {
        now_ns < self.until_ns.saturating_add(self.len_ns)
    }

    /// The next one, after `lost_ns` were lost until `now_ns`: at first about `factor` times as long, and each time that the hog [stays](Self::stays) twice as long as
    /// the last, up to `max_ns`.
    ///
    /// It ends at a multiple of a power of two of the clock that all processes share. Who yields beside others that sleep and are woken loses a slice to them, though none
    /// is a hog, so a crowd that was barred must come back to yielding all at once.
    #[must_use]
    pub fn next(self, now_ns: u64, lost_ns: u64, factor: u64, max_ns: u64) -> Self {
        let first_ns = lost_ns.saturating_mul(factor).min(max_ns);
        let again_ns = if self.stays(now_ns) {
            self.len_ns.saturating_mul(2).min(max_ns)
        } else {
            0
        };
        let len_ns = first_ns.max(again_ns).max(1);
        let until_ns = now_ns.saturating_add(len_ns / 2);
        Self {
            until_ns: until_ns
                .checked_next_multiple_of(1 << len_ns.ilog2())
                .unwrap_or(u64::MAX),
            len_ns,
        }
    }
}

/// For how many times the lost time yielding is barred, at first.
pub const BAR_FACTOR: u64 = 32;

/// The same in a crowd, where a yield is worth twice a sleep, and where each of many loses a slice to whoever comes by.
pub const CROWD_BAR_FACTOR: u64 = 4;

/// Beside a hog that stays a slice of 4 ms is lost once in so long, and by each thread that keeps its CPU in each 131 ms: then it is noticed if the hog has ended.
pub const BAR_MAX_NS: u64 = 1 << 30;

/// The same in a crowd.
pub const CROWD_BAR_MAX_NS: u64 = 1 << 27;

/// In a crowd it takes two lost slices within so long to bar yielding: whoever came by once may be gone.
pub const CROWD_AGAIN_NS: u64 = 20_000_000;

/// In a process of several threads, which share a CPU perhaps and begin perhaps, yields must have lost nothing but slices for so long to bar yielding.
pub const LOSING_NS: u64 = 20_000_000;
