//! Sessions at random, the same in each run, and those that once showed a fault.

use std::path::Path;
use std::{env, fs, io};

use dualrun::library;
use lockstep::lab::Lab;
use lockstep::record::Record;

#[test]
fn sessions_at_random_are_as_natively() {
    let mut lab = lab("random").expect("a lab");
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
}

#[test]
fn what_was_mended_stays_so() {
    let mut lab = lab("mended").expect("a lab");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions");
    for entry in fs::read_dir(folder).expect("the sessions") {
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

fn lab(name: &str) -> io::Result<Lab> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lockstep.{name}"));
    fs::create_dir_all(&folder)?;
    let program = env::current_exe()?;
    let target = program
        .ancestors()
        .nth(3)
        .unwrap_or_else(|| Path::new("target"));
    let library = library::under_test(target).map_err(io::Error::other)?;
    Lab::new(&folder, Some(library))
}

const SEEDS: std::ops::Range<u64> = 401..461;
const STEPS: usize = 80;
/// What is a race does not show each time.
const TIMES: usize = 5;
