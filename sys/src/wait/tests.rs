use std::cell::Cell;
use std::time::Instant;

use super::beside::{SELDOM, WORTH};
use super::spin::POLLS_PER_CLOCK;
use super::*;

mod together;
mod tried;

/// A clock that moves only when the policy passes time.
#[derive(Default)]
struct Script {
    now_ns: Cell<u64>,
    reads: Cell<u32>,
    pauses: Cell<u32>,
    yields: Cell<u32>,
    /// What a yield takes.
    yield_ns: Cell<u64>,
    last_bar: Cell<Bar>,
    trial: Option<Trial>,
}

impl Script {
    fn pass(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
    }
}

impl Clock for &Script {
    fn now_ns(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        self.now_ns.get()
    }

    fn pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
        self.pass(PAUSE_NS);
    }

    fn yield_now(&self) {
        self.yields.set(self.yields.get() + 1);
        self.pass(self.yield_ns.get());
    }

    fn last_bar(&self) -> Bar {
        self.last_bar.get()
    }

    fn note_bar(&self, bar: Bar) {
        self.last_bar.set(bar);
    }

    fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }
}

const PAUSE_NS: u64 = super::PAUSE_NS as u64;
const POLLS: u64 = POLLS_PER_CLOCK as u64;
const YIELD_NS: u64 = 490;

fn script() -> Script {
    let script = Script::default();
    // 0 is no special time.
    script.pass(1_000_000_000);
    script.yield_ns.set(YIELD_NS);
    script
}

/// Polls until the policy says to sleep; for how long it polled.
fn fruitless<C: Clock>(spin: &mut Spin<'_, C>, script: &Script) -> u64 {
    let start_ns = script.now_ns.get();
    while spin.again() {}
    script.now_ns.get() - start_ns
}

/// A wait that sleeps and is woken long after.
fn long_wait(spinner: &Spinner<&Script>, script: &Script) -> u64 {
    let mut spin = spinner.begin();
    let spun_ns = fruitless(&mut spin, script);
    script.pass(10 * NEAR_MISS_NS);
    spin.hit();
    spun_ns
}

#[test]
fn a_first_poll_that_succeeds_is_free() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    spinner.begin().hit();
    assert_eq!(
        (script.reads.get(), script.pauses.get(), script.yields.get()),
        (0, 0, 0)
    );
}

#[test]
fn pauses_then_yields_then_sleeps() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    let mut spin = spinner.begin();
    let spun_ns = fruitless(&mut spin, &script);
    assert!((20_000..20_000 + YIELD_NS).contains(&spun_ns), "{spun_ns}");

    let paused_ns = u64::from(script.pauses.get()) * PAUSE_NS;
    assert!(
        (500..500 + POLLS * PAUSE_NS).contains(&paused_ns),
        "{paused_ns}"
    );
    let pausing_reads = 1 + (script.pauses.get() + 1) / POLLS_PER_CLOCK;
    assert_eq!(script.reads.get(), pausing_reads + script.yields.get());

    assert!(!spin.again(), "one wait spins once");
    assert_eq!(script.now_ns.get() - 1_000_000_000, spun_ns);
}

#[test]
fn a_socket_yields_from_the_first_poll() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::SOCKET, 2, &script);
    let mut spin = spinner.begin();
    assert!(spin.again());
    assert_eq!((script.pauses.get(), script.yields.get()), (0, 1));
    fruitless(&mut spin, &script);
    assert_eq!(script.pauses.get(), 0);
}

#[test]
fn fruitless_spins_fade_out_and_a_hit_restores_them() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    let limits: Vec<_> = (0..8)
        .map(|_| {
            long_wait(&spinner, &script);
            spinner.limit_ns()
        })
        .collect();
    assert_eq!(limits, [10_000, 5000, 2500, 1250, 625, 0, 0, 0]);
    assert_eq!(long_wait(&spinner, &script), 0);

    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    long_wait(&spinner, &script);
    let mut spin = spinner.begin();
    assert!(spin.again());
    spin.hit();
    assert_eq!(spinner.limit_ns(), 20_000);
}

