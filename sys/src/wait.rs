//! How long to poll before sleeping in the kernel.
//!
//! Waking a sleeper costs 20 us and more, polling costs nothing as long as the answer comes soon. So a wait polls for a moment with `pause`,
//! then with `sched_yield`, and only then sleeps; and it learns from what it gets for that.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

mod answer;
mod bar;
mod beside;
mod clock;
mod crowd;
mod handing;
mod hog;
mod keeping;
mod limits;
mod pause;
mod process;
mod spin;
mod trial;
mod usual;
mod wanted;

pub use answer::Answer;
pub use bar::{
    BAR_FACTOR, BAR_MAX_NS, Bar, CROWD_AGAIN_NS, CROWD_BAR_FACTOR, CROWD_BAR_MAX_NS, LOSING_NS,
};
pub use beside::MEET_NS;
pub use clock::{Clock, Monotonic, note_sent};
pub use crowd::{CROWD_FACTOR, STEP_NS, STEPS_NS, TURNS_NS, USED_NS};
pub use limits::Limits;
pub use pause::{PAUSE_NS, cpus, let_answer, let_gather, pause};
pub use spin::Spin;
pub use trial::Trial;

use beside::Beside;
use crowd::Crowd;
use handing::Handing;
use limits::Shared;
use pause::calibrate;
use usual::{Mostly, Often};

/// The waiting policy of one object (a connection, a completion queue), shared by all its waits.
///
/// ```
/// # use sys::wait::{Limits, Spinner};
/// # let spinner = Spinner::new(Limits::MEMORY);
/// # let done = true;
/// let mut spin = spinner.begin();
/// loop {
///     if done {
///         spin.hit();
///         break;
///     }
///     if !spin.again() { /* arm, fence, check once more, sleep in the kernel */ }
/// }
/// ```
///
/// *Adaptive*: a fruitless spin halves the limit of the next, down to 0; a hit restores it. Sleeps that end within [`NEAR_MISS_NS`] count
/// as hits where they are usual: two sides that each sleep through the other's wake-up would else never find out that spinning pays.
///
/// *Far-sighted*: two sides that both sleep in each wait find each other so much later that polling as long as usual never meets it, though it would if
/// neither slept: 256 kB there and back took 105 us so, and take 41. So where sleeps mostly end soon the limit doubles, up to [`Limits::far_ns`]. Where that
/// is not enough either the limit is as usual for the next 64 such waits, and then for twice as many; where it has been enough 16 times since, for none.
///
/// *Wary of hogs*: beside a runnable CPU hog a yield forfeits a time slice. Every yield is timed; one that took [`LOST_NS`] or more ends the
/// spin and bars yielding for [`BAR_FACTOR`] times what was lost, which bounds the loss to about 3 % (in a crowd [`CROWD_BAR_FACTOR`] times; there, and
/// for [`LOSING_NS`] in a process of several threads, one alone counts for nothing), and for twice as long each time that the hog is still there, up to [`BAR_MAX_NS`] or
/// [`CROWD_BAR_MAX_NS`]. An object that begins meanwhile [heeds](Spinner::heed) what others have met: else each of many short connections would lose a slice of
/// its own. A barred wait sleeps, but for some that pause for [`MEET_NS`], which forfeits nothing: two sides that both run then go on without sleep until a
/// slice ends; and the first of a thread in each 131 ms yields all the same, for whoever had the slice may have been a crowd.
///
/// *In a crowd*: where a yield let somebody else run, there are more threads than CPUs, and they may be what this wait is for. The next waits
/// yield from the start, and for [`CROWD_FACTOR`] times as long while somebody uses the yields. For about half of the time they pause for [`STEP_NS`] first: see [`TURNS_NS`].
/// Where that is in vain, both sides are on one CPU, and most waits yield without a look at the clock. A thread that is always answered in time yields once in each
/// [`TURNS_NS`], else nobody would find out that there is a crowd; and a crowd that has come to sleep in each wait tries now and then, all at the same time, to stay awake.
///
/// *On trial*: whether polling what only the kernel knows gets the process further is [tried](Trial); where it does not, such waits sleep at once. So they do
/// where others want the CPU.
///
/// All state is relaxed atomics: a lost update costs one worse wait, never correctness.
#[derive(Debug)]
pub struct Spinner<C = Monotonic> {
    limits: Shared,
    limit_ns: AtomicU32,
    /// The last [`Bar`].
    barred_until_ns: AtomicU64,
    barred_for_ns: AtomicU64,
    /// When a crowd lost a slice that barred nothing.
    lost_ns: AtomicU64,
    crowd: Crowd,
    handing: Handing,
    beside: Beside,
    /// Near misses still to come for which the limit does not grow.
    held: AtomicU32,
    /// How many there were the last time; 0 where the next time is forgiven.
    hold: AtomicU32,
    /// Answers that the longer limit has met since.
    proofs: AtomicU32,
    /// Sleeps that polling for as long as usual might have met, and that polling for longer might.
    near: Often,
    soon: Mostly,
    clock: C,
}

