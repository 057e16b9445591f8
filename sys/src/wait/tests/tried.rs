//! Waits on the kernel, which may sleep at once.

use super::*;

/// A process that gets further asleep, and has found that out.
fn tried() -> Script {
    let trial = Trial::new();
    let script = script();
    for _ in 0..100_000 {
        let sleeps = trial.sleeps_at(script.now_ns.get());
        script.pass(if sleeps { 30_000 } else { 40_000 });
        trial.note_sent();
    }
    assert!(trial.may_sleep());
    Script {
        trial: Some(trial),
        ..script
    }
}

#[test]
fn who_is_told_to_sleep_does_not_poll() {
    let script = tried();
    let spinner = Spinner::with_clock(Limits::SOCKET, 2, &script);
    for _ in 0..10 {
        let mut spin = spinner.begin();
        assert!(spin.sleeps_at_once());
        assert!(!spin.again());
        script.pass(10 * NEAR_MISS_NS);
        spin.hit();
        // Nor where he has looked first.
        let mut spin = spinner.begin();
        assert!(!spin.again());
        spin.hit();
    }
    assert_eq!(script.yields.get(), 0);
    assert_eq!(
        spinner.limit_ns(),
        Limits::SOCKET.yield_ns,
        "nothing was learned"
    );
}

#[test]
fn waits_for_memory_are_not_told() {
    let script = tried();
    let spinner = Spinner::with_clock(Limits::MEMORY, 2, &script);
    let mut spin = spinner.begin();
    assert!(!spin.sleeps_at_once());
    assert!(spin.again());
}

#[test]
fn what_polls_in_vain_sleeps_without_a_look() {
    let script = script();
    let spinner = Spinner::with_clock(Limits::SOCKET, 2, &script);
    while spinner.limit_ns() > 0 {
        assert!(!spinner.begin().sleeps_at_once());
        long_wait(&spinner, &script);
    }
    // What is there at once teaches nothing, and what comes soon, often, restores polling.
    for waited_ns in [1_000, 30_000, 1_000, 30_000] {
        assert_eq!(spinner.limit_ns(), 0);
        let mut spin = spinner.begin();
        assert!(spin.sleeps_at_once());
        assert!(!spin.again());
        script.pass(waited_ns);
        spin.hit();
    }
    assert_eq!(spinner.limit_ns(), Limits::SOCKET.yield_ns);
}

#[test]
fn who_may_not_poll_reads_no_clock() {
    let script = script();
    let limits = Limits::SOCKET.at_most(0);
    let spinner = Spinner::with_clock(limits, 2, &script);
    let before = script.reads.get();
    let mut spin = spinner.begin();
    assert!(spin.sleeps_at_once());
    assert!(!spin.again());
    spin.hit();
    assert_eq!(script.reads.get(), before);
}

#[test]
fn where_others_want_the_cpu_waits_sleep() {
    let script = Script {
        trial: Some(Trial::new()),
        ..script()
    };
    let spinner = Spinner::with_clock(Limits::SOCKET, 2, &script);
    let waits = |count| {
        for _ in 0..count {
            let mut spin = spinner.begin();
            if !spin.sleeps_at_once() {
                spin.again();
            }
            script.pass(10_000);
            spin.hit();
        }
        script.yields.replace(0)
    };
    assert_eq!(waits(100), 100);
    script.yield_ns.set(15_000);
    assert_eq!(waits(100), 8, "then it is known");
    script.pass(10_000_000);
    assert_eq!(waits(100), 1, "whether it is still so");
    script.yield_ns.set(YIELD_NS);
    script.pass(10_000_000);
    assert_eq!(waits(100), 100);
}