#[test]
fn a_wait_that_is_dropped_counts_as_fruitless() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    fruitless(&mut spinner.begin(), &script);
    assert_eq!(spinner.limit_ns(), 10_000);
}

#[test]
fn short_sleeps_restore_spinning_where_they_are_usual() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    while spinner.limit_ns() > 0 {
        long_wait(&spinner, &script);
    }
    let sleep = |ns| {
        let mut spin = spinner.begin();
        assert!(!spin.again());
        script.pass(ns);
        spin.hit();
        spinner.limit_ns()
    };
    for n in 0..100 {
        let ns = if n % 8 == 0 { NEAR_MISS_NS } else { 2_000_000 };
        assert_eq!(sleep(ns), 0);
    }
    assert_eq!(sleep(NEAR_MISS_NS), 0, "may be chance");
    assert_eq!(sleep(NEAR_MISS_NS), 20_000);
}

#[test]
fn a_single_cpu_never_spins() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 1, &script);
    for _ in 0..3 {
        let mut spin = spinner.begin();
        assert!(!spin.again());
        script.pass(NEAR_MISS_NS / 2);
        spin.hit();
    }
    assert_eq!((script.pauses.get(), script.yields.get()), (0, 0));
}

#[test]
fn a_lost_slice_bars_yielding_for_a_time() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    let lost_ns = 4_000_000;
    script.yield_ns.set(lost_ns);
    let mut spin = spinner.begin();
    fruitless(&mut spin, &script);
    assert_eq!(script.yields.get(), 1);
    assert_eq!(spinner.limit_ns(), 20_000, "the limit is not to blame");

    // While it lasts a wait may only pause: that forfeits nothing.
    script.yield_ns.set(YIELD_NS);
    fruitless(&mut spinner.begin(), &script);
    assert_eq!(script.yields.get(), 1);
    assert_eq!(spinner.limit_ns(), 20_000, "nor is it now");
    script.pass(lost_ns * BAR_FACTOR);
    fruitless(&mut spinner.begin(), &script);
    assert!(script.yields.get() > 1);
}

#[test]
fn a_hog_that_stays_is_met_less_and_less() {
    let script = script();
    let lost_ns = 4_000_000;
    script.yield_ns.set(lost_ns);
    let of = || Spinner::with_clock(Limits::SOCKET, 2, &script);
    let mut met_ms = Vec::new();
    for _ in 0..4000 {
        let yields = script.yields.get();
        // Short connections, one after the other: each begins with what the last has met.
        let connection = of();
        connection.heed();
        fruitless(&mut connection.begin(), &script);
        if script.yields.get() > yields {
            met_ms.push(script.now_ns.get() / 1_000_000 - 1000);
        }
        script.pass(2_000_000);
    }
    let gaps: Vec<_> = met_ms.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps[0] < 140 && gaps[1] < 270 && gaps[2] < 540, "{gaps:?}");
    assert!(
        gaps[4..].iter().all(|gap| (1070..1080).contains(gap)),
        "{gaps:?}"
    );

    // Once it has been away for long the next is met as the first was.
    script.pass(3 * BAR_MAX_NS);
    let late = of();
    late.heed();
    fruitless(&mut late.begin(), &script);
    assert_eq!(script.last_bar.get().len_ns, lost_ns * BAR_FACTOR);
}

#[test]
fn a_slice_lost_while_polling_counts_as_well() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::SOCKET, 2, &script);
    let mut spin = spinner.begin();
    assert!(spin.again());
    script.pass(LOST_NS);
    assert!(!spin.again());
    assert!(!spinner.begin().again());
}

