//! How long to poll before sleeping in the kernel.
//!
//! Waking a sleeper costs 20 us and more, polling costs nothing as long as the answer comes soon. So a wait polls for a moment with `pause`,
//! then with `sched_yield`, and only then sleeps; and it learns from what it gets for that.

use std::sync::OnceLock;
use std::time::Instant;

use crate::quiet::once;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

mod bar;
mod clock;
mod limits;

pub use bar::{BAR_FACTOR, BAR_MAX_NS, Bar};
pub use clock::{Clock, Monotonic};
pub use limits::Limits;

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
/// *Adaptive*: a fruitless spin halves the limit of the next, down to 0; a hit restores it. A sleep that ends within [`NEAR_MISS_NS`] counts
/// as a hit: two sides that each sleep through the other's wake-up would else never find out that spinning pays.
///
/// *Far-sighted*: two sides that both sleep in each wait find each other so much later that polling as long as usual never meets it, though it would if
/// neither slept: 256 kB there and back took 105 us so, and take 41. So after sleeps that end soon the limit doubles, up to [`Limits::far_ns`]. Where that
/// is not enough either the limit is as usual for the next 64 such waits, and then for twice as many.
///
/// *Wary of hogs*: beside a runnable CPU hog a yield forfeits a time slice. Every yield is timed; one that took [`LOST_NS`] or more ends the
/// spin and bars spinning for [`BAR_FACTOR`] times what was lost, which bounds the loss to about 3 %, and for twice as long each time that the hog is
/// still there, up to [`BAR_MAX_NS`]. An object that begins meanwhile [heeds](Spinner::heed)
/// what others have met: else each of many short connections would lose a slice of its own.
///
/// *In a crowd*: where a yield let somebody else run, there are more threads than CPUs, and they may be what this wait is for. The next waits
/// yield from the start, and for [`CROWD_FACTOR`] times as long, for a yield that somebody else uses costs nobody anything.
///
/// All state is relaxed atomics: a lost update costs one worse wait, never correctness.
#[derive(Debug)]
pub struct Spinner<C = Monotonic> {
    limits: Limits,
    limit_ns: AtomicU32,
    /// The last [`Bar`].
    barred_until_ns: AtomicU64,
    barred_for_ns: AtomicU64,
    /// Whether the last yield let somebody else run: 0 or 1.
    crowded: AtomicU32,
    /// Near misses still to come for which the limit does not grow.
    held: AtomicU32,
    /// How many there were the last time.
    hold: AtomicU32,
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
            limits,
            limit_ns: AtomicU32::new(limits.longest_ns()),
            barred_until_ns: AtomicU64::new(0),
            barred_for_ns: AtomicU64::new(0),
            crowded: AtomicU32::new(0),
            held: AtomicU32::new(0),
            hold: AtomicU32::new(0),
            clock,
        }
    }

    /// Starts a wait, at no cost: nothing is read before the first [`Spin::again`].
    #[inline]
    pub fn begin(&self) -> Spin<'_, C> {
        Spin {
            spinner: self,
            polls: 0,
            started_ns: 0,
            limit_ns: 0,
            phase: Phase::Fresh,
        }
    }

    /// What it is for begins: if another policy of this process is barred, so is this.
    pub fn heed(&self) {
        let last = self.clock.last_bar();
        if last.until_ns > self.barred_until_ns.load(Ordering::Relaxed) {
            self.set_bar(last);
        }
    }

    /// For how long the next wait may poll.
    pub fn limit_ns(&self) -> u32 {
        self.limit_ns.load(Ordering::Relaxed)
    }

    /// Whether a hog bars spinning at `now_ns`.
    fn barred(&self, now_ns: u64) -> bool {
        self.barred_until_ns.load(Ordering::Relaxed) > now_ns
    }

    fn bar(&self, now_ns: u64, lost_ns: u64) {
        let last = Bar {
            until_ns: self.barred_until_ns.load(Ordering::Relaxed),
            len_ns: self.barred_for_ns.load(Ordering::Relaxed),
        };
        let next = last.next(now_ns, lost_ns);
        self.set_bar(next);
        self.clock.note_bar(next);
    }

    fn set_bar(&self, bar: Bar) {
        self.barred_until_ns.store(bar.until_ns, Ordering::Relaxed);
        self.barred_for_ns.store(bar.len_ns, Ordering::Relaxed);
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

    /// A wait that polled for up to `limit_ns` and slept was over after `waited_ns`.
    #[cold]
    fn missed(&self, limit_ns: u32, waited_ns: u64) {
        let Limits { far_ns, .. } = self.limits;
        let crowded = self.crowded.load(Ordering::Relaxed) != 0;
        let soon = waited_ns <= u64::from(far_ns) + NEAR_MISS_NS;
        if soon && !crowded && far_ns > self.limits.longest_ns() && self.may_grow(limit_ns) {
            let grown_ns = limit_ns.saturating_mul(2).min(far_ns);
            let least_ns = self.limits.longest_ns();
            self.limit_ns
                .store(grown_ns.max(least_ns), Ordering::Relaxed);
        } else if waited_ns <= NEAR_MISS_NS {
            self.restore();
        }
    }

    /// Whether polling for longer than `limit_ns` may bring what that has missed.
    fn may_grow(&self, limit_ns: u32) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        if held > 0 {
            self.held.store(held - 1, Ordering::Relaxed);
        } else if limit_ns >= self.limits.far_ns {
            let hold = self.hold.load(Ordering::Relaxed).saturating_mul(2);
            let hold = hold.clamp(HOLD_MIN, HOLD_MAX);
            self.hold.store(hold, Ordering::Relaxed);
            self.held.store(hold, Ordering::Relaxed);
        }
        held == 0 && limit_ns < self.limits.far_ns
    }
}

