//! For how long a wait does without polling, after a CPU hog has had its time slice.

/// Spinning is barred until then, and for how long it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// Monotonic.
    pub until_ns: u64,
    /// 0 before the first.
    pub len_ns: u64,
}

impl Bar {
    /// The next one, after `lost_ns` were lost until `now_ns`: at first `factor` times as long. Who loses again soon after the last one has a hog that stays.
    #[must_use]
    pub fn next(self, now_ns: u64, lost_ns: u64, factor: u64) -> Self {
        let first_ns = lost_ns.saturating_mul(factor);
        let stays = now_ns < self.until_ns.saturating_add(self.len_ns);
        let again_ns = if stays {
            self.len_ns.saturating_mul(2).min(BAR_MAX_NS)
        } else {
            0
        };
        let len_ns = first_ns.max(again_ns);
        Self {
            until_ns: now_ns.saturating_add(len_ns),
            len_ns,
        }
    }
}

/// For how many times the lost time spinning is barred, at first.
pub const BAR_FACTOR: u64 = 32;

/// The same in a crowd, where a yield is worth twice a sleep, and where each of many loses a slice to whoever comes by. Four and eight pairs beside a program that
/// computes now and then make 2.5 and 1.8 times what TCP does; with [`BAR_FACTOR`] 2.2 and 1.5.
pub const CROWD_BAR_FACTOR: u64 = 4;

/// Beside a hog that stays a slice of 4 ms is lost once in so long. A hog that ends is noticed as late.
pub const BAR_MAX_NS: u64 = 1_000_000_000;