impl Spinner {
    /// A policy for this host's CPUs: with a single one it never spins.
    pub fn new(limits: Limits) -> Self {
        calibrate();
        Self::with_clock(limits, cpus(), Monotonic)
    }
}

impl<C: Clock> Spinner<C> {
    /// A policy for a given clock and number of CPUs.
    pub fn with_clock(limits: Limits, cpus: usize, clock: C) -> Self {
        let limits = if cpus > 1 { limits } else { Limits::NONE };
        Self {
            limits: Shared::new(limits),
            limit_ns: AtomicU32::new(limits.longest_ns()),
            barred_until_ns: AtomicU64::new(0),
            barred_for_ns: AtomicU64::new(0),
            lost_ns: AtomicU64::new(0),
            crowd: Crowd::new(),
            handing: Handing::new(),
            beside: Beside::new(),
            held: AtomicU32::new(0),
            hold: AtomicU32::new(HOLD_MIN / 2),
            proofs: AtomicU32::new(0),
            near: Often::default(),
            soon: Mostly::default(),
            clock,
        }
    }

    /// From now on it has these limits, and what it has learned of others is forgotten.
    pub fn set_limits(&self, limits: Limits, cpus: usize) {
        let limits = if cpus > 1 { limits } else { Limits::NONE };
        if self.limits.get() != limits {
            self.limits.set(limits);
            self.handing.end();
            self.crowd.forget();
            self.near.forget();
            self.soon.forget();
            self.limit_ns.store(limits.longest_ns(), Ordering::Relaxed);
        }
    }