/// One wait.
#[derive(Debug)]
pub struct Spin<'a, C = Monotonic> {
    spinner: &'a Spinner<C>,
    polls: u32,
    started_ns: u64,
    limit_ns: u32,
    phase: Phase,
}

impl<C: Clock> Spin<'_, C> {
    /// After a poll that found nothing: passes a little time and says `true` to poll again, or says `false` to sleep in the kernel.
    ///
    /// After the first `false` it is always `false`: one wait spins once, however often its sleep ends early.
    #[inline]
    pub fn again(&mut self) -> bool {
        match self.phase {
            Phase::Pausing => self.pause(),
            Phase::Yielding { before_ns } => self.yield_now(before_ns),
            Phase::Fresh => self.start(),
            Phase::Sleeping => false,
        }
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
            Phase::Fresh => {}
            Phase::Pausing | Phase::Yielding { .. } => self.spinner.restore(),
            Phase::Sleeping => self.woken(),
        }
    }

    /// Ends the wait with the verdict that polling pays, though none of the polls found anything. Without it they count as in vain.
    #[inline]
    pub fn paid(self) {
        self.spinner.restore();
    }

    fn start(&mut self) -> bool {
        let spinner = self.spinner;
        self.started_ns = spinner.clock.now_ns();
        self.limit_ns = spinner.limit_ns();
        if self.limit_ns == 0 {
            return self.give_up();
        }
        if spinner.barred(self.started_ns) {
            // Pausing forfeits no slice, and is worth it if the peer runs on another CPU.
            self.limit_ns = spinner.limits.pause_ns;
            if self.limit_ns == 0 {
                return self.give_up();
            }
        }
        if spinner.limits.pause_ns == 0 {
            return self.yield_now(self.started_ns);
        }
        if spinner.crowded.load(Ordering::Relaxed) != 0 {
            let usual_ns = self.limit_ns.min(spinner.limits.longest_ns());
            self.limit_ns = self.limit_ns.max(usual_ns.saturating_mul(CROWD_FACTOR));
            return self.yield_now(self.started_ns);
        }
        self.phase = Phase::Pausing;
        self.pause()
    }

    #[inline]
    fn pause(&mut self) -> bool {
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
        if spun_ns >= u64::from(self.spinner.limits.pause_ns) {
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
        let clock = &self.spinner.clock;
        clock.yield_now();
        let now_ns = clock.now_ns();
        let away_ns = now_ns.saturating_sub(before_ns);
        if away_ns >= LOST_NS {
            self.spinner.bar(now_ns, away_ns);
            // The caller polls once more before it sleeps: arming includes a check.
            return self.give_up();
        }
        let crowded = u32::from(away_ns >= USED_NS);
        if self.spinner.crowded.load(Ordering::Relaxed) != crowded {
            self.spinner.crowded.store(crowded, Ordering::Relaxed);
        }
        self.phase = Phase::Yielding { before_ns: now_ns };
        true
    }

    fn miss(&mut self) -> bool {
        // A spin that was cut short by a bar teaches nothing.
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
        self.spinner.missed(self.limit_ns, waited_ns);
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Fresh,
    Pausing,
    Sleeping,
    Yielding { before_ns: u64 },
}

/// A yield that took so long lost a time slice; an undisturbed one takes half a microsecond.
pub const LOST_NS: u64 = 1_000_000;

/// A yield that took so long, and not [`LOST_NS`], let another thread have the CPU.
pub const USED_NS: u64 = 900;

/// How much longer a wait in a crowd may yield.
pub const CROWD_FACTOR: u32 = 5;

/// A wait that slept and still ended so soon: the longest spin plus two wake-ups.
pub const NEAR_MISS_NS: u64 = 60_000;

/// For how many near misses the limit does not grow after it grew in vain, at first and at most.
const HOLD_MIN: u32 = 64;
const HOLD_MAX: u32 = 4096;

/// A clock read costs as much as a poll; with one at every poll a hand-off takes 0.2 us instead of 0.04.
const POLLS_PER_CLOCK: u32 = 8;

/// Shorter limits are not worth the clock read.
const FLOOR_NS: u32 = 500;

/// Passes the time between two polls of memory that another CPU writes: about [`PAUSE_NS`].
///
/// A poll takes the line away from the writer, who must get it back before he can write. Where polls follow each other as closely
/// as one `pause` instruction allows (10 ns on some machines, 60 on others) almost every hand-off pays for that.
#[inline]
pub fn pause() {
    for _ in 0..*calibrate() {
        std::hint::spin_loop();
    }
}

/// Lets a peer answer what has just been sent: a look at the line that it is about to write takes that away from it. 8 bytes there and back by
/// [notes](crate::ring::Note) take 167 ns each way without, 129 with half a [`pause`], 136 with one, 154 with two.
#[inline]
pub fn let_answer() {
    for _ in 0..(calibrate() / 2).max(1) {
        std::hint::spin_loop();
    }
}

/// Lets a sender of small messages write a few before one looks again. Who looks after each takes the line away from the sender each time, which
/// costs both more than the message.
#[inline]
pub fn let_gather() {
    for _ in 0..GATHER_PAUSES {
        pause();
    }
}

/// With 64-byte messages: without, 4.5 million a second; with 4 pauses 10.5, with 8 11.8.
const GATHER_PAUSES: u32 = 8;

/// How many `pause` instructions take [`PAUSE_NS`]; measured once in a process.
#[inline]
fn calibrate() -> &'static u32 {
    static PAUSES: OnceLock<u32> = OnceLock::new();
    once(&PAUSES, || {
        let once = || {
            let start = Instant::now();
            for _ in 0..PAUSES_TIMED {
                std::hint::spin_loop();
            }
            u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)
        };
        // The best of a few, for any of them may have been interrupted.
        let best_ns = (0..3).map(|_| once()).min().unwrap_or(0).max(1);
        (PAUSE_NS * PAUSES_TIMED)
            .div_ceil(best_ns)
            .clamp(1, PAUSE_NS)
    })
}

/// Between two polls. With 10 ns an 8-byte frame takes 130 ns one way; with 40, 75 or 130, as the two sides happen to fall into step;
/// with 50, 80 to 105; with 100, 115: by then it is noticed late.
pub const PAUSE_NS: u32 = 50;

const PAUSES_TIMED: u32 = 32;

/// How many CPUs this host has online; 1 when the kernel does not say.
///
/// Not how many this thread may use: one that is bound to a CPU of its own does best to poll for a peer on another, and where both are bound to the same, yielding
/// hands over sooner than sleeping.
pub fn cpus() -> usize {
    // It is read from a file, and asked for with each connection.
    static KNOWN: OnceLock<usize> = OnceLock::new();
    *once(&KNOWN, || {
        // SAFETY: asks for a number.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        usize::try_from(online).map_or(1, |online| online.max(1))
    })
}

#[cfg(test)]
mod tests;
