//! Whether others want the CPU on which one would poll the kernel.
//!
//! Before a [trial](super::Trial) has said what is better, a wait polls. But where each yield between two polls lets somebody else run there is no idle CPU that polling would use: it only takes
//! each answer by itself, where one that sleeps is woken to several. `wrk` with ten connections, on two CPUs with two threads of haproxy and two of nginx, lost 5 to 8 % in its first tenth of a second, and
//! again in each trial that was undecided. So such waits sleep, and one in some milliseconds polls, to find out whether that is still so.

use crate::sync::Ordering;
use crate::sync::mapped::{AtomicU32, AtomicU64};

/// What the yields of a process that polls the kernel have met.
#[derive(Debug)]
pub(super) struct Wanted {
    /// How many in a row let somebody else run, up to [`ALWAYS`].
    used: AtomicU32,
    /// Until when waits sleep; 0 if they do not.
    until_ns: AtomicU64,
}

impl Wanted {
    pub(super) const fn new() -> Self {
        Self {
            used: AtomicU32::new(0),
            until_ns: AtomicU64::new(0),
        }
    }

    /// A yield, and the poll before it, took `away_ns`, until `now_ns`.
    #[inline]
    pub(super) fn note_yield(&self, away_ns: u64, now_ns: u64) {
        let used = self.used.load(Ordering::Relaxed);
        if away_ns < LET_RUN_NS {
            if used != 0 {
                self.used.store(0, Ordering::Relaxed);
            }
        } else if used + 1 < ALWAYS {
            self.used.store(used + 1, Ordering::Relaxed);
        } else {
            // The next one that lets somebody run is enough, then.
            self.until_ns.store(now_ns + SLEEPS_NS, Ordering::Relaxed);
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

/// A yield and a poll in vain take one or two microseconds; who lets somebody else run is away for four and more.
const LET_RUN_NS: u64 = 4_000;
/// So many in a row, and it is always so.
const ALWAYS: u32 = 8;
/// For how long that holds.
const SLEEPS_NS: u64 = 8_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 1_000_000_000;

    /// How many of so many waits slept. Each lasts `wait_ns`, and yields once if it polls.
    fn slept(wanted: &Wanted, from_ns: u64, wait_ns: u64, waits: u64) -> u64 {
        (0..waits)
            .map(|n| from_ns + n * wait_ns)
            .filter(|now_ns| {
                let sleeps = wanted.sleeps_at(*now_ns);
                if !sleeps {
                    wanted.note_yield(wait_ns, now_ns + wait_ns);
                }
                sleeps
            })
            .count() as u64
    }

    #[test]
    fn where_others_always_run_nearly_all_waits_sleep() {
        let wanted = Wanted::new();
        assert_eq!(slept(&wanted, START_NS, 50_000, 7), 0);
        let slept = slept(&wanted, START_NS + 7 * 50_000, 50_000, 1600);
        assert!((1580..1592).contains(&slept), "{slept}");
    }

    #[test]
    fn one_yield_that_nobody_used_is_enough_to_poll() {
        let wanted = Wanted::new();
        slept(&wanted, START_NS, 50_000, 100);
        assert!(wanted.may_sleep());
        let later_ns = START_NS + 100_000_000;
        assert!(!wanted.sleeps_at(later_ns));
        assert!(!wanted.may_sleep());
        wanted.note_yield(1_000, later_ns);
        assert_eq!(slept(&wanted, later_ns, 50_000, 7), 0);
        assert_eq!(slept(&wanted, later_ns, 1_000, 1000), 0);
    }
}