/// Beside a permanent hog the policy gives away about 3 % of the time, however the waits fall.
#[test]
fn a_hog_takes_little() {
    for sleep_ns in [1_000, 70_000, 900_000, 30_000_000] {
        let script = script();
        let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
        script.yield_ns.set(4_000_000);
        let start_ns = script.now_ns.get();
        while script.now_ns.get() - start_ns < 20_000_000_000 {
            let mut spin = spinner.begin();
            fruitless(&mut spin, &script);
            script.pass(sleep_ns);
            spin.hit();
        }
        let lost_ns = u64::from(script.yields.get()) * 4_000_000;
        assert!(
            lost_ns * 30 < script.now_ns.get() - start_ns,
            "sleeping {sleep_ns}: lost {lost_ns}"
        );
    }
}

#[test]
fn no_wait_polls_beyond_its_limit() {
    for pause_ns in [0, 1, 499, 500, 5_000, 40_000] {
        for yield_ns in [0, 1, 600, 20_000, 100_000] {
            let limits = Limits {
                pause_ns,
                yield_ns,
                far_ns: 0,
            };
            let script = script();
            let spinner = Spinner::with_clock(limits, 2, &script);
            loop {
                let limit_ns = u64::from(spinner.limit_ns());
                let spun_ns = long_wait(&spinner, &script);
                assert!(
                    spun_ns >= limit_ns && spun_ns < limit_ns + POLLS * PAUSE_NS + YIELD_NS,
                    "{limits:?}: {spun_ns}"
                );
                if limit_ns == 0 {
                    break;
                }
            }
        }
    }
}

/// Waits whose answers come so long after they begin, or, where they sleep, a wake-up later; how many of the last hundred slept.
fn sleepers(limits: Limits, gap_ns: impl Fn(u32) -> u64) -> usize {
    const WAKE_NS: u64 = 18_000;
    let script = script();
    let spinner = Spinner::with_clock(limits, 2, &script);
    let sleeps = |nth| {
        let gap_ns = gap_ns(nth);
        let start_ns = script.now_ns.get();
        let mut spin = spinner.begin();
        let slept = loop {
            if script.now_ns.get() - start_ns >= gap_ns {
                break false;
            }
            if !spin.again() {
                break true;
            }
        };
        if slept {
            let waited_ns = script.now_ns.get() - start_ns;
            script.pass(gap_ns.saturating_sub(waited_ns) + WAKE_NS);
        }
        spin.hit();
        slept
    };
    let slept: Vec<_> = (0..1000).map(sleeps).collect();
    slept[900..].iter().filter(|&&slept| slept).count()
}

#[test]
fn who_sleeps_a_little_too_soon_polls_for_longer() {
    for gap_ns in [1_000, 15_000, 30_000, 60_000, 120_000, 190_000] {
        assert_eq!(sleepers(Limits::MEMORY, |_| gap_ns), 0, "{gap_ns}");
    }
    for gap_ns in [210_000, 240_000, 400_000, 5_000_000] {
        assert!(sleepers(Limits::MEMORY, |_| gap_ns) > 95, "{gap_ns}");
    }
    let usual = Limits::MEMORY.at_most(20_000);
    assert_eq!(sleepers(usual, |_| 60_000), 100);
}

#[test]
fn who_is_waited_for_longer_may_be_late_now_and_then() {
    let late = |nth| if nth % 20 == 0 { 300_000 } else { 100_000 };
    assert_eq!(sleepers(Limits::MEMORY, late), 100 / 20);
}

/// Where polling is in vain it is for less and less of the time.
#[test]
fn what_is_a_little_too_far_is_seldom_polled_for() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    let mut spun_ns = 0;
    let start_ns = script.now_ns.get();
    for _ in 0..10_000 {
        let mut spin = spinner.begin();
        let polled_ns = fruitless(&mut spin, &script);
        spun_ns += polled_ns;
        script.pass(230_000_u64.saturating_sub(polled_ns));
        spin.hit();
    }
    assert!(spun_ns * 50 < script.now_ns.get() - start_ns, "{spun_ns}");
}

