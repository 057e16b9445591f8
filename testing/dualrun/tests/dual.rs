//! Each program in each of its variants is one test.

use std::process::ExitCode;

use dualrun::case::Case;
use dualrun::suite;

fn main() -> ExitCode {
    suite::run(Case::all(), Case::name, Case::verify)
}
