//! One wait.

use super::wanted::LET_RUN_NS;
use super::{CROWD_FACTOR, Clock, LOST_NS, MEET_NS, Monotonic, STEP_NS, Spinner, Trial, USED_NS};

/// One wait.
#[derive(Debug)]
pub struct Spin<'a, C = Monotonic> {
    spinner: &'a Spinner<C>,
    polls: u32,
    started_ns: u64,
    limit_ns: u32,
    /// For how long it goes on while nobody uses its yields.
    idle_ns: u64,
    /// When somebody last did.
    used_ns: u64,
    /// A slice, which barred nothing.
    has_lost: bool,
    /// Somebody else ran while this one would have polled the kernel.
    was_used: bool,
    phase: Phase,
}

impl<'a, C: Clock> Spin<'a, C> {
    #[inline]
    pub(super) fn new(spinner: &'a Spinner<C>) -> Self {
        Self {
            spinner,
            polls: 0,
            started_ns: 0,
            limit_ns: 0,
            idle_ns: u64::MAX,
            used_ns: 0,
            has_lost: false,
            was_used: false,
            phase: Phase::Fresh,
        }
    }

    /// After a poll that found nothing: passes a little time and says `true` to poll again, or says `false` to sleep in the kernel.
    ///
    /// After the first `false` it is always `false`: one wait spins once, however often its sleep ends early.
    #[inline]
    pub fn again(&mut self) -> bool {
        match self.phase {
            Phase::Pausing => self.pause(self.spinner.limits.pause_ns()),
            Phase::Stepping => self.pause(STEP_NS),
            Phase::Meeting => self.meet(),
            Phase::Yielding { before_ns } => self.yield_now(before_ns),
            Phase::Fresh if self.spinner.handing.is_due() => self.hand_over(),
            Phase::Fresh | Phase::HandedOver => self.start(),
            Phase::Sleeping | Phase::Told => false,
        }
    }

