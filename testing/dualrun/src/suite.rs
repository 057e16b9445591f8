//! Cases as tests that the harness lists, selects and runs.

use std::io;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// The whole of a test binary: one test for each of `cases`.
pub fn run<C: Send + 'static>(
    cases: io::Result<Vec<C>>,
    name: fn(&C) -> String,
    verify: fn(&C) -> Result<(), String>,
) -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match cases {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("the programs: {error}");
            return ExitCode::FAILURE;
        }
    };
    let trials = cases
        .into_iter()
        .map(|case| Trial::test(name(&case), move || verify(&case).map_err(Failed::from)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
