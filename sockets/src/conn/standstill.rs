//! Senders for whom there may never be room again.
//!
//! TCP over loopback takes more of what nobody has read than a ring does, so a program that counts on that would stand still for ever: where two ends both
//! write before they read, or one writes to itself. Who has seen for long that nothing moves [goes to TCP](crate::io::end_standstill) with what it sends,
//! behind what is in the ring.

use std::time::Duration;

use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};
use sys::time;

use super::Conn;
use crate::flow::{Crammed, Flow};
use crate::kernel::Kernel;
use crate::ready::{LOOK, LOOK_SELDOM};

/// For how long nothing has moved, as far as somebody looked.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// The last look; 0 if something moves.
    looked_ms: AtomicU32,
    lasted_ms: AtomicU32,
    peer_took: AtomicU64,
    took: AtomicU64,
    /// As [`Crammed::mutually`].
    mutually: AtomicU32,
}

impl Standstill {
    /// Something moves, as far as is known.
    pub(super) fn end(&self) {
        self.looked_ms.store(0, Ordering::Relaxed);
    }

    /// Threads that write at once lose each other's time, which makes it last longer.
    fn note(&self, now: Crammed, now_ms: u32) {
        let looked = self.looked_ms.swap(now_ms, Ordering::Relaxed);
        let lasted = self.lasted_ms.load(Ordering::Relaxed);
        let peer_took = self.peer_took.swap(now.peer_took, Ordering::Relaxed);
        let took = self.took.swap(now.took, Ordering::Relaxed);
        let as_before = looked != 0 && (peer_took, took) == (now.peer_took, now.took);
        // A program that was stopped meanwhile, with its peer perhaps, has not waited for so long.
        let longer = now_ms.wrapping_sub(looked).min(self.between_looks());
        let lasted = if as_before {
            lasted.saturating_add(longer)
        } else {
            0
        };
        self.lasted_ms.store(lasted, Ordering::Relaxed);
        self.mutually
            .store(u32::from(now.mutually), Ordering::Relaxed);
    }

    fn is_mutual(&self) -> bool {
        self.mutually.load(Ordering::Relaxed) != 0
    }

    fn between_looks(&self) -> u32 {
        let longest = if self.is_mutual() {
            5 * LOOK
        } else {
            2 * LOOK_SELDOM
        };
        longest.as_millis() as u32
    }

    fn has_lasted(&self) -> bool {
        let patience = if self.is_mutual() {
            PATIENCE
        } else {
            PATIENCE_ALONE
        };
        let lasted = self.lasted_ms.load(Ordering::Relaxed);
        self.looked_ms.load(Ordering::Relaxed) != 0 && lasted >= patience.as_millis() as u32
    }

    /// As if it had lasted for so long.
    #[cfg(all(test, not(loom)))]
    pub(super) fn has_been_for(&self, time: Duration) {
        self.lasted_ms
            .store(time.as_millis() as u32, Ordering::Relaxed);
    }
}

impl Conn {
    /// Before somebody sleeps until there is room.
    #[cold]
    pub(crate) fn note_standstill(&self, flow: &Flow, kernel: &impl Kernel) {
        match flow.crammed(kernel) {
            Some(now) => self.standstill.note(now, time::coarse_ms()),
            None => self.standstill.end(),
        }
    }

    /// Whether there was no room when somebody last went to sleep for that.
    #[inline]
    pub(crate) fn may_stand_still(&self) -> bool {
        self.standstill.looked_ms.load(Ordering::Relaxed) != 0
    }

    /// Whether the other end seemed to wait for the same then: who sleeps is to look again soon.
    pub(crate) fn waits_for_one_that_waits(&self) -> bool {
        self.may_stand_still() && self.standstill.is_mutual()
    }

    /// Whether nothing has moved for so long that nothing will.
    #[cold]
    pub(crate) fn has_stood_still(&self, flow: &Flow, kernel: &impl Kernel) -> bool {
        self.note_standstill(flow, kernel);
        self.standstill.has_lasted()
    }
}

/// Whoever reads now and then, beside other programs, has read by then.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
/// A receiver that rests is mostly no standstill, and is to find the ring when it comes back.
pub(super) const PATIENCE_ALONE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(peer_took: u64, took: u64) -> Crammed {
        Crammed {
            peer_took,
            took,
            mutually: true,
        }
    }

    fn alone() -> Crammed {
        Crammed {
            mutually: false,
            ..at(7, 8)
        }
    }

    /// Looks at it each 20 ms, from one time to the other.
    fn looks(still: &Standstill, crammed: Crammed, from_ms: u32, to_ms: u32) {
        for now_ms in (from_ms..=to_ms).step_by(20) {
            still.note(crammed, now_ms);
        }
    }

    #[test]
    fn lasts_once_nothing_has_moved_for_long() {
        let still = Standstill::default();
        looks(&still, at(7, 8), 1000, 1480);
        assert!(!still.has_lasted());
        still.note(at(7, 8), 1500);
        assert!(still.has_lasted());
    }

    #[test]
    fn begins_anew_where_either_end_has_read() {
        for moved in [at(7, 9), at(9, 8)] {
            let still = Standstill::default();
            looks(&still, at(7, 8), 1000, 1400);
            looks(&still, moved, 1420, 1900);
            assert!(!still.has_lasted());
            looks(&still, moved, 1920, 1920);
            assert!(still.has_lasted());
        }
    }

    #[test]
    fn who_waits_for_one_that_may_come_back_waits_longer() {
        let still = Standstill::default();
        looks(&still, alone(), 1000, 5980);
        assert!(!still.has_lasted());
        looks(&still, alone(), 6000, 6000);
        assert!(still.has_lasted());
    }

    #[test]
    fn one_that_comes_to_wait_as_well_has_not_moved_before() {
        let still = Standstill::default();
        looks(&still, alone(), 1000, 1600);
        still.note(at(7, 8), 1620);
        assert!(still.has_lasted());
    }

    #[test]
    fn a_program_that_was_stopped_has_not_waited() {
        let still = Standstill::default();
        still.note(at(7, 8), 1000);
        still.note(at(7, 8), 900_000);
        assert!(!still.has_lasted());
    }

    #[test]
    fn the_clock_goes_round() {
        let still = Standstill::default();
        still.note(at(7, 8), u32::MAX);
        looks(&still, at(7, 8), 19, 479);
        assert!(!still.has_lasted());
        still.note(at(7, 8), 499);
        assert!(still.has_lasted());
    }

    #[test]
    fn what_has_ended_does_not_last() {
        let still = Standstill::default();
        looks(&still, at(7, 8), 1000, 2000);
        still.end();
        assert!(!still.has_lasted());
    }
}
