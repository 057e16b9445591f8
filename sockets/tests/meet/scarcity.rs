//! Whatever a meeting needs is missing, at each place where it is needed.

use std::env;
use std::os::fd::AsRawFd;
use std::process::Command;

use sim::SimWindows;

use super::*;

#[test]
fn a_nic_that_fails_at_any_call_leaves_the_connection() {
    let _alone = alone();
    for (nth, blamed) in [(0, Reason::Memory), (1, Reason::Memory)] {
        let windows: &'static SimWindows = Box::leak(Box::default());
        windows.fail(nth);
        let mut ends = Ends::new();
        ends.finish(windows);
        // Who lends is first, who admits is second; the one tells the other.
        let failed = nth as usize;
        assert_eq!(ends.reason(failed), Some(blamed));
        assert_eq!(ends.reason(1 - failed), Some(Reason::Declined));
        assert_eq!(windows.calls_made(), nth + 1);
        ends.assert_untouched();
    }
}

/// Each number of descriptors left, in the range of the program's and in ours, in a process that has few.
#[test]
fn descriptors_run_out_at_any_call() {
    let _alone = alone();
    let program = env::current_exe().expect("this program");
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(program)
        .args(["--exact", "scarcity::with_few_descriptors", "--nocapture"])
        .env(FEW, "1")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let line = text
        .lines()
        .find(|line| line.contains("met in "))
        .expect("it says");
    println!("{line}");
}

#[test]
fn with_few_descriptors() {
    if env::var_os(FEW).is_none() {
        println!(
            "skipped: it is for a process of its own, which descriptors_run_out_at_any_call starts"
        );
        return;
    }
    let _alone = alone();
    nobody_in_a_crowd_goes_without();
    let (mut met, mut cases) = (0, 0);
    for low in 0..8 {
        for high in 0..10 {
            cases += 1;
            met += usize::from(with_left(low, high));
        }
    }
    println!("met in {met} of {cases}");
    assert!(met > 0 && met < cases);
}

/// More connections than can meet at a time wait for their turn.
fn nobody_in_a_crowd_goes_without() {
    let mut crowd: Vec<_> = (0..6).map(|_| Ends::new()).collect();
    assert!(!sockets::meet::is_crowded(0));
    let mut begun = 0;
    for ends in &mut crowd {
        if sockets::meet::is_crowded(0) {
            break;
        }
        ends.go(0, shm());
        ends.go(1, shm());
        begun += 1;
    }
    assert!((1..6).contains(&begun), "{begun}");
    for ends in &mut crowd {
        ends.finish(shm());
        assert!(ends.streams().is_some());
    }
}

/// Whether the ends met with so many descriptors left below and above our base.
fn with_left(mut low: usize, mut high: usize) -> bool {
    let before = open_count();
    let mut ends = Ends::new();
    let null = fs::File::open("/dev/null").expect("open");
    let mut all: Vec<_> = std::iter::from_fn(|| null.try_clone().ok()).collect();
    all.retain(|file| {
        let left = if file.as_raw_fd() < sys::hidden::base() {
            &mut low
        } else {
            &mut high
        };
        let keep = *left == 0;
        *left = left.saturating_sub(1);
        keep
    });
    ends.finish(shm());
    drop((all, null));
    let met = ends.streams().is_some();
    let reasons = [ends.reason(0), ends.reason(1)];
    assert!(met || reasons.iter().all(Option::is_some), "{reasons:?}");
    assert!(
        met || reasons.contains(&Some(Reason::Descriptors)),
        "{reasons:?}"
    );
    ends.assert_untouched();
    drop(ends);
    assert_eq!(open_count(), before);
    assert_eq!(sys::hidden::count(), 0);
    met
}

const FEW: &str = "SOVIA_MEET_FEW";
