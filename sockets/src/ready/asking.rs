//! How often the kernel is asked what only it knows, by those who have news from memory.

/// Of one set, or of those who poll for the same: each wait asks while the kernel has something to tell, then fewer and fewer, but one
/// in each tick of the coarse clock does, for there may be much to do between two waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// How often in a row there was nothing.
    vain: u32,
    /// After how many waits the kernel is asked again, and how many are left.
    gap: u32,
    left: u32,
    /// When it was asked, by [`coarse_ms`](sys::time::coarse_ms).
    at_ms: u32,
}

impl Asking {
    pub(crate) const NEW: Self = Self {
        vain: 0,
        gap: 1,
        left: 1,
        at_ms: 0,
    };

    /// Whether this wait is to ask. `now_ms` is when it is, if the tick counts.
    #[inline]
    pub(crate) fn is_due(&mut self, now_ms: impl FnOnce() -> Option<u32>) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 || now_ms().is_some_and(|now_ms| now_ms != self.at_ms)
    }

    /// After how many looks at memory one that polls for either asks: seldom if it is memory that has all, for a question takes as long as
    /// many looks, and the wait ends soon, or in a sleep on both.
    #[inline]
    pub(crate) fn looks(&self) -> u32 {
        if self.vain > VAIN { 4 * EACH } else { EACH }
    }

    /// It has been asked, at `now_ms`.
    #[inline]
    pub(crate) fn had(&mut self, news: bool, now_ms: u32) {
        if news {
            *self = Self::NEW;
        } else {
            self.vain = self.vain.saturating_add(1);
            if self.vain > VAIN {
                self.gap = (self.gap * 2).clamp(1, EACH);
            }
        }
        self.left = self.gap;
        self.at_ms = now_ms;
    }
}

impl Default for Asking {
    fn default() -> Self {
        Self::NEW
    }
}

/// While memory has news the kernel is asked so seldom.
pub(super) const EACH: u32 = 16;

/// After so many questions in vain memory is taken to be all there is.
const VAIN: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many waits ask in vain.
    fn asks(asking: &mut Asking, waits: u32, now_ms: Option<u32>) -> u32 {
        let mut asks = 0;
        for _ in 0..waits {
            if asking.is_due(|| now_ms) {
                asks += 1;
                asking.had(false, now_ms.unwrap_or_default());
            }
        }
        asks
    }

    #[test]
    fn who_hears_nothing_asks_less_and_less() {
        let mut asking = Asking::NEW;
        assert_eq!(asks(&mut asking, VAIN, None), VAIN);
        assert!(asks(&mut asking, 200, None) < 30);
        assert_eq!(asks(&mut asking, 10 * EACH, None), 10);
        asking.had(true, 0);
        assert_eq!(asks(&mut asking, 4, None), 4);
    }

    #[test]
    fn one_wait_of_each_tick_asks() {
        let mut asking = Asking::NEW;
        asks(&mut asking, 200, Some(1));
        assert_eq!(asks(&mut asking, EACH, Some(1)), 1);
        for tick in 2..50 {
            assert_eq!(asks(&mut asking, 3, Some(tick)), 1);
        }
    }
}