#[test]
fn the_real_clock_keeps_the_limit_too() {
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, Monotonic);
    let start_ns = Monotonic.now_ns();
    let mut spin = spinner.begin();
    while spin.again() {}
    assert!(Monotonic.now_ns() - start_ns >= 20_000 || spinner.barred(Monotonic.now_ns()));
}

#[test]
fn a_pause_takes_about_what_it_should() {
    let once = || {
        let start = Instant::now();
        for _ in 0..100 {
            pause();
        }
        start.elapsed().as_nanos() / 100
    };
    pause();
    let best_ns = (0..100).map(|_| once()).min().expect("many");
    assert!((20..1000).contains(&best_ns), "{best_ns}");
}

#[test]
fn what_begins_beside_a_hog_loses_no_slice_of_its_own() {
    let script = script();
    let of = || Spinner::with_clock(Limits::SOCKET, 2, &script);
    let (old, new, unaware) = (of(), of(), of());
    script.yield_ns.set(4 * LOST_NS);
    fruitless(&mut old.begin(), &script);
    assert_eq!(script.yields.get(), 1);
    new.heed();
    fruitless(&mut new.begin(), &script);
    assert_eq!(script.yields.get(), 1, "it sleeps at once");
    fruitless(&mut unaware.begin(), &script);
    assert_eq!(script.yields.get(), 2);
    // It knew of none of its own, but takes up where the others were.
    script.pass(2 * 4 * LOST_NS * (BAR_FACTOR + 1));
    new.heed();
    fruitless(&mut new.begin(), &script);
    assert_eq!(script.yields.get(), 3, "once in a while it looks again");
}

#[test]
fn a_wait_that_polls_nothing_goes_on_for_as_long_as_it_pays() {
    let script = script();
    let limits = Limits {
        pause_ns: 15_000,
        yield_ns: 0,
        far_ns: 0,
    };
    let spinner = Spinner::with_clock(limits, 2, &script);
    for _ in 0..3 {
        let mut spin = spinner.begin();
        assert!(fruitless(&mut spin, &script) >= 15_000);
        spin.paid();
    }
    let spun_ns: Vec<_> = (0..8)
        .map(|_| fruitless(&mut spinner.begin(), &script))
        .collect();
    assert!(spun_ns.is_sorted_by(|a, b| a >= b), "{spun_ns:?}");
    assert_eq!(spun_ns.last(), Some(&0));
    assert_eq!(script.yields.get(), 0);

    let mut spin = spinner.begin();
    assert!(!spin.again());
    spin.paid();
    assert_eq!(spinner.limit_ns(), 15_000);
}

#[test]
fn other_limits_begin_anew() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    long_wait(&spinner, &script);
    let faded_ns = spinner.limit_ns();
    spinner.set_limits(Limits::MEMORY, 2);
    assert_eq!(spinner.limit_ns(), faded_ns, "they are the same");
    spinner.set_limits(Limits::NONE, 2);
    assert_eq!(long_wait(&spinner, &script), 0);
    spinner.set_limits(Limits::MEMORY.at_most(5_000), 2);
    let spun_ns = long_wait(&spinner, &script);
    assert!(
        (5_000..5_000 + 2 * YIELD_NS).contains(&spun_ns),
        "{spun_ns}"
    );
    spinner.set_limits(Limits::MEMORY, 1);
    assert_eq!(long_wait(&spinner, &script), 0, "one CPU");
}

#[test]
fn what_never_yields_does_not_begin_to() {
    let limits = Limits {
        pause_ns: 15_000,
        yield_ns: 0,
        far_ns: 0,
    };
    assert_eq!(limits.at_most(20_000), limits);
    assert_eq!(limits.at_most(0), Limits::NONE);
}

