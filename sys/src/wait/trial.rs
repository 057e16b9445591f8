//! Whether polling the kernel gets a process further.
//!
//! Who waits for what only the kernel knows may sleep in it, as everybody does, or ask it again and again. Where a CPU is idle meanwhile asking is better: nobody
//! has to be woken, and the answer is there sooner. Where the CPU could do what is waited for, or the kernel would have woken somebody there, it is
//! worse, though each answer still comes while one asks: `ab` with ten connections to Apache on two CPUs lost a seventh. No single wait shows that, unless others [want](super::wanted) its CPU. So it is tried: for
//! some milliseconds the waits of a process poll, for as many they sleep, and what counts is how often it has sent something in that time.

use crate::sync::Ordering;
use crate::sync::mapped::{AtomicU32, AtomicU64};

use super::wanted::Wanted;

/// Whether polling the kernel gets a process further, by trials. All state is relaxed atomics, for all threads of the process: a mixture of two costs a worse decision until the next.
#[derive(Debug)]
pub struct Trial {
    /// How often something was sent.
    sent: AtomicU64,
    /// When the part ends that goes on; 0 before the first wait.
    until_ns: AtomicU64,
    /// Which part of a trial that is; [`PARTS`] is the time for which an outcome holds.
    part: AtomicU32,
    /// Whether waits sleep in it, and whether they did before the trial.
    sleeps: AtomicU32,
    slept: AtomicU32,
    /// When the part began, and what had been sent by then.
    began_ns: AtomicU64,
    sent_before: AtomicU64,
    /// How often something was sent in each part so far, in 2^30 ns.
    rates: [AtomicU64; PARTS],
    /// For how long the last outcome holds.
    holds_ns: AtomicU64,
    wanted: Wanted,
}

impl Default for Trial {
    fn default() -> Self {
        Self::new()
    }
}

impl Trial {
    /// Nothing is known: waits poll.
    pub const fn new() -> Self {
        Self {
            sent: AtomicU64::new(0),
            until_ns: AtomicU64::new(0),
            part: AtomicU32::new(PARTS as u32),
            sleeps: AtomicU32::new(0),
            slept: AtomicU32::new(0),
            began_ns: AtomicU64::new(0),
            sent_before: AtomicU64::new(0),
            rates: [const { AtomicU64::new(0) }; PARTS],
            holds_ns: AtomicU64::new(HOLDS_NS),
            wanted: Wanted::new(),
        }
    }

    /// The process has sent something by the kernel.
    #[inline]
    pub fn note_sent(&self) {
        // Two threads at once may count as one.
        let sent = self.sent.load(Ordering::Relaxed);
        self.sent.store(sent.wrapping_add(1), Ordering::Relaxed);
    }

    /// What the yields between polls have met.
    #[inline]
    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Whether waits may have to sleep at once, as far as is known without a look at the clock.
    #[inline]
    pub(super) fn may_sleep(&self) -> bool {
        self.sleeps() || self.wanted.may_sleep()
    }

    #[inline]
    fn sleeps(&self) -> bool {
        self.sleeps.load(Ordering::Relaxed) != 0
    }

    /// Whether a wait that begins at `now_ns` sleeps at once.
    #[inline]
    pub(super) fn sleeps_at(&self, now_ns: u64) -> bool {
        if self.wanted.sleeps_at(now_ns) {
            if self.part.load(Ordering::Relaxed) != PARTS as u32 {
                self.give_up(now_ns);
            }
            return true;
        }
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        if now_ns >= until_ns {
            self.go_on(now_ns, until_ns);
        }
        self.sleeps()
    }

    /// There is nothing to be found out by the trial that is under way.
    #[cold]
    fn give_up(&self, now_ns: u64) {
        let relaxed = Ordering::Relaxed;
        let until_ns = self.until_ns.load(relaxed);
        let mine = self
            .until_ns
            .compare_exchange(until_ns, now_ns + PART_NS, relaxed, relaxed);
        // Else another thread goes on with it.
        if mine.is_ok() && self.part.load(relaxed) != PARTS as u32 {
            let slept = self.slept.load(relaxed) != 0;
            self.hold(now_ns, slept, None);
        }
    }

