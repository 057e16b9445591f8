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

/// Since when nothing has moved.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// 0 if something does.
    since_ms: AtomicU32,
    peer_took: AtomicU64,
    took: AtomicU64,
    /// As [`Crammed::mutually`].
    mutually: AtomicU32,
}

impl Standstill {
    /// Something moves, as far as is known.
    pub(super) fn end(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
    }

    fn note(&self, now: Crammed, now_ms: u32) {
        let since = self.since_ms.load(Ordering::Relaxed);
        let as_before = self.peer_took.load(Ordering::Relaxed) == now.peer_took
            && self.took.load(Ordering::Relaxed) == now.took;
        if since == 0 || !as_before {
            // Threads that write at once make it begin later, or are of one mind.
            self.end();
            self.peer_took.store(now.peer_took, Ordering::Relaxed);
            self.took.store(now.took, Ordering::Relaxed);
            self.since_ms.store(now_ms, Ordering::Relaxed);
        }
        self.mutually
            .store(u32::from(now.mutually), Ordering::Relaxed);
    }

    fn is_mutual(&self) -> bool {
        self.mutually.load(Ordering::Relaxed) != 0
    }

    /// As if it had begun so much sooner.
    #[cfg(test)]
    pub(super) fn has_been_for(&self, time: Duration) {
        let since = self.since_ms.load(Ordering::Relaxed);
        let sooner = since.wrapping_sub(time.as_millis() as u32);
        self.since_ms.store(sooner | 1, Ordering::Relaxed);
    }

    fn has_lasted(&self, now_ms: u32) -> bool {
        let since = self.since_ms.load(Ordering::Relaxed);
        let patience = if self.is_mutual() {
            PATIENCE
        } else {
            PATIENCE_ALONE
        };
        since != 0 && now_ms.wrapping_sub(since) >= patience.as_millis() as u32
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
        self.standstill.since_ms.load(Ordering::Relaxed) != 0
    }

    /// Whether the other end seemed to wait for the same then: who sleeps is to look again soon.
    pub(crate) fn waits_for_one_that_waits(&self) -> bool {
        self.may_stand_still() && self.standstill.is_mutual()
    }

    /// Whether nothing has moved for so long that nothing will.
    #[cold]
    pub(crate) fn has_stood_still(&self, flow: &Flow, kernel: &impl Kernel) -> bool {
        self.note_standstill(flow, kernel);
        self.standstill.has_lasted(time::coarse_ms())
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

    #[test]
    fn lasts_once_nothing_has_moved_for_long() {
        let still = Standstill::default();
        still.note(at(7, 8), 1000);
        assert!(!still.has_lasted(1000));
        still.note(at(7, 8), 1400);
        assert!(!still.has_lasted(1499));
        assert!(still.has_lasted(1500));
    }

    #[test]
    fn begins_anew_where_either_end_has_read() {
        for moved in [at(7, 9), at(9, 8)] {
            let still = Standstill::default();
            still.note(at(7, 8), 1000);
            still.note(moved, 1400);
            assert!(!still.has_lasted(1600));
            assert!(still.has_lasted(1900));
        }
    }

    #[test]
    fn who_waits_for_one_that_may_come_back_waits_longer() {
        let still = Standstill::default();
        still.note(alone(), 1000);
        assert!(!still.has_lasted(5999));
        assert!(still.has_lasted(6000));
        still.note(at(7, 8), 1600);
        assert!(
            still.has_lasted(1600),
            "nothing has moved before that either"
        );
    }

    #[test]
    fn the_clock_goes_round() {
        let still = Standstill::default();
        still.note(at(0, 0), u32::MAX);
        assert!(!still.has_lasted(301));
        assert!(still.has_lasted(501));
    }

    #[test]
    fn what_has_ended_does_not_last() {
        let still = Standstill::default();
        still.note(at(7, 8), 1000);
        still.end();
        assert!(!still.has_lasted(9000));
    }
}