/// The next time that all waits in a crowd pause, or take turns.
fn until(script: &Script, steps: bool) {
    let past_ns = script.now_ns.get() % TURNS_NS;
    let more_ns = TURNS_NS + if steps { 0 } else { STEPS_NS };
    script.pass(more_ns - past_ns);
}

/// A wait that yields once to somebody.
fn meet_a_crowd(spinner: &Spinner<&Script>, script: &Script) {
    script.yield_ns.set(2 * USED_NS);
    let mut spin = spinner.begin();
    let yields = script.yields.get();
    while script.yields.get() == yields {
        assert!(spin.again());
    }
    spin.hit();
}

/// A wait whose answer is there after `polls`; how often it yielded.
fn answered_after(spinner: &Spinner<&Script>, script: &Script, polls: u32) -> u32 {
    let yields = script.yields.get();
    let mut spin = spinner.begin();
    for _ in 0..polls {
        assert!(spin.again());
    }
    spin.hit();
    script.yields.get() - yields
}

#[test]
fn in_a_crowd_waits_take_turns_and_pause_by_turns() {
    let script = script();
    let spinner = in_a_crowd(&script);
    assert_eq!(answered_after(&spinner, &script, 2), 2);

    until(&script, true);
    assert_eq!(answered_after(&spinner, &script, 2), 0);
    let pauses = STEP_NS / super::PAUSE_NS + POLLS_PER_CLOCK;
    assert!(answered_after(&spinner, &script, pauses + 1) > 0);
    assert_eq!(answered_after(&spinner, &script, 2), 0, "once in vain");

    until(&script, false);
    assert_eq!(answered_after(&spinner, &script, 2), 2);
}

#[test]
fn who_is_in_step_lets_others_have_the_cpu() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    meet_a_crowd(&spinner, &script);
    until(&script, true);
    let start_ns = script.now_ns.get();
    while answered_after(&spinner, &script, 2) == 0 {
        assert!(script.now_ns.get() < start_ns + 2 * STEPS_NS);
    }
    assert!(script.now_ns.get() >= start_ns + STEPS_NS);

    // One of the others is a hog.
    script.yield_ns.set(LOST_NS);
    for barred in [false, true] {
        until(&script, false);
        assert_eq!(spinner.begin().again(), !barred);
    }
}

/// A policy in a crowd, at a time when its waits yield.
fn in_a_crowd(script: &Script) -> Spinner<&Script> {
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, script);
    meet_a_crowd(&spinner, script);
    until(script, false);
    spinner
}

/// Else each of its waits would lose a slice, for it never finds out that nobody else wants the CPU.
#[test]
fn a_crowd_does_not_yield_to_a_hog_either() {
    let script = script();
    let spinner = in_a_crowd(&script);
    script.yield_ns.set(LOST_NS);
    let yields = script.yields.get();
    fruitless(&mut spinner.begin(), &script);
    assert_eq!(
        script.yields.get() - yields,
        2,
        "the first may be nobody's who stays"
    );
    let yields = script.yields.get();
    for _ in 0..100 {
        fruitless(&mut spinner.begin(), &script);
    }
    assert_eq!(script.yields.get(), yields);

    // But each of them is likely to have met one who only came by.
    assert_eq!(script.last_bar.get().len_ns, LOST_NS * CROWD_BAR_FACTOR);
    script.pass(LOST_NS * CROWD_BAR_FACTOR);
    fruitless(&mut spinner.begin(), &script);
    assert!(script.yields.get() > yields);
}

#[test]
fn where_nobody_else_wants_the_cpu_there_is_no_crowd() {
    let script = script();
    let spinner = in_a_crowd(&script);
    script.yield_ns.set(YIELD_NS);
    assert_eq!(answered_after(&spinner, &script, 1), 1);
    assert_eq!(answered_after(&spinner, &script, 2), 0);
}