    /// The part that went on until `until_ns` is over.
    #[cold]
    fn go_on(&self, now_ns: u64, until_ns: u64) {
        let relaxed = Ordering::Relaxed;
        let mine = self
            .until_ns
            .compare_exchange(until_ns, now_ns + PART_NS, relaxed, relaxed);
        if mine.is_err() {
            // Another thread sees to it.
            return;
        }
        let part = self.part.load(Ordering::Relaxed) as usize;
        let sent = self.sent.load(Ordering::Relaxed);
        let brought = sent.wrapping_sub(self.sent_before.load(Ordering::Relaxed));
        let took_ns = now_ns.saturating_sub(self.began_ns.load(Ordering::Relaxed));
        if part < PARTS && brought < ENOUGH && took_ns < PART_MAX_NS {
            return;
        }
        self.sent_before.store(sent, Ordering::Relaxed);
        self.began_ns.store(now_ns, Ordering::Relaxed);
        let Some(rate) = self.rates.get(part) else {
            if until_ns == 0 {
                // Its first wait. A program that is soon over has none of this.
                self.hold(now_ns, false, None);
            } else {
                self.slept
                    .store(u32::from(self.sleeps()), Ordering::Relaxed);
                self.begin_part(0);
            }
            return;
        };
        let slept = self.slept.load(Ordering::Relaxed) != 0;
        if took_ns > 2 * PART_MAX_NS || brought < ENOUGH {
            // It waited for something else meanwhile, or has nearly nothing to send.
            self.hold(now_ns, false, None);
            return;
        }
        rate.store((brought << 30) / took_ns.max(1), Ordering::Relaxed);
        let rates = self
            .rates
            .each_ref()
            .map(|rate| rate.load(Ordering::Relaxed));
        let so_far = rates.get(..=part).unwrap_or_default();
        let verdict = verdict(so_far);
        if part + 1 < PARTS && verdict.is_none() {
            self.begin_part(part + 1);
        } else {
            self.hold(now_ns, slept, verdict);
        }
    }

    fn begin_part(&self, part: usize) {
        self.part.store(part as u32, Ordering::Relaxed);
        self.sleeps
            .store(u32::from(sleeps_in(part)), Ordering::Relaxed);
    }

    /// No trial for some time: for longer where it said what was known before, and for a little where it was undecided.
    fn hold(&self, now_ns: u64, slept: bool, sleeps: Option<bool>) {
        let sleeps_now = sleeps.unwrap_or(slept);
        let holds_ns = self.holds_ns.load(Ordering::Relaxed);
        let next_ns = match sleeps {
            None => (holds_ns * 2).min(UNDECIDED_NS),
            Some(_) if sleeps_now != slept => UNDECIDED_NS,
            Some(_) => (holds_ns * 4).min(HOLDS_MAX_NS),
        };
        self.holds_ns.store(next_ns, Ordering::Relaxed);
        self.part.store(PARTS as u32, Ordering::Relaxed);
        self.sleeps.store(u32::from(sleeps_now), Ordering::Relaxed);
        self.until_ns.store(now_ns + next_ns, Ordering::Relaxed);
    }
}

/// Whether to sleep, by how often something was sent in each part so far; `None` if it may be chance.
fn verdict(rates: &[u64]) -> Option<bool> {
    let (worth, votes_needed) = match rates.len() {
        PARTS => (WORTH, VOTES),
        EARLY => (FAR_BETTER, EARLY / 2),
        _ => return None,
    };
    let is_better = |one, other| one > other + other / worth;
    let mut sums = [0; 2];
    let mut votes = [0; 2];
    for (at, pair) in rates.chunks_exact(2).enumerate() {
        let &[first, second] = pair else { continue };
        let [polling, sleeping] = if sleeps_in(2 * at) {
            [second, first]
        } else {
            [first, second]
        };
        sums = [sums[0] + polling, sums[1] + sleeping];
        votes[0] += usize::from(is_better(polling, sleeping));
        votes[1] += usize::from(is_better(sleeping, polling));
    }
    if votes[1] >= votes_needed && is_better(sums[1], sums[0]) {
        Some(true)
    } else if votes[0] >= votes_needed && is_better(sums[0], sums[1]) {
        Some(false)
    } else {
        None
    }
}

/// Polls, sleeps, sleeps, polls, and so on: what changes steadily meanwhile changes nothing.
fn sleeps_in(part: usize) -> bool {
    matches!(part % 4, 1 | 2)
}