    /// Starts a wait, at no cost: nothing is read before the first [`Spin::again`].
    #[inline]
    pub fn begin(&self) -> Spin<'_, C> {
        Spin::new(self)
    }

    /// What it is for begins: if another policy of this process is barred, so is this.
    pub fn heed(&self) {
        let last = self.clock.last_bar();
        // Where there was none this is not even looked at: a short connection has no other use for it.
        if last.until_ns != 0 && last.until_ns > self.barred_until_ns.load(Ordering::Relaxed) {
            self.set_bar(last);
        }
    }

    /// For how long the next wait may poll.
    pub fn limit_ns(&self) -> u32 {
        self.limit_ns.load(Ordering::Relaxed)
    }

    /// For how long a wait that begins at `now_ns`, and would sleep at once, yields instead. Whom somebody has told to poll for less than usual does not.
    fn tries_together_for(&self, now_ns: u64) -> Option<u32> {
        let usual = self.limits.yields_after_pauses()
            && self.limits.longest_ns() >= Limits::MEMORY.yield_ns;
        self.crowd.tries_together_for(now_ns).filter(|_| usual)
    }

    fn halve(&self, spun_ns: u32) {
        let half_ns = spun_ns / 2;
        let kept_ns = if half_ns < FLOOR_NS { 0 } else { half_ns };
        self.limit_ns.store(kept_ns, Ordering::Relaxed);
    }

    /// Polling found something.
    #[inline]
    fn restore(&self) {
        let longest_ns = self.limits.longest_ns();
        // Loading first keeps the line shared while waits go well.
        if self.limit_ns.load(Ordering::Relaxed) < longest_ns {
            self.limit_ns.store(longest_ns, Ordering::Relaxed);
        }
    }

    /// Polling for `spun_ns` found something.
    #[inline]
    fn found_after(&self, spun_ns: u64) {
        // In a crowd the time is others'.
        if spun_ns > u64::from(self.limits.longest_ns())
            && self.hold.load(Ordering::Relaxed) != 0
            && !self.crowd.is_here()
        {
            let proofs = self.proofs.load(Ordering::Relaxed) + 1;
            self.proofs.store(proofs % PROOFS, Ordering::Relaxed);
            if proofs == PROOFS {
                self.hold.store(0, Ordering::Relaxed);
                self.held.store(0, Ordering::Relaxed);
            }
        }
        self.restore();
    }

    /// A wait that polled for up to `limit_ns` and slept was over after `waited_ns`. In a crowd, where it began in one or is in one, the limit does not grow.
    #[cold]
    fn missed(&self, limit_ns: u32, waited_ns: u64, crowded: bool) {
        let limits = self.limits.get();
        let far_ns = limits.far_ns;
        self.crowd.note_sleep(waited_ns);
        let near = self.near.note(waited_ns <= NEAR_MISS_NS);
        let soon = self
            .soon
            .note(waited_ns <= u64::from(far_ns) + SLOW_WAKES_NS);
        if soon && !crowded && far_ns > limits.longest_ns() && self.may_grow(limit_ns) {
            let grown_ns = limit_ns.saturating_mul(2).min(far_ns);
            let least_ns = limits.longest_ns();
            self.limit_ns
                .store(grown_ns.max(least_ns), Ordering::Relaxed);
        } else if near {
            self.restore();
        }
    }

    /// Whether polling for longer than `limit_ns` may bring what that has missed.
    fn may_grow(&self, limit_ns: u32) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        if held > 0 {
            self.held.store(held - 1, Ordering::Relaxed);
        } else if limit_ns >= self.limits.far_ns() {
            match self.hold.load(Ordering::Relaxed) {
                0 => self.hold.store(HOLD_MIN / 2, Ordering::Relaxed),
                before => {
                    let hold = before.saturating_mul(2).clamp(HOLD_MIN, HOLD_MAX);
                    self.hold.store(hold, Ordering::Relaxed);
                    self.held.store(hold, Ordering::Relaxed);
                }
            }
        }
        held == 0 && limit_ns < self.limits.far_ns()
    }
}

/// A yield that took so long lost a time slice, of which a hog has three or four milliseconds; an undisturbed yield takes half a microsecond, and a
/// pair in step less than this ([`STEPS_NS`]).
pub const LOST_NS: u64 = 2_000_000;

/// A wait that slept and still ended so soon: the longest spin plus two wake-ups.
pub const NEAR_MISS_NS: u64 = 60_000;

/// Two wake-ups of an idle CPU where these take long: 20 us as a rule, but 150 on some virtual machines, where 1 MiB there and back stayed asleep without this
/// (500 us for 125).
const SLOW_WAKES_NS: u64 = 320_000;

/// For how many near misses the limit does not grow after it grew in vain, at first and at most.
const HOLD_MIN: u32 = 64;
/// So many answers that only the longer limit has met have it not given up for the next that is late. With one, eight pairs of programs on two CPUs did a tenth less.
const PROOFS: u32 = 16;
const HOLD_MAX: u32 = 4096;

/// Shorter limits are not worth the clock read.
const FLOOR_NS: u32 = 500;

#[cfg(test)]
mod tests;
