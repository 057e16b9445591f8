//! How often the kernel is asked what only it knows, by those who have news from memory.

/// Of one set, or of those who poll for the same: each wait asks while the kernel has something to tell, then fewer and fewer, but one
/// in each tick of the coarse clock does, for there may be much to do between two waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// In how many waits in a row there was nothing.
    vain: u32,
    /// This wait has been counted there.
    is_counted: bool,
    /// After how many waits the kernel is asked again, and how many are left.
    gap: u32,
    left: u32,
    /// After how many looks at memory it is asked while one polls for either.
    looks: u32,
    /// When it was asked, by [`coarse_ms`](sys::time::coarse_ms).
    at_ms: u32,
}

impl Asking {
    pub(crate) const NEW: Self = Self {
        vain: 0,
        is_counted: false,
        gap: 1,
        left: 1,
        looks: LOOKS_EACH,
        at_ms: 0,
    };

    /// A wait begins: whether it is to ask at once. `now_ms` is when it is, if the tick counts.
    #[inline]
    pub(crate) fn is_due(&mut self, now_ms: impl FnOnce() -> Option<u32>) -> bool {
        self.is_counted = false;
        self.left = self.left.saturating_sub(1);
        self.left == 0 || now_ms().is_some_and(|now_ms| now_ms != self.at_ms)
    }

    /// After how many looks at memory one that polls for either asks: seldom if it is memory that has all, for a question takes as long as
    /// many looks, and the wait ends soon, or in a sleep on both.
    #[inline]
    pub(crate) fn looks(&self) -> u32 {
        self.looks
    }

    /// Whether it had something not long ago.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.vain <= VAIN
    }

    /// It has been asked, at `now_ms`, and had something: for the program, if that is `news`, or but the doorbell of a connection.
    #[inline]
    pub(crate) fn had(&mut self, news: bool, bell: bool, now_ms: u32) {
        if news {
            *self = Self::NEW;
        } else {
            self.vain = self.vain.saturating_add(u32::from(!self.is_counted));
            if self.vain > VAIN && !self.is_counted {
                self.gap = (self.gap * 2).clamp(1, WAITS_EACH);
                self.looks = LOOKS_EACH_IN_VAIN;
            }
            if bell {
                self.looks = LOOKS_EACH;
            }
            self.is_counted = true;
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

/// While memory has news the kernel is asked in one of so many waits.
const WAITS_EACH: u32 = 16;
/// While it has none, at one of so many looks, and of so many where it had nothing for long.
const LOOKS_EACH: u32 = 16;
const LOOKS_EACH_IN_VAIN: u32 = 64;
/// After so many waits in vain memory is taken to be all there is.
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
                asking.had(false, false, now_ms.unwrap_or_default());
            }
        }
        asks
    }

    #[test]
    fn who_hears_nothing_asks_less_and_less() {
        let mut asking = Asking::NEW;
        assert_eq!(asks(&mut asking, VAIN, None), VAIN);
        assert!(asking.is_busy());
        assert!(asks(&mut asking, 200, None) < 30);
        assert!(!asking.is_busy());
        assert_eq!(asks(&mut asking, 10 * WAITS_EACH, None), 10);
        asking.had(true, false, 0);
        assert_eq!(asks(&mut asking, 4, None), 4);
    }

    #[test]
    fn one_wait_of_each_tick_asks() {
        let mut asking = Asking::NEW;
        asks(&mut asking, 200, Some(1));
        assert_eq!(asks(&mut asking, WAITS_EACH, Some(1)), 1);
        for tick in 2..50 {
            assert_eq!(asks(&mut asking, 3, Some(tick)), 1);
        }
    }

    #[test]
    fn a_long_wait_is_one_in_vain() {
        let mut asking = Asking::NEW;
        assert!(asking.is_due(|| None));
        for _ in 0..100 * VAIN {
            asking.had(false, false, 0);
        }
        assert_eq!(asking.looks(), LOOKS_EACH);
        assert_eq!(asks(&mut asking, VAIN - 1, None), VAIN - 1);
        asks(&mut asking, WAITS_EACH, None);
        assert_eq!(asking.looks(), LOOKS_EACH_IN_VAIN);
        // A connection rings that memory does not show: it is no news of others, but memory has not all.
        asking.had(false, true, 0);
        assert_eq!(asking.looks(), LOOKS_EACH);
        assert!(!asking.is_due(|| None));
    }
}
