//! Calls that give the program's buffer to the kernel.

use sys::sync::{AtomicU32, Ordering};

use super::{Conn, Way};

/// How many are under way, of the connection that has the place now.
#[derive(Debug)]
pub(super) struct UnderWay(AtomicU32);

impl UnderWay {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline]
    pub(super) fn enter(&self) -> Native<'_> {
        // Sequentially consistent with `set_mapped`: either we see the rings, or who uses them sees us.
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        Native {
            count: self,
            epoch: before / EPOCH,
        }
    }

    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_multiple_of(EPOCH)
    }

    /// There are none any more, and whoever thinks that his is one is not to be counted off: the connection may have been closed while he was in the kernel.
    pub(super) fn forget(&self) {
        let before = self.0.load(Ordering::Relaxed);
        let next = (before / EPOCH).wrapping_add(1).wrapping_mul(EPOCH);
        self.0.store(next, Ordering::Relaxed);
    }
}

/// A call that gives the program's buffer to the kernel is under way.
#[derive(Debug)]
pub struct Native<'a> {
    count: &'a UnderWay,
    epoch: u32,
}

impl Native<'_> {
    /// Whether the connection still is the one that it was when the call began.
    #[inline]
    pub fn is_same(&self) -> bool {
        self.count.0.load(Ordering::Relaxed) / EPOCH == self.epoch
    }
}

impl Drop for Native<'_> {
    #[inline]
    fn drop(&mut self) {
        let count = &self.count.0;
        let mut now = count.load(Ordering::Relaxed);
        while now / EPOCH == self.epoch {
            match count.compare_exchange_weak(now, now - 1, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }
}

impl Conn {
    /// Says that a call gives the program's buffer to the kernel, for as long as the result lives; `None` if there are rings, and it must not.
    #[inline]
    pub fn native(&self, way: Way) -> Option<Native<'_>> {
        let native = self.under_way(way).enter();
        (!self.is_mapped()).then_some(native)
    }

    /// Whether no call gives a buffer of that direction to the kernel.
    #[inline]
    pub(crate) fn is_quiet(&self, way: Way) -> bool {
        self.under_way(way).is_none()
    }

    #[inline]
    fn under_way(&self, way: Way) -> &UnderWay {
        match way {
            Way::In => &self.native_in,
            Way::Out => &self.native_out,
        }
    }
}

/// The count is below, which of the connections that have had the place above.
const EPOCH: u32 = 1 << 20;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_call_on_an_earlier_connection_is_not_counted_off() {
        let under_way = UnderWay::new();
        let (one, other) = (under_way.enter(), under_way.enter());
        assert!(one.is_same());
        drop(one);
        assert!(!under_way.is_none());
        under_way.forget();
        assert!(under_way.is_none() && !other.is_same());
        let later = under_way.enter();
        drop(other);
        assert!(!under_way.is_none() && later.is_same());
        drop(later);
        assert!(under_way.is_none());
    }

    #[test]
    fn places_are_used_again_for_ever() {
        let under_way = UnderWay::new();
        for _ in 0..=u32::MAX / EPOCH {
            let call = under_way.enter();
            under_way.forget();
            drop(call);
            assert!(under_way.is_none());
        }
    }
}