/// Parts of a trial.
const PARTS: usize = 16;
/// How long each takes: about a time slice, and until enough is sent to compare; so long at most.
const PART_NS: u64 = 4_000_000;
const PART_MAX_NS: u64 = 32_000_000;
const ENOUGH: u64 = 24;
/// What is better has sent more than one in so many more, in all and in so many of the pairs of parts.
const WORTH: u64 = 32;
const VOTES: usize = 5;
/// What is so far better in each pair is known after so many parts.
const FAR_BETTER: u64 = 4;
const EARLY: usize = 4;
/// Half of how long it is to the first trial; how long an outcome holds where trials do not decide, and at most.
const HOLDS_NS: u64 = 25_000_000;
const UNDECIDED_NS: u64 = 400_000_000;
const HOLDS_MAX_NS: u64 = 4_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A process whose waits follow each other, and which sends once for each: every `polling_ns` while it polls, every `sleeping_ns` while it
    /// sleeps. In how many thousandths of the last half of the time it slept.
    fn slept(trial: &Trial, polling_ns: u64, sleeping_ns: u64) -> u64 {
        let mut now_ns = 1_000_000_000 + trial.until_ns.load(Ordering::Relaxed);
        let (half_ns, end_ns) = (now_ns + SPAN_NS / 2, now_ns + SPAN_NS);
        let mut slept_ns = 0;
        while now_ns < end_ns {
            let sleeps = trial.sleeps_at(now_ns);
            let took_ns = if sleeps { sleeping_ns } else { polling_ns };
            now_ns += took_ns;
            slept_ns += if sleeps && now_ns > half_ns {
                took_ns
            } else {
                0
            };
            trial.note_sent();
        }
        slept_ns * 1000 / (SPAN_NS / 2)
    }

    const SPAN_NS: u64 = 20_000_000_000;

    #[test]
    fn who_gets_further_asleep_sleeps() {
        let trial = Trial::new();
        assert!(slept(&trial, 33_000, 30_000) > 980);
        // And no more where that is over.
        assert!(slept(&trial, 30_000, 60_000) < 30);
        assert!(slept(&trial, 66_000, 60_000) > 980);
    }

    #[test]
    fn who_gets_further_polling_polls() {
        assert!(slept(&Trial::new(), 20_000, 30_000) < 20);
    }

    #[test]
    fn what_makes_no_difference_is_left_as_it_is() {
        let share = slept(&Trial::new(), 30_000, 30_000);
        assert!((20..100).contains(&share), "in trials alone: {share}");
    }

    #[test]
    fn who_sends_seldom_polls() {
        let trial = Trial::new();
        let share = slept(&trial, 20_000_000, 10_000_000);
        assert!(share < 100, "{share}");
        assert!(trial.holds_ns.load(Ordering::Relaxed) <= UNDECIDED_NS);
    }

    #[test]
    fn a_short_program_has_no_trial() {
        let trial = Trial::new();
        for now_ns in (1..2 * HOLDS_NS).step_by(10_000) {
            assert!(!trial.sleeps_at(now_ns));
            trial.note_sent();
        }
    }

    #[test]
    fn one_odd_part_decides_nothing() {
        let mut rates = [1000; PARTS];
        rates[1] = 5000;
        assert_eq!(verdict(&rates), None);
        assert_eq!(verdict(&rates[..EARLY]), None);
        rates[0] = 9000;
        assert_eq!(verdict(&rates), None);
        assert_eq!(verdict(&rates[..EARLY]), None);
        for (part, rate) in rates.iter_mut().enumerate() {
            *rate = if sleeps_in(part) { 1100 } else { 1000 };
        }
        assert_eq!(verdict(&rates), Some(true));
        assert_eq!(verdict(&rates[..EARLY]), None, "not so much better");
        assert_eq!(verdict(&rates.map(|rate| 2100 - rate)), Some(false));
    }

    #[test]
    fn what_is_far_better_is_known_early() {
        assert_eq!(verdict(&[2000, 1000, 1100, 2100]), Some(false));
        assert_eq!(verdict(&[1000, 2000, 2100, 1100]), Some(true));
        assert_eq!(verdict(&[2000, 1000, 1100]), None);
    }
}
