//! Each program over packets, with each end as the one that shows the behaviour, is one test.

use std::process::ExitCode;

use dualrun::packet::PacketCase;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match PacketCase::all() {
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
