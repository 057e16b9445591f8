//! Each program over packets, with each end as the one that shows the behaviour, is one test.

use std::process::ExitCode;

use dualrun::packet::PacketCase;
use dualrun::suite;

fn main() -> ExitCode {
    suite::run(PacketCase::all(), PacketCase::name, PacketCase::verify)
}
