//! When an end that has come to the meeting looks whether the other one is there.

use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};
use sys::time;

/// The looks of one end at one meeting.
///
/// The first are taken at once, for an end that sends and receives in turn; later ones seldom, for a receiver may lag megabytes behind.
#[derive(Debug)]
pub(super) struct Schedule {
    next_ns: AtomicU64,
    interval_ns: AtomicU64,
    calls: AtomicU32,
}

impl Schedule {
    pub(super) const fn new() -> Self {
        Self {
            next_ns: AtomicU64::new(0),
            interval_ns: AtomicU64::new(0),
            calls: AtomicU32::new(0),
        }
    }

    /// A meeting begins, and its first look is due.
    pub(super) fn begin(&self) {
        self.next_ns.store(0, Ordering::Relaxed);
        self.interval_ns.store(0, Ordering::Relaxed);
        // A count that two threads lose is worth less than a locked instruction.
        let vain = VAIN.load(Ordering::Relaxed);
        VAIN.store(vain.saturating_add(1), Ordering::Relaxed);
    }

    /// The other end is there: the next look is due at once, and others soon after.
    pub(super) fn hurry(&self) {
        self.next_ns.store(0, Ordering::Relaxed);
        self.interval_ns.store(0, Ordering::Relaxed);
    }

    /// Whether looks are as far apart as they may be.
    pub(super) fn is_over(&self) -> bool {
        self.interval_ns.load(Ordering::Relaxed) >= STEP_MAX_NS
    }

    /// After a call: whether a look is due. Then the next is due an interval later.
    pub(super) fn is_due(&self) -> bool {
        let vain = VAIN.load(Ordering::Relaxed);
        if self.rests_after(vain) {
            return false;
        }
        self.calls.store(0, Ordering::Relaxed);
        self.is_due_at(time::monotonic_ns(), vain)
    }

    /// Whether it is too soon for a call even to ask for the time, which costs a process to whose meetings nobody comes more than it brings.
    #[inline]
    pub(super) fn rests(&self) -> bool {
        self.rests_after(VAIN.load(Ordering::Relaxed))
    }

    #[inline]
    fn rests_after(&self, vain: u32) -> bool {
        if vain <= HOPEFUL || self.interval_ns.load(Ordering::Relaxed) <= LONG_NS {
            return false;
        }
        let calls = self.calls.load(Ordering::Relaxed) + 1;
        let rests = calls < CALLS;
        if rests {
            self.calls.store(calls, Ordering::Relaxed);
        }
        rests
    }

    fn is_due_at(&self, now_ns: u64, vain: u32) -> bool {
        if now_ns < self.next_ns.load(Ordering::Relaxed) {
            return false;
        }
        let interval = self.interval_ns.load(Ordering::Relaxed);
        self.interval_ns
            .store(longer(interval, vain), Ordering::Relaxed);
        self.next_ns.store(now_ns + interval, Ordering::Relaxed);
        true
    }
}

/// Somebody came.
pub(super) fn came() {
    VAIN.store(0, Ordering::Relaxed);
}

/// The interval after this one, when so many meetings have begun since one came to something.
fn longer(interval_ns: u64, vain: u32) -> u64 {
    let more = match interval_ns {
        _ if vain > HOPEFUL => interval_ns * 3,
        LATE_NS.. => interval_ns,
        _ => interval_ns / 4,
    };
    (interval_ns + more + STEP_NS).min(STEP_MAX_NS)
}

/// Meetings that this process has begun since one of its own came to something.
static VAIN: AtomicU32 = AtomicU32::new(0);

/// So many meetings look closely. A process to whose meetings nobody comes takes a dozen looks at each of the others where it took fifty: each is three
/// system calls, which with 50 connections were 2 % of their first 160 ms. Who comes late there waits three times as long as he was late, at most.
const HOPEFUL: u32 = 8;
/// Between looks that are further apart such a process asks for the time after each of so many calls; the others rest.
const LONG_NS: u64 = 100_000;
const CALLS: u32 = 8;

/// From one look to the next, by and by.
const STEP_NS: u64 = 200;
/// Who is so late that looks are as far apart as this is noticed within as much again as he is late.
const LATE_NS: u64 = 1_000_000;
/// A meeting ends with looks that are so far apart, after one second to two. Each look disturbs a
/// stream beside it, and a stream over TCP that was disturbed may be slower for long: with one end under sovia and a look every 5 ms writes of 64 B were a third
/// slower until it gave up, and with one every 40 ms writes of 64 kB a twentieth.
const STEP_MAX_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks in the first `ns` of a meeting.
    fn looks_within(ns: u64, vain: u32) -> u32 {
        let (mut at, mut interval, mut looks) = (0, 0, 0);
        while at < ns {
            looks += 1;
            at += interval;
            interval = longer(interval, vain);
        }
        looks
    }

    #[test]
    fn a_process_that_nobody_meets_looks_seldom() {
        let tenth = 100_000_000;
        let (close, seldom) = (
            looks_within(tenth, HOPEFUL),
            looks_within(tenth, HOPEFUL + 1),
        );
        assert!(seldom * 3 < close, "{seldom} looks, and {close}");
        for vain in [0, u32::MAX] {
            assert_eq!(longer(STEP_MAX_NS, vain), STEP_MAX_NS);
        }
    }

    #[test]
    fn most_calls_rest_where_nobody_comes() {
        let schedule = Schedule::new();
        schedule.begin();
        assert!(!schedule.rests_after(u32::MAX), "the first looks are close");
        schedule.interval_ns.store(LONG_NS + 1, Ordering::Relaxed);
        assert!(!schedule.rests_after(HOPEFUL));
        for _ in 1..CALLS {
            assert!(schedule.rests_after(u32::MAX));
        }
        assert!(!schedule.rests_after(u32::MAX));
        assert!(!schedule.rests_after(u32::MAX), "until one has looked");
        schedule.calls.store(0, Ordering::Relaxed);
        assert!(schedule.rests_after(u32::MAX));
    }

    #[test]
    fn the_first_two_looks_are_due_at_once() {
        let schedule = Schedule::new();
        schedule.begin();
        assert!(schedule.is_due_at(1000, 0));
        assert!(schedule.is_due_at(1000, 0));
        assert!(!schedule.is_due_at(1000, 0));
        assert!(schedule.is_due_at(1000 + STEP_NS, 0));
    }
}
