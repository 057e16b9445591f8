//! What it costs a connection that somebody looks at it.

use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::line::{Line, PINGPONG};
use super::pair::{Method, Pair};
use super::place::{Cpus, Place};
use super::report::{Figures, Measured};
use super::session::{Budget, Clock, Contestant, in_turn};
use super::way::Way;
use crate::error::{Error, Result};
use crate::process::{Process, myself};

/// The same pair with and without, by the median of short blocks, which is what the data path costs, and by the whole time,
/// which includes what `sovia stat` itself takes of a CPU.
pub(super) fn measure(
    place: &Place,
    line: &Line,
    budget: Budget,
    clock: &Clock<'_>,
) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for (method, what) in [
        (Method::Median, "the data path"),
        (Method::Whole, "with the CPU that stat takes"),
    ] {
        let mut pair = Pair::start(place, PINGPONG, Way::Sovia, Cpus::Own, method)?;
        pair.fit(budget)?;
        clock.started();
        let mut ways = line.ways.clone();
        let runs = in_turn(&mut ways, clock, |way, _| {
            let watcher = (*way == Way::Watched).then(Watcher::start);
            let ns = pair.run().map_err(way.blamed())?;
            if let Some(watcher) = watcher {
                watcher.stop()?;
            }
            Ok(ns)
        })?;
        let upgraded = pair.upgrades() > 0;
        let figures = ways.into_iter().zip(runs).map(|(way, runs)| Figures {
            way,
            runs: runs.iter().map(|ns| ns / 1e3).collect(),
            upgraded,
            left_tcp: None,
        });
        let title = format!("{}: {what}", line.title);
        let figures = figures.collect();
        measured.push(Measured::new(line, &title, line.unit, line.aim, figures));
    }
    Ok(measured)
}

/// Runs `sovia stat` at once, and again each second.
struct Watcher {
    thread: JoinHandle<Result<()>>,
    enough: Sender<()>,
}

impl Watcher {
    fn start() -> Self {
        let (enough, asked) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            loop {
                let mut command = myself();
                command
                    .arg("stat")
                    .stdin(Stdio::null())
                    .stdout(Stdio::null());
                let status = Process::start(&mut command)?.wait()?;
                if !status.success() {
                    return Err(Error::Protocol {
                        from: "sovia stat",
                        what: status.to_string(),
                    });
                }
                if asked.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return Ok(());
                }
            }
        });
        Self { thread, enough }
    }

    fn stop(self) -> Result<()> {
        drop(self.enough);
        self.thread.join().unwrap_or(Err(Error::Closed))
    }
}

const PERIOD: Duration = Duration::from_secs(1);