    /// Polls the kernel by `look` until that finds something. `None` to sleep in it instead, without a look where that is to be [at once](Self::sleeps_at_once).
    #[inline]
    pub fn poll_kernel<R>(&mut self, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        if self.sleeps_at_once() {
            return None;
        }
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            if !self.again() {
                return None;
            }
        }
    }

    /// Before the first poll of the kernel: whether the wait sleeps in it at once, so that the poll may be left out.
    #[inline]
    pub fn sleeps_at_once(&mut self) -> bool {
        let spinner = self.spinner;
        if spinner.limits.pause_ns() != 0 || !self.is_fresh() {
            return false;
        }
        if spinner.limits.longest_ns() == 0 {
            self.phase = Phase::Told;
            return true;
        }
        let told = spinner.clock.trial().is_some_and(Trial::may_sleep);
        let in_vain = spinner.limit_ns() == 0;
        if !told && !in_vain {
            return false;
        }
        self.started_ns = spinner.clock.now_ns();
        if self.heeds_trial() {
            return true;
        }
        if in_vain {
            self.phase = Phase::Sleeping;
        }
        in_vain
    }

    /// Whether it [sleeps at once](Self::sleeps_at_once) for a reason of others': whether polling would have met the answer nobody knows.
    pub fn is_told(&self) -> bool {
        matches!(self.phase, Phase::Told)
    }

    /// Whether the kernel is what this polls, and it may.
    #[inline]
    fn is_on_trial(&self) -> bool {
        self.spinner.limits.pause_ns() == 0 && self.spinner.limits.longest_ns() != 0
    }

    /// To sleep at once.
    #[inline]
    fn heeds_trial(&mut self) -> bool {
        let trial = self.spinner.clock.trial();
        let told = trial.is_some_and(|trial| trial.sleeps_at(self.started_ns));
        if told {
            self.phase = Phase::Told;
        }
        told
    }

    /// Whether nothing was waited for yet.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        matches!(self.phase, Phase::Fresh)
    }

    /// Ends the wait with success. Free for a wait whose first poll succeeded, which says nothing about spinning.
    #[inline]
    pub fn hit(self) {
        match self.phase {
            Phase::Fresh | Phase::HandedOver | Phase::Told => {}
            Phase::Pausing => self.spinner.restore(),
            Phase::Yielding { before_ns } => {
                let spun_ns = before_ns.saturating_sub(self.started_ns);
                self.spinner.found_after(spun_ns);
                self.note_unused();
                if self.spinner.crowd.shares_its_cpu() {
                    self.spinner.handing.note_answer(before_ns);
                }
            }
            Phase::Meeting => {
                self.spinner.beside.meet();
                self.spinner.restore();
            }
            Phase::Stepping => {
                self.spinner.crowd.keep_step();
                self.spinner.restore();
            }
            Phase::Sleeping => self.woken(),
        }
    }

    /// Ends the wait with the verdict that polling pays, though none of the polls found anything. Without it they count as in vain.
    #[inline]
    pub fn paid(self) {
        self.spinner.restore();
    }

    /// Without a look at the clock.
    fn hand_over(&mut self) -> bool {
        self.spinner.clock.yield_now();
        self.phase = Phase::HandedOver;
        true
    }

    fn start(&mut self) -> bool {
        let spinner = self.spinner;
        self.started_ns = spinner.clock.now_ns();
        if self.is_on_trial() && self.heeds_trial() {
            return false;
        }
        self.limit_ns = spinner.limit_ns();
        if self.limit_ns == 0 {
            match spinner.tries_together_for(self.started_ns) {
                Some(trial_ns) => self.limit_ns = trial_ns,
                None => return self.give_up(),
            }
        }
        if spinner.barred(self.started_ns) {
            if spinner.has_kept_it(self.started_ns, true) {
                return self.yield_now(self.started_ns);
            }
            return self.start_beside_hog();
        }
        if spinner.limits.pause_ns() == 0 {
            return self.yield_now(self.started_ns);
        }
        if spinner.crowd.is_here() {
            let usual_ns = self.limit_ns.min(spinner.limits.longest_ns());
            (self.idle_ns, self.used_ns) = (self.limit_ns.into(), self.started_ns);
            self.limit_ns = self.limit_ns.max(usual_ns.saturating_mul(CROWD_FACTOR));
            if !spinner.crowd.pauses(self.started_ns) {
                return self.yield_now(self.started_ns);
            }
            self.phase = Phase::Stepping;
            return self.pause(STEP_NS);
        }
        if spinner.has_kept_it(self.started_ns, false) {
            return self.yield_now(self.started_ns);
        }
        self.phase = Phase::Pausing;
        self.pause(spinner.limits.pause_ns())
    }

    /// Pausing forfeits no slice.
    fn start_beside_hog(&mut self) -> bool {
        let pause_ns = self.spinner.limits.pause_ns();
        self.limit_ns = pause_ns;
        if pause_ns == 0 || !self.spinner.beside.tries() {
            return self.give_up();
        }
        self.phase = Phase::Meeting;
        self.meet()
    }

    #[inline]
    fn meet(&mut self) -> bool {
        self.polls += 1;
        if self.polls.is_multiple_of(POLLS_PER_CLOCK) {
            let limits = &self.spinner.limits;
            let most_ns = MEET_NS.min(limits.far_ns()).max(limits.pause_ns());
            let now_ns = self.spinner.clock.now_ns();
            if self.spinner.has_kept_it(now_ns, true) {
                self.started_ns = now_ns;
                return self.yield_now(now_ns);
            }
            let spun_ns = now_ns.saturating_sub(self.started_ns);
            if spun_ns >= u64::from(most_ns) {
                // It teaches nothing about the time after the bar.
                self.spinner.beside.miss();
                return self.give_up();
            }
        }
        self.spinner.clock.pause();
        true
    }

    #[inline]
    fn pause(&mut self, for_ns: u32) -> bool {
        self.polls += 1;
        if !self.polls.is_multiple_of(POLLS_PER_CLOCK) {
            self.spinner.clock.pause();
            return true;
        }
        let now_ns = self.spinner.clock.now_ns();
        let spun_ns = now_ns.saturating_sub(self.started_ns);
        if spun_ns >= u64::from(self.limit_ns) {
            return self.miss();
        }
        if spun_ns >= u64::from(for_ns) {
            if matches!(self.phase, Phase::Stepping) {
                self.spinner.crowd.lose_step();
            }
            return self.yield_now(now_ns);
        }
        self.spinner.clock.pause();
        true
    }

    /// The time since `before_ns` includes the caller's last poll; a slice lost there counts as well.
    fn yield_now(&mut self, before_ns: u64) -> bool {
        if before_ns.saturating_sub(self.started_ns) >= u64::from(self.limit_ns) {
            return self.miss();
        }
        if before_ns.saturating_sub(self.used_ns) >= self.idle_ns {
            // It says nothing about polling for longer than that.
            self.limit_ns = u32::try_from(self.idle_ns).unwrap_or(self.limit_ns);
            return self.miss();
        }
        let clock = &self.spinner.clock;
        // A look at many descriptors takes as long as others do with the CPU.
        let looks_for_others = self.is_on_trial() && !self.was_used;
        let yielded_ns = if looks_for_others {
            clock.now_ns()
        } else {
            before_ns
        };
        clock.yield_now();
        let now_ns = clock.now_ns();
        let away_ns = now_ns.saturating_sub(before_ns);
        if away_ns >= USED_NS {
            self.used_ns = now_ns;
        }
        if looks_for_others && now_ns.saturating_sub(yielded_ns) >= LET_RUN_NS {
            self.was_used = true;
            if let Some(trial) = clock.trial() {
                trial.wanted().note_used(now_ns);
            }
        }
        if away_ns >= LOST_NS {
            if self.spinner.bar(now_ns, away_ns) {
                // The caller polls once more before it sleeps: arming includes a check.
                return self.give_up();
            }
            if self.has_lost {
                return self.give_up();
            }
            // The limit is not to blame.
            self.has_lost = true;
            self.started_ns = now_ns;
        } else {
            self.spinner.kept(now_ns, away_ns >= USED_NS);
        }
        self.phase = Phase::Yielding { before_ns: now_ns };
        true
    }

    /// It yielded, and is over.
    #[inline]
    fn note_unused(&self) {
        if !self.was_used
            && self.is_on_trial()
            && let Some(trial) = self.spinner.clock.trial()
        {
            trial.wanted().note_unused();
        }
    }

    fn miss(&mut self) -> bool {
        self.note_unused();
        // One that began with a shorter limit teaches nothing about this.
        let limit_ns = self.spinner.limit_ns();
        if self.limit_ns >= limit_ns {
            self.spinner.halve(limit_ns);
        }
        self.give_up()
    }

    fn give_up(&mut self) -> bool {
        self.phase = Phase::Sleeping;
        false
    }

    #[cold]
    fn woken(&self) {
        let waited_ns = self.spinner.clock.now_ns().saturating_sub(self.started_ns);
        if waited_ns < AT_ONCE_NS && self.limit_ns == 0 && self.spinner.limits.pause_ns() == 0 {
            // It may have been there before.
            return;
        }
        let crowded = self.idle_ns != u64::MAX || self.spinner.crowd.is_here();
        self.spinner.missed(self.limit_ns, waited_ns, crowded);
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Fresh,
    /// Has yielded once, without a look at the clock.
    HandedOver,
    Pausing,
    /// Pausing, in a crowd.
    Stepping,
    /// Pausing, beside a hog.
    Meeting,
    Sleeping,
    /// Sleeping, as the process does better so: it says nothing about polling.
    Told,
    Yielding {
        before_ns: u64,
    },
}

/// Nobody goes to sleep and is woken in less.
const AT_ONCE_NS: u64 = 2_000;

/// A clock read costs as much as a poll; with one at every poll a hand-off takes 0.2 us instead of 0.04.
pub(super) const POLLS_PER_CLOCK: u32 = 8;
