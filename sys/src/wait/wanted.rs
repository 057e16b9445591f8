//! Whether others want the CPU on which one would poll the kernel.
//!
//! Where a yield between two polls lets somebody else run there is no idle CPU that polling would use: it only takes each answer by itself, where one that sleeps is woken to several. `wrk` and
//! nginx with two workers, at the two ends of haproxy with two threads on two CPUs, did a tenth less than asleep, and a [trial](super::Trial) does not find that out, for what the scheduler makes of
//! so many in some milliseconds differs by more. So where most waits meet that they sleep, and one in some milliseconds polls, to find out whether it is still so.

use super::usual::Mostly;
use crate::sync::Ordering;
use crate::sync::mapped::AtomicU64;

/// What the waits of a process that polls the kernel have met.
#[derive(Debug)]
pub(super) struct Wanted {
    mostly: Mostly,
    /// Until when waits sleep; 0 if they do not.
    until_ns: AtomicU64,
}

impl Wanted {
    pub(super) const fn new() -> Self {
        Self {
            mostly: Mostly::new(),
            until_ns: AtomicU64::new(0),
        }
    }

    /// A yield of a wait, its first such one, has let somebody else run until `now_ns`.
    #[cold]
    pub(super) fn note_used(&self, now_ns: u64) {
        if self.mostly.note(true) {
            self.until_ns.store(now_ns + SLEEPS_NS, Ordering::Relaxed);
        }
    }

    /// A wait is over whose yields nobody used.
    #[inline]
    pub(super) fn note_unused(&self) {
        if !self.mostly.is_never() {
            self.mostly.note(false);
        }
    }

    /// Whether waits may have to sleep, as far as is known without a look at the clock.
    #[inline]
    pub(super) fn may_sleep(&self) -> bool {
        self.until_ns.load(Ordering::Relaxed) != 0
    }

    /// Whether a wait that begins at `now_ns` sleeps.
    #[inline]
    pub(super) fn sleeps_at(&self, now_ns: u64) -> bool {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        if until_ns != 0 && now_ns >= until_ns {
            self.until_ns.store(0, Ordering::Relaxed);
        }
        now_ns < until_ns
    }
}

/// A yield in vain takes half a microsecond; who lets somebody else run is away for four and more.
pub(super) const LET_RUN_NS: u64 = 4_000;
/// For how long what is known holds.
const SLEEPS_NS: u64 = 8_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_NS: u64 = 50_000;

    /// How many of so many waits slept; of those that polled one in `unused` met nobody.
    fn slept(wanted: &Wanted, from_ns: u64, waits: u64, unused: u64) -> u64 {
        let mut polled = 0;
        let sleeps = |now_ns: &u64| {
            let sleeps = wanted.sleeps_at(*now_ns);
            if !sleeps {
                polled += 1;
                match polled % unused {
                    0 => wanted.note_unused(),
                    _ => wanted.note_used(now_ns + WAIT_NS),
                }
            }
            sleeps
        };
        let begins = (0..waits).map(|n| from_ns + n * WAIT_NS);
        begins.filter(sleeps).count() as u64
    }

    #[test]
    fn where_others_always_run_nearly_all_waits_sleep() {
        let wanted = Wanted::new();
        assert_eq!(slept(&wanted, 1_000_000_000, 8, u64::MAX), 0);
        let slept = slept(&wanted, 1_000_400_000, 1600, u64::MAX);
        assert!((1585..1595).contains(&slept), "{slept}");
    }

    #[test]
    fn where_others_mostly_run_most_waits_sleep() {
        let slept = slept(&Wanted::new(), 1_000_000_000, 10_000, 5);
        assert!((9500..9950).contains(&slept), "{slept}");
    }

    #[test]
    fn where_nobody_does_half_of_the_time_waits_poll() {
        assert_eq!(slept(&Wanted::new(), 1_000_000_000, 10_000, 2), 0);
    }

    #[test]
    fn when_the_others_have_gone_waits_poll() {
        let wanted = Wanted::new();
        slept(&wanted, 1_000_000_000, 100, u64::MAX);
        assert!(wanted.may_sleep());
        let later_ns = 2_000_000_000;
        assert_eq!(slept(&wanted, later_ns, 1000, 1), 0);
        assert!(!wanted.may_sleep());
        assert!(wanted.mostly.is_never());
    }
}