#[test]
fn a_wait_in_a_crowd_goes_on_while_others_use_its_yields() {
    let waits = |each| {
        let script = script();
        let spinner = in_a_crowd(&script);
        let start_ns = script.now_ns.get();
        let mut spin = spinner.begin();
        let mut polls = 0;
        while spin.again() {
            polls += 1;
            let used = polls % each == 0;
            script
                .yield_ns
                .set(if used { 2 * USED_NS } else { YIELD_NS });
        }
        script.now_ns.get() - start_ns
    };
    let usual_ns = u64::from(Limits::MEMORY.yield_ns);
    let longest_ns = usual_ns * u64::from(CROWD_FACTOR);
    assert!((longest_ns..longest_ns + usual_ns).contains(&waits(4)));
    assert!((usual_ns..2 * usual_ns).contains(&waits(u32::MAX)));
}

/// It has not polled for longer in vain: that may still be worth trying.
#[test]
fn a_wait_that_nobody_let_go_on_is_no_trial_of_longer_ones() {
    let script = script();
    let spinner = in_a_crowd(&script);
    script.yield_ns.set(YIELD_NS);
    let mut spin = spinner.begin();
    while spin.again() {}
    script.pass(NEAR_MISS_NS);
    spin.hit();
    assert_eq!(spinner.held.load(Ordering::Relaxed), 0);
    assert!(spinner.may_grow(spinner.limit_ns()));
}

#[test]
fn who_pauses_in_vain_does_so_seldom() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    meet_a_crowd(&spinner, &script);
    let pauses = STEP_NS / super::PAUSE_NS + 2 * POLLS_PER_CLOCK;
    let paused = (0..800).filter(|_| {
        until(&script, true);
        let before = script.pauses.get();
        answered_after(&spinner, &script, pauses);
        script.pauses.get() > before
    });
    assert!((64..180).contains(&paused.count()));
}

/// On one CPU the kernel may give it to the other side in the middle of a pause.
#[test]
fn an_answer_that_comes_once_does_not_make_pauses_worth_it() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    meet_a_crowd(&spinner, &script);
    let pauses = STEP_NS / super::PAUSE_NS + 2 * POLLS_PER_CLOCK;
    let pauses_in = |polls| {
        until(&script, true);
        let before = script.pauses.get();
        answered_after(&spinner, &script, polls);
        script.pauses.get() > before
    };
    for _ in 0..100 {
        pauses_in(pauses);
    }
    while !pauses_in(2) {}
    let paused = (0..160).filter(|_| pauses_in(pauses)).count();
    assert!((20..40).contains(&paused), "{paused}");
}

/// Whoever comes by takes a slice from each of them, and one that yields beside others that sleep loses one to them.
#[test]
fn a_slice_lost_now_and_then_does_not_bar_a_crowd() {
    let script = script();
    let spinner = in_a_crowd(&script);
    for _ in 0..100 {
        script.yield_ns.set(LOST_NS);
        assert!(spinner.begin().again());
        script.yield_ns.set(2 * USED_NS);
        script.pass(CROWD_AGAIN_NS);
        until(&script, false);
    }
    assert_eq!(spinner.limit_ns(), 20_000, "nor is the limit to blame");
    assert_eq!(script.last_bar.get(), Bar::default());
}

/// Each was barred at another moment, for another time.
#[test]
fn those_who_were_barred_come_back_together() {
    let firsts = (0..20).map(|i| {
        let lost_ns = LOST_NS + 97_000 * i;
        Bar::default().next(
            1_000_000_000 + 10_000 * i,
            lost_ns,
            CROWD_BAR_FACTOR,
            CROWD_BAR_MAX_NS,
        )
    });
    let lasts: Vec<_> = firsts
        .map(|mut bar| {
            // The hog stays for another second.
            while bar.until_ns < 2_000_000_000 {
                bar = bar.next(
                    bar.until_ns + LOST_NS,
                    LOST_NS,
                    CROWD_BAR_FACTOR,
                    CROWD_BAR_MAX_NS,
                );
            }
            bar.until_ns
        })
        .collect();
    assert!(
        lasts.iter().all(|&until_ns| until_ns == lasts[0]),
        "{lasts:?}"
    );
}

