//! Each program in each of its variants is one test.

use std::process::ExitCode;

use dualrun::case::Case;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match Case::all() {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("the programs: {error}");
            return ExitCode::FAILURE;
        }
    };
    let trials = cases
        .into_iter()
        .map(|case| Trial::test(case.name(), move || case.verify().map_err(Failed::from)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
