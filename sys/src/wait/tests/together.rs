//! What the threads that share a CPU do at the same time.

use super::super::keeping::BARRED_TURNS;
use super::*;

/// Time as a thread of several sees it.
#[derive(Clone, Copy)]
struct Thread<'a> {
    script: &'a Script,
    turn: &'a Cell<u64>,
    /// Since when yields of all of them lose slices; 0 if they lose none.
    losing_ns: &'a Cell<u64>,
}

impl Clock for Thread<'_> {
    fn now_ns(&self) -> u64 {
        self.script.now_ns()
    }

    fn pause(&self) {
        self.script.pause();
    }

    fn yield_now(&self) {
        self.script.yield_now();
    }

    fn last_bar(&self) -> Bar {
        self.script.last_bar()
    }

    fn note_bar(&self, bar: Bar) {
        self.script.note_bar(bar);
    }

    fn losing_since_ns(&self, now_ns: u64) -> u64 {
        if self.losing_ns.get() == 0 {
            self.losing_ns.set(now_ns);
        }
        self.losing_ns.get()
    }

    fn note_kept(&self) {
        self.losing_ns.set(0);
    }

    fn last_turn(&self, turn: u64) -> u64 {
        self.turn.replace(turn)
    }
}

/// What threads of one process share, and the turn of one of them.
struct Host {
    script: Script,
    turn: Cell<u64>,
    losing_ns: Cell<u64>,
}

impl Host {
    fn new() -> Self {
        Self {
            script: script(),
            turn: Cell::new(0),
            losing_ns: Cell::new(0),
        }
    }

    fn thread(&self) -> Thread<'_> {
        Thread {
            script: &self.script,
            turn: &self.turn,
            losing_ns: &self.losing_ns,
        }
    }
}

/// A wait whose answer is there after two polls; how often it yielded.
fn answered_soon<C: Clock>(spinner: &Spinner<C>, script: &Script) -> u32 {
    let yields = script.yields.get();
    let mut spin = spinner.begin();
    for _ in 0..2 {
        if !spin.again() {
            break;
        }
    }
    spin.hit();
    script.yields.get() - yields
}

#[test]
fn who_is_always_answered_lets_others_have_the_cpu_once_in_a_while() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, thread);
    until(script, true);
    answered_soon(&spinner, script);
    for _ in 0..20 {
        until(script, true);
        assert!(answered_soon(&spinner, script) > 0);
        let turn = script.now_ns.get() / TURNS_NS;
        while script.now_ns.get() / TURNS_NS == turn {
            assert_eq!(answered_soon(&spinner, script), 0, "nobody wanted it");
        }
    }

    // Now somebody does: it is in a crowd.
    script.yield_ns.set(2 * USED_NS);
    until(script, true);
    answered_soon(&spinner, script);
    until(script, false);
    assert_eq!(answered_soon(&spinner, script), 2);
}

/// Each of its many connections begins as if nothing had been lost.
#[test]
fn a_thread_loses_no_slice_with_each_of_its_connections() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    script.yield_ns.set(2 * LOST_NS);
    let of = |_| Spinner::with_clock(Limits::MEMORY, 2, thread);
    let connections: Vec<_> = (0..1000).map(of).collect();
    let start_ns = script.now_ns.get();
    while script.now_ns.get() - start_ns < 10_000_000_000 {
        for connection in &connections {
            answered_soon(connection, script);
        }
    }
    let lost_ns = u64::from(script.yields.get()) * 2 * LOST_NS;
    let share = (script.now_ns.get() - start_ns) / lost_ns;
    assert!(share >= 25, "one in {share}");
}

#[test]
fn who_is_barred_finds_out_when_the_hog_has_gone() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, thread);
    script.yield_ns.set(2 * LOST_NS);
    while script.last_bar.get() == Bar::default() {
        fruitless(&mut spinner.begin(), script);
    }
    script.yield_ns.set(2 * USED_NS);
    let (start_ns, yields) = (script.now_ns.get(), script.yields.get());
    while script.yields.get() == yields {
        answered_soon(&spinner, script);
    }
    let after_ns = script.now_ns.get() - start_ns;
    assert!(after_ns <= BARRED_TURNS * TURNS_NS, "{after_ns}");
    assert_eq!(script.last_bar.get(), Bar::default());
    assert!(!spinner.barred(script.now_ns.get()));
}

/// Of many short connections each may have a thread of its own.
#[test]
fn a_thread_that_begins_beside_a_hog_loses_no_slice() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    script.yield_ns.set(2 * LOST_NS);
    let old = Spinner::with_clock(Limits::MEMORY, 2, thread);
    while script.last_bar.get() == Bar::default() {
        fruitless(&mut old.begin(), script);
    }
    host.turn.set(0);
    let new = Spinner::with_clock(Limits::MEMORY, 2, thread);
    new.heed();
    assert_eq!(answered_soon(&new, script), 0);
}

#[test]
fn what_never_yields_does_not_let_others_have_the_cpu() {
    let (script, turn, losing_ns) = (script(), Cell::new(0), Cell::new(0));
    let limits = Limits {
        yield_ns: 0,
        ..Limits::MEMORY
    };
    let thread = Thread {
        script: &script,
        turn: &turn,
        losing_ns: &losing_ns,
    };
    let spinner = Spinner::with_clock(limits, 2, thread);
    for _ in 0..20 {
        until(&script, true);
        assert_eq!(answered_soon(&spinner, &script), 0);
    }
}

