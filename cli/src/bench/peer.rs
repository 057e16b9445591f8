//! Other projects' own test programs, beside ours: what shared memory gives to those who need not be sockets. They poll.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::pair::SILENCE_MAX;
use super::place::{Cpus, Place};
use super::program::free_port;
use super::registry::Need;
use super::session::{Budget, Contestant};
use super::unit::Unit;
use super::way::{End, Way};
use crate::error::{Context, Error, Result};
use crate::process::{Said, until_our_end};

/// What one of the programs is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// `ucx_perftest`: tagged messages there and back, or one way.
    Ucx { test: &'static str, size: usize },
    /// `fi_pingpong`: messages there and back.
    Libfabric { size: usize },
}

impl Peer {
    /// What is the same as what our programs do for this unit, if there is something.
    pub(super) fn of(way: Way, unit: Unit, size: usize) -> Option<Self> {
        Some(match (way, unit) {
            (Way::Ucx, Unit::Microseconds) => Self::Ucx {
                test: UCX_LATENCY,
                size,
            },
            (Way::Ucx, Unit::GigabytesPerSecond) => Self::Ucx {
                test: "tag_bw",
                size,
            },
            (Way::Libfabric, Unit::Microseconds) => Self::Libfabric { size },
            _ => return None,
        })
    }

    /// What must be installed.
    pub(super) fn need(way: Way) -> Option<Need> {
        let (program, package) = match way {
            Way::Ucx => ("ucx_perftest", "ucx-utils"),
            Way::Libfabric => ("fi_pingpong", "libfabric-bin"),
            _ => return None,
        };
        Some(Need { program, package })
    }

    /// One of its two processes; the client is the one that is given a number of rounds.
    fn command(self, port: u16, rounds: Option<u64>) -> Command {
        let port = port.to_string();
        let mut command = match self {
            Self::Ucx { test, size } => {
                let mut command = until_our_end(Path::new("ucx_perftest"), Signal::TERM);
                command.env("UCX_TLS", "shm,self").args(["-p", &port]);
                if let Some(rounds) = rounds {
                    command.args(["127.0.0.1", "-t", test, "-s", &size.to_string()]);
                    command.args(["-w", "100", "-n", &rounds.to_string()]);
                }
                command
            }
            Self::Libfabric { size } => {
                let mut command = until_our_end(Path::new("fi_pingpong"), Signal::TERM);
                command.args(["-p", "shm", "-e", "rdm", "-S", &size.to_string()]);
                command.args(["-I", &rounds.unwrap_or(ROUNDS_FIRST).to_string()]);
                match rounds {
                    Some(_) => command.args(["-P", &port, "127.0.0.1"]),
                    None => command.args(["-B", &port]),
                };
                command
            }
        };
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Nanoseconds a round.
    fn round_ns(self, said: &str) -> Option<f64> {
        let ns = match self {
            Self::Ucx { test, .. } => {
                let line = said.lines().find_map(|line| line.strip_prefix("Final:"))?;
                let figures: Vec<f64> = numbers(line);
                match test {
                    // The median, in µs one way.
                    UCX_LATENCY => figures.get(1)? * 2e3,
                    _ => 1e9 / figures.last()?,
                }
            }
            // µs one way.
            Self::Libfabric { .. } => {
                let line = said.lines().nth(1)?;
                numbers(line).iter().nth_back(1)? * 2e3
            }
        };
        (ns.is_finite() && ns > 0.0).then_some(ns)
    }
}

/// A peer's two programs, started anew for each run.
pub(super) struct Contest<'a> {
    place: &'a Place,
    peer: Peer,
    rounds: u64,
}

impl<'a> Contest<'a> {
    pub(super) fn new(place: &'a Place, peer: Peer) -> Self {
        Self {
            place,
            peer,
            rounds: ROUNDS_FIRST,
        }
    }

    fn measure(&self) -> Result<f64> {
        let trace = self.place.trace()?;
        let start = |command: &mut Command, end| {
            self.place.start(command, end, Way::Tcp, Cpus::Own, &trace)
        };
        let port = free_port()?;
        // Both are given the same number of rounds: libfabric's server counts, too.
        let mut server = self.peer.command(port, None);
        if let Peer::Libfabric { .. } = self.peer {
            server.args(["-I", &self.rounds.to_string()]);
        }
        let mut server = start(server.stdout(Stdio::null()), End::Server)?;
        self.place.wait_for_port(&mut server, port)?;
        let mut client = self.peer.command(port, Some(self.rounds));
        let mut client = start(client.stdout(Stdio::piped()), End::Client)?;
        let mut said = String::new();
        if let Some(stdout) = client.stdout() {
            Said::new(stdout, SILENCE_MAX)?
                .read_to_string(&mut said)
                .context("a peer's output")?;
        }
        // It removes its own memory, if it is given the time.
        server.wait_for_end(END_MAX);
        self.peer.round_ns(&said).ok_or(Error::Protocol {
            from: "a peer's program",
            what: said,
        })
    }
}

impl Contestant for Contest<'_> {
    fn fit(&mut self, budget: Budget) -> Result<()> {
        let round_ns = self.measure()?;
        let rounds = budget.run.as_nanos() as f64 / round_ns;
        self.rounds = rounds.clamp(ROUNDS_FIRST as f64, 1e6) as u64;
        Ok(())
    }

    fn run(&mut self) -> Result<f64> {
        self.measure()
    }

    fn upgrades(&self) -> usize {
        0
    }
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

const UCX_LATENCY: &str = "tag_lat";
const ROUNDS_FIRST: u64 = 200;
const END_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_read_from_what_they_say() {
        let ucx = "[thread 0]   86  6228.568 5858.697 5858.697 0.01 0.01 171 171\n\
                   Final:  20000  0.499  12.426  37.565  4.91  1.62  80477  26621\n";
        let of = |test| Peer::Ucx { test, size: 64 }.round_ns(ucx);
        assert_eq!(of("tag_lat"), Some(998.0));
        assert_eq!(of("tag_bw"), Some(1e9 / 26621.0));
        let libfabric = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                         64      10k     =10k     1.2m        2.49s      0.51     124.50       0.01\n";
        let peer = Peer::Libfabric { size: 64 };
        assert_eq!(peer.round_ns(libfabric), Some(249_000.0));
        assert_eq!(peer.round_ns("nothing"), None);
    }
}