/// A policy that has just lost a slice.
fn beside_a_hog(script: &Script) -> Spinner<&Script> {
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, script);
    script.yield_ns.set(100 * LOST_NS);
    fruitless(&mut spinner.begin(), script);
    assert_eq!(script.yields.get(), 1);
    spinner
}

#[test]
fn beside_a_hog_a_wait_looks_until_the_other_side_has_been_woken() {
    let script = script();
    let spinner = beside_a_hog(&script);
    for _ in 0..100 {
        let mut spin = spinner.begin();
        let start_ns = script.now_ns.get();
        while script.now_ns.get() - start_ns < MEET_NS.into() {
            assert!(spin.again());
        }
        spin.hit();
    }
    // A slice has ended: one pause in vain, and the next may go well again.
    let spun_ns = fruitless(&mut spinner.begin(), &script);
    assert!((MEET_NS.into()..u64::from(MEET_NS) + POLLS * PAUSE_NS).contains(&spun_ns));
    assert!(spinner.begin().again());
    assert_eq!(script.yields.get(), 1);
}

#[test]
fn beside_a_hog_who_pauses_in_vain_does_so_seldom() {
    let script = script();
    let spinner = beside_a_hog(&script);
    let pauses = |answers: u32| {
        let mut spin = spinner.begin();
        for _ in 0..answers {
            if !spin.again() {
                return 0;
            }
            spin.hit();
            spin = spinner.begin();
        }
        u32::from(fruitless(&mut spin, &script) > 0)
    };
    // An answer now and then is not worth it.
    let paused: u32 = (0..20 * SELDOM).map(|_| pauses(WORTH / 2)).sum();
    assert!((20..40).contains(&paused), "{paused}");
    assert_eq!(script.yields.get(), 1);
}

#[test]
fn a_limit_holds_beside_a_hog_too() {
    for limits in [Limits::MEMORY.at_most(5_000), Limits::SOCKET] {
        let script = script();
        let spinner = Spinner::with_clock(limits, 2, &script);
        script.yield_ns.set(LOST_NS);
        fruitless(&mut spinner.begin(), &script);
        let longest_ns = limits.pause_ns.max(limits.far_ns);
        let spun_ns = fruitless(&mut spinner.begin(), &script);
        assert!(
            spun_ns <= u64::from(longest_ns) + POLLS * PAUSE_NS,
            "{spun_ns}"
        );
        assert_eq!(spun_ns > 0, longest_ns > 0);
    }
}

#[test]
fn who_shares_a_cpu_with_the_other_side_yields_without_asking_the_time() {
    let script = script();
    let spinner = in_a_crowd(&script);
    let pauses = STEP_NS / super::PAUSE_NS + 2 * POLLS_PER_CLOCK;
    for _ in 0..100 {
        until(&script, true);
        answered_after(&spinner, &script, pauses);
    }
    let untimed = || {
        let (reads, yields) = (script.reads.get(), script.yields.get());
        let mut spin = spinner.begin();
        assert!(spin.again());
        assert_eq!(script.yields.get(), yields + 1);
        spin.hit();
        script.reads.get() == reads
    };
    loop {
        until(&script, false);
        if untimed() {
            break;
        }
    }
    assert!((0..80).filter(|_| untimed()).count() >= 60);

    // A bar ends that.
    script.yield_ns.set(LOST_NS);
    while script.last_bar.get() == Bar::default() {
        fruitless(&mut spinner.begin(), &script);
    }
    let yields = script.yields.get();
    fruitless(&mut spinner.begin(), &script);
    assert_eq!(script.yields.get(), yields);
}
