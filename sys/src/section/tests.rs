use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Mutex;
use std::thread;

use super::*;
use crate::futex::{Wake, interruptions, wait};
use crate::sync::{AtomicU32, AtomicUsize, Ordering};
use crate::turn::thread_id;

/// Handlers are the process's.
static ALONE: Mutex<()> = Mutex::new(());
static RUNS: AtomicU32 = AtomicU32::new(0);
static RUNS_IN_SECTION: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn handle(signal: c_int, info: *mut c_void, context: *mut c_void) {
    // SAFETY: the kernel's arguments.
    if unsafe { put_off(signal, info, context, || true) } {
        return;
    }
    RUNS.fetch_add(1, Ordering::SeqCst);
    RUNS_IN_SECTION.fetch_add(is_in().into(), Ordering::SeqCst);
}

/// Without handlers that block others, so that several may come at once.
fn install() {
    for signal in SIGNALS {
        // SAFETY: plain data, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: a handler that takes the kernel's arguments.
        let installed = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        assert_eq!(installed, 0);
    }
    RUNS.store(0, Ordering::SeqCst);
    RUNS_IN_SECTION.store(0, Ordering::SeqCst);
}

fn begin() -> Section {
    Section::begin(cancellations())
}

fn send(signal: c_int, thread: libc::pthread_t) {
    // SAFETY: a thread that is there.
    assert_eq!(unsafe { libc::pthread_kill(thread, signal) }, 0);
}

fn me() -> libc::pthread_t {
    // SAFETY: has no conditions.
    unsafe { libc::pthread_self() }
}

#[test]
fn signals_come_at_the_end_of_the_outermost_section() {
    let _alone = ALONE.lock().expect("no panic");
    install();
    let outer = begin();
    let inner = begin();
    assert!(is_in() && !is_pending());
    for signal in SIGNALS {
        send(signal, me());
    }
    assert!(is_pending());
    drop(inner);
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
    drop(outer);
    assert_eq!(RUNS.load(Ordering::SeqCst), 2);
    assert_eq!(RUNS_IN_SECTION.load(Ordering::SeqCst), 0);
    assert!(!is_in());
    // And at once again.
    send(libc::SIGUSR1, me());
    assert_eq!(RUNS.load(Ordering::SeqCst), 3);
}

#[test]
fn they_come_in_a_pause() {
    let _alone = ALONE.lock().expect("no panic");
    install();
    let section = begin();
    send(libc::SIGUSR1, me());
    paused(|| {
        assert_eq!(RUNS.load(Ordering::SeqCst), 1);
        send(libc::SIGUSR2, me());
        assert_eq!(RUNS.load(Ordering::SeqCst), 2);
    });
    assert!(is_in());
    drop(section);
}

/// Has a thread that is `named` so, asleep in one section after the other, on a word and on nothing but the bell, met by `wake`: between its look and the
/// kernel's sleep, too.
fn meet_in_sleep(named: fn() -> usize, wake: impl Fn(usize)) {
    meet_in(named, &wake, || {
        let mut woken = Wake::Woken;
        // What wakes the sleep before this one, on a word that lay here too, may come late.
        while woken == Wake::Woken {
            woken = wait(&AtomicU32::new(0), 0, None);
        }
        assert_eq!(woken, Wake::Interrupted);
    });
    meet_in(named, &wake, || {
        let before = interruptions();
        // It may wake for no reason.
        while interruptions() == before {
            assert!(poll(&[], None, None));
        }
    });
}

fn meet_in(named: fn() -> usize, wake: &impl Fn(usize), sleep: fn()) {
    let (turn, sleeper) = (AtomicU32::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            sleeper.store(named(), Ordering::SeqCst);
            for round in 1..=ROUNDS {
                let section = begin();
                turn.store(round, Ordering::SeqCst);
                sleep();
                assert!(section.goes_on());
            }
        });
        for round in 1..=ROUNDS {
            // One cancellation may end two sleeps, where the second begins before the first is found.
            for looks in 0u32.. {
                if turn.load(Ordering::SeqCst) >= round {
                    break;
                }
                // The sleeper may wait for this CPU.
                if looks < 1000 {
                    std::hint::spin_loop();
                } else {
                    thread::yield_now();
                }
            }
            (0..round % 512).for_each(|_| std::hint::spin_loop());
            wake(sleeper.load(Ordering::SeqCst));
        }
    });
}

#[test]
fn a_signal_ends_a_sleep_whatever_its_handler_asks() {
    let _alone = ALONE.lock().expect("no panic");
    install();
    meet_in_sleep(
        || me() as usize,
        |thread| send(libc::SIGUSR1, thread as libc::pthread_t),
    );
    assert_eq!(RUNS.load(Ordering::SeqCst), 2 * ROUNDS);
}

#[test]
fn a_sleep_with_a_limit_is_not_gone_on_with() {
    let _alone = ALONE.lock().expect("no panic");
    install();
    let section = begin();
    send(libc::SIGUSR1, me());
    let limit = Some(Duration::from_secs(600));
    assert_eq!(wait(&AtomicU32::new(0), 0, limit), Wake::Interrupted);
    assert!(!section.goes_on());
}

#[test]
fn a_sleep_on_descriptors_goes_on_if_it_alone_has_a_limit() {
    let _alone = ALONE.lock().expect("no panic");
    install();
    let far = Duration::from_secs(600);
    for (deadline, goes_on) in [(None, true), (Some(time::now() + far), false)] {
        let section = begin();
        send(libc::SIGUSR1, me());
        let before = interruptions();
        assert!(poll(&[], Some(far), deadline));
        assert_ne!(interruptions(), before);
        assert_eq!(section.goes_on(), goes_on);
    }
    assert!(!poll(&[], Some(far), None));
}

#[test]
fn a_cancellation_ends_a_sleep() {
    let _alone = ALONE.lock().expect("no panic");
    meet_in_sleep(thread_id, wake_cancelled);
}

#[test]
fn a_jump_out_of_a_handler_of_a_fault_ends_the_section() {
    #[inline(never)]
    fn left_behind() {
        std::mem::forget(begin());
    }
    let _alone = ALONE.lock().expect("no panic");
    left_behind();
    assert!(is_in());
    end_left(crate::stack::frame());
    assert!(!is_in());
}

const SIGNALS: [c_int; 2] = [libc::SIGUSR1, libc::SIGUSR2];
const ROUNDS: u32 = 2_500;
