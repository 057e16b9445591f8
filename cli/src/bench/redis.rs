use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use super::pair::SILENCE_MAX;
use super::place::{Cpus, Place, Trace};
use super::program::{Log, free_port};
use super::session::{Budget, Contestant};
use super::way::{End, Way};
use crate::error::{Context, Error, Result};
use crate::folder::make_within;
use crate::process::{Process, Said, until_our_end};

/// What redis-benchmark is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(super) clients: u32,
    /// Requests in flight on each connection.
    pub(super) pipeline: u32,
}

/// A redis-server; each run is a redis-benchmark of its own.
pub(super) struct Redis<'a> {
    place: &'a Place,
    way: Way,
    load: Load,
    _server: Process,
    port: u16,
    trace: Trace,
    requests: u32,
    run: Duration,
}

impl<'a> Redis<'a> {
    pub(super) fn start(place: &'a Place, load: Load, way: Way) -> Result<Self> {
        let trace = place.trace()?;
        let mut attempts = 0;
        let (server, port) = loop {
            attempts += 1;
            let port = free_port()?;
            match serve(place, way, &trace, port) {
                Ok(server) => break (server, port),
                // Somebody else may have taken the port meanwhile.
                Err(error) if attempts == ATTEMPTS => return Err(error),
                Err(_) => {}
            }
        };
        Ok(Self {
            place,
            way,
            load,
            _server: server,
            port,
            trace,
            requests: REQUESTS_FIRST,
            run: Duration::ZERO,
        })
    }

    /// Requests per second.
    fn measure(&self) -> Result<f64> {
        let mut command = until_our_end(Path::new("redis-benchmark"), Signal::TERM);
        match self.way {
            Way::Unix => command.arg("-s").arg(socket(&self.trace)),
            _ => command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]),
        };
        command
            .args(["-t", "get", "--csv"])
            .args(["-c", &self.load.clients.to_string()])
            .args(["-P", &self.load.pipeline.to_string()])
            .args(["-n", &self.requests.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut client =
            self.place
                .start(&mut command, End::Client, self.way, Cpus::Own, &self.trace)?;
        let mut text = String::new();
        if let Some(stdout) = client.stdout() {
            Said::new(stdout, SILENCE_MAX)?
                .read_to_string(&mut text)
                .context("redis-benchmark's output")?;
        }
        let status = client.wait()?;
        match requests_per_s(&text) {
            Some(rate) if status.success() => Ok(rate),
            _ => Err(Error::Protocol {
                from: "redis-benchmark",
                what: format!("{status}, {text:?}"),
            }),
        }
    }
}

impl Contestant for Redis<'_> {
    fn fit(&mut self, budget: Budget) -> Result<()> {
        self.run = budget.run;
        loop {
            let rate = self.measure()?;
            let wanted = (rate * self.run.as_secs_f64()).clamp(1.0, f64::from(REQUESTS_MAX)) as u32;
            if self.requests >= wanted / 4 {
                self.requests = wanted;
                return Ok(());
            }
            self.requests = wanted.min(self.requests.saturating_mul(16));
        }
    }

    fn run(&mut self) -> Result<f64> {
        Ok(1e9 / self.measure()?)
    }

    fn upgrades(&self) -> usize {
        self.trace.upgrades()
    }
}

fn serve(place: &Place, way: Way, trace: &Trace, port: u16) -> Result<Process> {
    let folder = place.folder().join("redis");
    make_within(&folder)?;
    let said = Log::new(trace.beside("said"))?;
    let mut command = until_our_end(Path::new("redis-server"), Signal::TERM);
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(said.end()?)
        .stderr(said.end()?);
    if way == Way::Unix {
        command.arg("--unixsocket").arg(socket(trace));
    }
    let mut server = place.start(&mut command, End::Server, way, Cpus::Own, trace)?;
    // Who listens at that port may be somebody else.
    let ready = || said.has("Ready to accept connections");
    match place.wait_until(&mut server, ready) {
        Ok(()) => Ok(server),
        Err(error) => Err(said.blame(error)),
    }
}

/// Where it listens besides.
fn socket(trace: &Trace) -> PathBuf {
    trace.beside("socket")
}

/// From a line such as `"GET","18123.45","0.044",…`. Infinite if it took less than a millisecond.
fn requests_per_s(csv: &str) -> Option<f64> {
    let line = csv
        .lines()
        .find_map(|line| line.strip_prefix("\"GET\",\""))?;
    let rate: f64 = line.split('"').next()?.parse().ok()?;
    (rate > 0.0).then_some(rate)
}

const ATTEMPTS: u32 = 5;
const REQUESTS_FIRST: u32 = 1_000;
const REQUESTS_MAX: u32 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_old_and_new_output() {
        let new = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"18123.45\",\"0.044\"\n";
        assert_eq!(requests_per_s(new), Some(18123.45));
        assert_eq!(requests_per_s("\"GET\",\"9000.00\"\n"), Some(9000.0));
        assert_eq!(requests_per_s("\"GET\",\"inf\"\n"), Some(f64::INFINITY));
        for other in ["", "\"GET\",\"", "\"GET\",\"nan\"", "\"SET\",\"1.0\""] {
            assert_eq!(requests_per_s(other), None, "{other:?}");
        }
    }
}
