//! Sessions at random, the same in each run, and those that once showed a fault.

use std::path::Path;
use std::{fs, io};

use dualrun::library;
use lockstep::lab::Lab;
use lockstep::record::Record;

#[test]
fn sessions_at_random_are_as_natively() {
    let mut lab = lab().expect("a lab");
    for seed in SEEDS {
        if let Some(mut finding) = lab.search(seed, STEPS).expect("a session") {
            lab.cut(&mut finding).expect("a session");
            panic!("seed {seed}, {finding}");
        }
    }
    println!("{}", lab.tally);
    assert!(
        lab.tally.upgraded > 0,
        "no connection left TCP: nothing was tested"
    );
    assert_eq!(lab.tally.broken, 0, "sessions broke off");
}

#[test]
fn what_was_mended_stays_so() {
    let mut lab = lab().expect("a lab");
    let sessions = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions");
    for entry in fs::read_dir(sessions).expect("the sessions") {
        let file = entry.expect("a session").path();
        let record: Record = fs::read_to_string(&file)
            .expect("a session")
            .parse()
            .expect("steps");
        for _ in 0..TIMES {
            if let Some(difference) = lab.replay(&record).expect("a session") {
                panic!("{}: {difference}", file.display());
            }
        }
    }
}

fn lab() -> io::Result<Lab> {
    let library = library::target_folder().and_then(|target| library::under_test(&target));
    Lab::new(Some(library.map_err(io::Error::other)?))
}

const SEEDS: std::ops::Range<u64> = 401..461;
const STEPS: usize = 80;
/// What is a race does not show each time.
const TIMES: usize = 5;
