use std::time::Duration;

use indicatif::ProgressBar;
use sys::host::{self, Machine};

use super::crowd::Crowd;
use super::idle;
use super::line::{Hogged, Kind, Line};
use super::pair::{Method, Pair};
use super::place::{Cpus, Ends, Place};
use super::redis::{self, Redis};
use super::report::{Figures, Measured, Report};
use super::unit::Unit;
use crate::error::{Context, Result};
use crate::machine::{self, Conditions};
use crate::netpipe;

/// One way of doing what others do in other ways, in turn with them.
pub(super) trait Contestant {
    /// Warms up, and finds out how much makes a run.
    fn fit(&mut self, budget: Budget) -> Result<()>;

    /// Nanoseconds a round (a request, a connection).
    fn run(&mut self) -> Result<f64>;

    /// How many ends of connections have left TCP.
    fn upgrades(&self) -> usize;
}

/// Time for one run, and for one block of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) run: Duration,
    pub(super) block: Duration,
}

/// Measures lines, one after the other.
pub(crate) struct Session {
    place: Place,
    before: Machine,
    quick: bool,
}

impl Session {
    pub(crate) fn new(quick: bool) -> Result<Self> {
        Ok(Self {
            before: machine::measure()?,
            place: Place::new()?,
            quick,
        })
    }

    pub(crate) fn measure(self, mut lines: Vec<Line>) -> Result<Report> {
        let mut notes = Vec::new();
        let of_redis = |kind| matches!(kind, Kind::Redis(_) | Kind::Beside(Hogged::Redis(_)));
        if !redis::is_installed() && lines.iter().any(|line| of_redis(line.kind)) {
            lines.retain(|line| !of_redis(line.kind));
            notes.push("redis-server and redis-benchmark are not installed".to_owned());
        }
        let ways: usize = lines.iter().map(|line| line.ends.len()).sum();
        let progress = netpipe::progress(ways * RUNS);
        let mut measured = Vec::new();
        let mut failures = Vec::new();
        for line in &lines {
            progress.set_message(format!("{} · ", line.title));
            let before = cores()?;
            let mut figures = match self.measure_line(line, &progress) {
                Ok(figures) => figures,
                // The others may still be of use.
                Err(error) => {
                    failures.push(format!("{}: {error}", line.title));
                    continue;
                }
            };
            let cores = before.zip(cores()?);
            for figure in &mut figures {
                figure.cores_ns = cores.map(|(before, after)| [before, after]);
            }
            measured.extend(figures);
        }
        progress.finish_and_clear();
        let Self { before, place, .. } = self;
        drop(place);
        Ok(Report {
            quick: self.quick,
            conditions: Conditions::since(before)?,
            lines: measured,
            notes,
            failures,
        })
    }

    fn measure_line(&self, line: &Line, progress: &ProgressBar) -> Result<Vec<Measured>> {
        match line.kind {
            Kind::Plain(service, method) => self.contest(line, progress, |ends| {
                Ok(Box::new(Pair::start(
                    &self.place,
                    service,
                    ends,
                    Cpus::Own,
                    method,
                )?))
            }),
            Kind::Redis(load) => self.contest(line, progress, |ends| {
                Ok(Box::new(Redis::start(&self.place, load, ends)?))
            }),
            Kind::Beside(hogged) => {
                let _hogs = self.place.start_hogs()?;
                self.contest(line, progress, |ends| {
                    Ok(match hogged {
                        Hogged::Redis(load) => Box::new(Redis::start(&self.place, load, ends)?),
                        Hogged::Plain(service) => Box::new(Pair::start(
                            &self.place,
                            service,
                            ends,
                            Cpus::Own,
                            Method::Whole,
                        )?),
                    })
                })
            }
            Kind::Crowd { pairs } => self.crowds(line, pairs, progress),
            Kind::Idle { connections } => {
                idle::measure(&self.place, line, connections, self.budget(line), progress)
            }
        }
    }