/// The kept yields of others on its CPU say each time that there is no hog.
#[test]
fn a_wait_ends_that_loses_a_slice_with_each_yield() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    script.yield_ns.set(LOST_NS);
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, thread);
    let mut spin = spinner.begin();
    while spin.again() {
        host.losing_ns.set(0);
    }
    assert!(script.yields.get() <= 2);
}

/// The other side of the one wait does not answer: those of others may have been waiting for the CPU for long.
#[test]
fn a_look_beside_a_hog_ends_when_all_yield() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, thread);
    script.yield_ns.set(50 * LOST_NS);
    while script.last_bar.get() == Bar::default() {
        fruitless(&mut spinner.begin(), script);
    }
    let all_ns = BARRED_TURNS * TURNS_NS;
    answered_soon(&spinner, script);
    script.yield_ns.set(2 * USED_NS);
    let to_ns = all_ns - script.now_ns.get() % all_ns;
    script.pass(to_ns - u64::from(MEET_NS) / 2);
    let yields = script.yields.get();
    let spun_ns = fruitless(&mut spinner.begin(), script);
    assert_eq!(script.yields.get(), yields + 1);
    assert!(spun_ns < u64::from(MEET_NS), "{spun_ns}");
}

/// Fifty threads that begin at once keep each other from the CPU for some milliseconds, and then answer.
#[test]
fn others_of_the_process_that_begin_are_no_hog() {
    let host = Host::new();
    let (script, thread) = (&host.script, host.thread());
    let turns: [_; 5] = std::array::from_fn(|_| Cell::new(0));
    let of = |turn| Thread { turn, ..thread };
    let spinners: Vec<_> = turns
        .iter()
        .map(|turn| Spinner::with_clock(Limits::MEMORY, 2, of(turn)))
        .collect();
    let yields_once = |spinner: &Spinner<Thread<'_>>| {
        let yields = script.yields.get();
        let mut spin = spinner.begin();
        while script.yields.get() == yields && spin.again() {}
        spin.hit();
    };
    script.yield_ns.set(LOST_NS);
    spinners.iter().for_each(yields_once);
    assert_eq!(script.last_bar.get(), Bar::default());
    script.yield_ns.set(YIELD_NS);
    until(script, true);
    spinners.iter().for_each(yields_once);
    assert_eq!(host.losing_ns.get(), 0);

    // Who only ever loses has met a hog, in whichever of its threads.
    script.yield_ns.set(LOST_NS);
    let start_ns = script.now_ns.get();
    for spinner in spinners.iter().cycle().take(50) {
        until(script, true);
        yields_once(spinner);
        if script.last_bar.get() != Bar::default() {
            break;
        }
    }
    let after_ns = script.now_ns.get() - start_ns;
    let most_ns = LOSING_NS + 2 * (LOST_NS + TURNS_NS);
    assert!((LOSING_NS..=most_ns).contains(&after_ns), "{after_ns}");
}

/// A policy in a crowd that has learned to sleep at once, and is woken after `sleep_ns`.
fn asleep(script: &Script, sleep_ns: u64) -> Spinner<&Script> {
    let spinner = in_a_crowd(script);
    while spinner.limit_ns() > 0 {
        sleeps(&spinner, script, sleep_ns);
    }
    spinner
}

/// For how long a wait polled that is over after `sleep_ns`, asleep or not.
fn sleeps(spinner: &Spinner<&Script>, script: &Script, sleep_ns: u64) -> u64 {
    let start_ns = script.now_ns.get();
    let mut spin = spinner.begin();
    while script.now_ns.get() - start_ns < sleep_ns && spin.again() {}
    let spun_ns = script.now_ns.get() - start_ns;
    script.pass(sleep_ns.saturating_sub(spun_ns));
    spin.hit();
    spun_ns
}

/// One alone waits in vain, for the other side must wake all the others before: all of them stay awake, or none.
#[test]
fn a_crowd_that_sleeps_stays_awake_together() {
    for sleep_ns in [450_000, 1_500_000, 7_000_000] {
        let script = script();
        let spinner = asleep(&script, sleep_ns);
        let start_ns = script.now_ns.get();
        while spinner.limit_ns() == 0 {
            sleeps(&spinner, &script, sleep_ns);
            let gone_ns = script.now_ns.get() - start_ns;
            assert!(gone_ns < 150 * sleep_ns, "{sleep_ns} still after {gone_ns}");
        }
    }
}

#[test]
fn whoever_is_told_to_sleep_at_once_does_so_in_a_crowd_too() {
    let script = script();
    let spinner = asleep(&script, 450_000);
    spinner.set_limits(Limits::NONE, 2);
    for _ in 0..1000 {
        assert_eq!(sleeps(&spinner, &script, 450_000), 0);
    }
}

#[test]
fn a_crowd_whose_answers_take_long_tries_that_seldom() {
    for (sleep_ns, most) in [(3_000_000, 60), (9_000_000, 0)] {
        let script = script();
        let spinner = asleep(&script, sleep_ns);
        let (start_ns, mut spun_ns) = (script.now_ns.get(), 0);
        while script.now_ns.get() - start_ns < 20_000_000_000 {
            spun_ns += sleeps(&spinner, &script, sleep_ns);
            // Whatever it found, it was as slow.
            while spinner.limit_ns() > 0 {
                spinner.halve(spinner.limit_ns());
            }
        }
        let share = spun_ns * 1000 / (script.now_ns.get() - start_ns);
        assert!(share <= most, "{share} of 1000, sleeping {sleep_ns}");
    }
}