    fn contest<'a>(
        &self,
        line: &Line,
        progress: &ProgressBar,
        start: impl Fn(Ends) -> Result<Box<dyn Contestant + 'a>>,
    ) -> Result<Vec<Measured>> {
        let mut contestants = Vec::new();
        for &ends in &line.ends {
            let mut contestant = start(ends).map_err(ends.blamed())?;
            let fitted = contestant.fit(self.budget(line));
            fitted.map_err(ends.blamed())?;
            contestants.push((ends, contestant));
        }
        let runs = in_turn(&mut contestants, progress, |(ends, contestant)| {
            contestant.run().map_err(ends.blamed())
        })?;
        let figures = contestants.iter().zip(runs);
        let figures = figures.map(|((ends, contestant), runs)| Figures {
            ends: *ends,
            runs: runs.into_iter().map(|ns| convert(line, ns)).collect(),
            upgraded: contestant.upgrades() > 0,
        });
        Ok(vec![Measured::new(
            line,
            &line.title,
            line.unit,
            figures.collect(),
        )])
    }

    fn crowds(&self, line: &Line, pairs: usize, progress: &ProgressBar) -> Result<Vec<Measured>> {
        let time = self.budget(line).run;
        let mut crowds = Vec::new();
        for &ends in &line.ends {
            let mut crowd = Crowd::start(&self.place, pairs, ends).map_err(ends.blamed())?;
            crowd.run(time).map_err(ends.blamed())?;
            crowds.push((ends, crowd));
        }
        let runs = in_turn(&mut crowds, progress, |(ends, crowd)| {
            crowd.run(time).map_err(ends.blamed())
        })?;
        let measured = [(0, "all together"), (1, "the slowest")].map(|(at, which)| {
            let figures = crowds.iter().zip(&runs);
            let figures = figures.map(|((ends, crowd), runs)| Figures {
                ends: *ends,
                runs: runs.iter().map(|rates| rates[at]).collect(),
                upgraded: crowd.upgrades() > 0,
            });
            let title = format!("{}: {which}", line.title);
            Measured::new(line, &title, line.unit, figures.collect())
        });
        Ok(measured.into())
    }

    fn budget(&self, line: &Line) -> Budget {
        let [run_ms, block_us] = match line.kind {
            // One lost slice is some milliseconds, and none may be left out.
            Kind::Beside(_) | Kind::Crowd { .. } => [240, 0],
            Kind::Redis(_) => [160, 0],
            Kind::Plain(..) | Kind::Idle { .. } => [40, 1_000],
        };
        let part = if self.quick { 4 } else { 1 };
        Budget {
            run: Duration::from_millis(run_ms / part),
            block: Duration::from_micros(block_us / part),
        }
    }
}

/// Each once, then each once more, and so on: a machine that changes its mind for some seconds does so for all alike.
pub(super) fn in_turn<C, T>(
    contestants: &mut [C],
    progress: &ProgressBar,
    mut run: impl FnMut(&mut C) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut runs: Vec<Vec<T>> = contestants.iter().map(|_| Vec::new()).collect();
    for _ in 0..RUNS {
        for (contestant, runs) in contestants.iter_mut().zip(&mut runs) {
            runs.push(run(contestant)?);
            progress.inc(1);
        }
    }
    Ok(runs)
}

fn convert(line: &Line, ns: f64) -> f64 {
    match line.unit {
        Unit::GigabytesPerSecond => line.kind.bytes() as f64 / ns,
        Unit::PerSecond => 1e9 / ns,
        Unit::Kilobytes | Unit::Microseconds | Unit::Percent => ns / 1e3,
    }
}

/// How far apart the two CPUs are now; a virtual machine may move them.
fn cores() -> Result<Option<f64>> {
    let handoff = host::handoff().context("cache-line hand-off")?;
    Ok(handoff.map(|handoff| handoff.median_ns))
}

const RUNS: usize = 9;
