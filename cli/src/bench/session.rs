use std::time::Duration;

use indicatif::ProgressBar;
use sys::host::{self, Machine};

use super::aim::Aim;
use super::crowd::Crowd;
use super::line::{Hogged, Kind, Line};
use super::pair::{Method, Pair};
use super::peer::{self, Peer};
use super::place::{Cpus, Place};
use super::program::{self, Real};
use super::redis::Redis;
use super::registry::Extent;
use super::report::{Figures, Measured, Report};
use super::unit::Unit;
use super::way::Way;
use super::{idle, many, short, watched};
use crate::error::{Context, Result};
use crate::machine::{self, Conditions};
use crate::netpipe;
use crate::process::unless_told_to_end;

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
    extent: Extent,
}

impl Session {
    pub(super) fn new(extent: Extent) -> Result<Self> {
        Ok(Self {
            before: machine::measure()?,
            place: Place::new()?,
            extent,
        })
    }

    pub(crate) fn measure(self, lines: Vec<Line>) -> Result<Report> {
        let (lines, mut notes) = installed(lines);
        let total: Duration = lines.iter().map(|line| self.cost(line)).sum();
        let progress = netpipe::progress(total.as_millis() as usize);
        let mut measured = Vec::new();
        let mut failures = Vec::new();
        let mut expected = Duration::ZERO;
        for line in &lines {
            progress.set_message(format!("{} · ", line.title));
            let before = cores()?;
            match self.measure_line(line, &progress, &mut notes) {
                Ok(mut figures) => {
                    let cores = before.zip(cores()?).map(|(before, after)| [before, after]);
                    for figure in &mut figures {
                        figure.place(cores);
                    }
                    measured.extend(figures);
                }
                // The others may still be of use.
                Err(error) => {
                    unless_told_to_end();
                    failures.push(format!("{}: {error}", line.title));
                }
            }
            expected += self.cost(line);
            progress.set_position(expected.as_millis() as u64);
        }
        progress.finish_and_clear();
        let quick = self.extent == Extent::Quick;
        let Self { before, place, .. } = self;
        drop(place);
        Ok(Report {
            quick,
            conditions: Conditions::since(before)?,
            lines: measured,
            notes,
            failures,
        })
    }

    fn measure_line(
        &self,
        line: &Line,
        progress: &ProgressBar,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Measured>> {
        let budget = self.budget(line);
        let clock = Clock {
            progress,
            run: budget.run,
            rounds: self.rounds(line),
        };
        match line.kind {
            Kind::Plain(service, method) => self.contest(line, &clock, notes, |way| {
                Ok(match line.of_peer(way) {
                    Some(peer) => Box::new(peer::Contest::new(&self.place, peer)),
                    None => Box::new(Pair::start(&self.place, service, way, Cpus::Own, method)?),
                })
            }),
            Kind::Redis(load) => self.contest(line, &clock, notes, |way| {
                Ok(Box::new(Redis::start(&self.place, load, way)?))
            }),
            Kind::Program(app) => self.contest(line, &clock, notes, |way| {
                Ok(Box::new(Real::start(&self.place, app, way)?))
            }),
            Kind::Beside(company, hogged) => {
                let _others = self.place.start_company(company)?;
                self.contest(line, &clock, notes, |way| {
                    Ok(match hogged {
                        Hogged::Redis(load) => Box::new(Redis::start(&self.place, load, way)?),
                        Hogged::Plain(service) => Box::new(Pair::start(
                            &self.place,
                            service,
                            way,
                            Cpus::Own,
                            Method::Whole,
                        )?),
                    })
                })
            }
            Kind::Crowd { pairs } => self.crowds(line, pairs, &clock),
            Kind::Idle { connections } => {
                idle::measure(&self.place, line, connections, budget, &clock)
            }
            Kind::Many { few, many } => {
                many::measure(&self.place, line, [few, many], budget, &clock)
            }
            Kind::Short(service) => short::measure(&self.place, line, service, budget, &clock),
            Kind::Watched => watched::measure(&self.place, line, budget, &clock),
        }
    }

    fn contest<'a>(
        &self,
        line: &Line,
        clock: &Clock<'_>,
        notes: &mut Vec<String>,
        start: impl Fn(Way) -> Result<Box<dyn Contestant + 'a>>,
    ) -> Result<Vec<Measured>> {
        let mut contestants = Vec::new();
        for &way in &line.ways {
            let started = start(way).and_then(|mut contestant| {
                contestant.fit(self.budget(line))?;
                Ok(contestant)
            });
            clock.started();
            match started {
                Ok(contestant) => contestants.push((way, contestant)),
                // Another project's program that cannot run here takes nothing from our figures, nor does a path that is too long for a socket.
                Err(error) if way.is_peer() || way == Way::Unix => {
                    notes.push(format!("{}: {}", line.title, way.blamed()(error)));
                }
                Err(error) => return Err(way.blamed()(error)),
            }
        }
        let runs = in_turn(&mut contestants, clock, |(way, contestant), round| {
            // Starting them takes longer than what they measure.
            if way.is_peer() && round >= self.peer_rounds() {
                return Ok(None);
            }
            contestant.run().map(Some).map_err(way.blamed())
        })?;
        let figures = contestants.iter().zip(runs);
        let figures = figures.map(|((way, contestant), runs)| Figures {
            way: *way,
            runs: runs
                .into_iter()
                .flatten()
                .map(|ns| convert(line, ns))
                .collect(),
            upgraded: contestant.upgrades() > 0,
            left_tcp: None,
        });
        let figures = figures.collect();
        Ok(vec![Measured::new(
            line,
            &line.title,
            line.unit,
            line.aim,
            figures,
        )])
    }

    fn crowds(&self, line: &Line, pairs: usize, clock: &Clock<'_>) -> Result<Vec<Measured>> {
        let time = self.budget(line).run;
        let mut crowds = Vec::new();
        for &way in &line.ways {
            let mut crowd = Crowd::start(&self.place, pairs, way).map_err(way.blamed())?;
            crowd.run(time).map_err(way.blamed())?;
            clock.started();
            crowds.push((way, crowd));
        }
        let runs = in_turn(&mut crowds, clock, |(way, crowd), _| {
            crowd.run(time).map_err(way.blamed())
        })?;
        let parts = [
            (0, "all together", line.aim),
            // Nobody is to pay for the others' gain.
            (1, "the slowest", Aim::Gain(1.0)),
        ];
        let measured = parts.map(|(at, which, aim)| {
            let figures = crowds.iter().zip(&runs);
            let figures = figures.map(|((way, crowd), runs)| Figures {
                way: *way,
                runs: runs.iter().map(|rates| rates[at]).collect(),
                upgraded: crowd.upgrades() > 0,
                left_tcp: None,
            });
            let title = format!("{}: {which}", line.title);
            Measured::new(line, &title, line.unit, aim, figures.collect())
        });
        Ok(measured.into())
    }

    fn budget(&self, line: &Line) -> Budget {
        // redis-benchmark counts in milliseconds, so a run must have many, and 50 connections take some 20 ms to come to shared memory.
        if let Kind::Redis(_) | Kind::Beside(_, Hogged::Redis(_)) = line.kind {
            return Budget {
                run: REDIS,
                block: Duration::ZERO,
            };
        }
        let [run_ms, block_us] = match line.kind {
            // One lost slice is some milliseconds, and none may be left out.
            Kind::Beside(..) | Kind::Crowd { .. } | Kind::Many { .. } => [240, 0],
            // Some connections may take a way that others do not, and all count.
            Kind::Short(_) => [48, 0],
            Kind::Program(_) => [2_000, 0],
            // Somebody looks once in a second.
            Kind::Watched => [1_000, 10_000],
            Kind::Plain(..) | Kind::Redis(_) | Kind::Idle { .. } => [40, 1_000],
        };
        let part = if self.extent == Extent::Quick { 4 } else { 1 };
        Budget {
            run: Duration::from_millis(run_ms / part),
            block: Duration::from_micros(block_us / part),
        }
    }

    fn rounds(&self, line: &Line) -> usize {
        match (self.extent, line.kind) {
            (Extent::Quick, Kind::Program(_)) => 3,
            (Extent::Quick, Kind::Short(_)) => 9,
            (Extent::Quick, _) => 5,
            // It asks for one in a hundred.
            (Extent::Whole, Kind::Watched) => 31,
            // Means of all that came in between: so many that few are disturbed.
            (Extent::Whole, Kind::Short(_)) => 21,
            (Extent::Whole, _) => 9,
        }
    }

    fn peer_rounds(&self) -> usize {
        match self.extent {
            Extent::Quick => 1,
            Extent::Whole => 3,
        }
    }

    /// About how long it will take; only what is left of the time is made of it.
    fn cost(&self, line: &Line) -> Duration {
        let (times, start_ms) = match line.kind {
            Kind::Program(_) => (1, 4_000),
            Kind::Many { many, .. } => (2, many as u64),
            Kind::Idle { .. } => (2, 1_500),
            Kind::Short(_) => (1, 400),
            Kind::Watched => (2, 100),
            Kind::Plain(..) | Kind::Redis(_) | Kind::Beside(..) | Kind::Crowd { .. } => (1, 150),
        };
        let run = match line.kind {
            // In whole seconds.
            Kind::Program(_) => self.budget(line).run.max(Duration::from_secs(1)),
            _ => self.budget(line).run,
        };
        let rounds = self.rounds(line) as u32;
        let ways = line.ways.len() as u32;
        (run * rounds + Duration::from_millis(start_ms)) * ways * times
    }
}

/// What there is left to do, as somebody who waits sees it.
pub(super) struct Clock<'a> {
    progress: &'a ProgressBar,
    run: Duration,
    rounds: usize,
}

impl Clock<'_> {
    /// Something has been started and warmed up.
    pub(super) fn started(&self) {
        self.progress.inc(START.as_millis() as u64);
    }

    fn ran(&self) {
        self.progress.inc(self.run.as_millis() as u64);
    }
}

/// Each once, then each once more, and so on: a machine that changes its mind for some seconds does so for all alike.
pub(super) fn in_turn<C, T>(
    contestants: &mut [C],
    clock: &Clock<'_>,
    mut run: impl FnMut(&mut C, usize) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut runs: Vec<Vec<T>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 0..clock.rounds {
        for (contestant, runs) in contestants.iter_mut().zip(&mut runs) {
            runs.push(run(contestant, round)?);
            clock.ran();
        }
    }
    Ok(runs)
}

/// What can be measured here, and what is missing for the rest.
fn installed(lines: Vec<Line>) -> (Vec<Line>, Vec<String>) {
    let mut notes = Vec::new();
    let mut note = |what: &str, missing: String| {
        let note = format!("{what}: left out, {missing}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    let mut kept = Vec::new();
    for mut line in lines {
        line.ways.retain(|&way| {
            let missing = Peer::need(way).and_then(|need| program::missing(&[need]));
            missing.map(|missing| note(way.title(), missing)).is_none()
        });
        match program::missing(line.needs()).or_else(|| line.obstacle()) {
            Some(missing) => note(&line.title, missing),
            None => kept.push(line),
        }
    }
    (kept, notes)
}

fn convert(line: &Line, ns: f64) -> f64 {
    match line.unit {
        Unit::GigabytesPerSecond => line.kind.bytes() as f64 / ns,
        Unit::PerSecond => 1e9 / ns,
        Unit::Kilobytes | Unit::Microseconds | Unit::Percent | Unit::Share => ns / 1e3,
    }
}

/// How far apart the two CPUs are now; a virtual machine may move them.
fn cores() -> Result<Option<f64>> {
    let handoff = host::handoff().context("cache-line hand-off")?;
    Ok(handoff.map(|handoff| handoff.median_ns))
}

const START: Duration = Duration::from_millis(100);
/// However much time there is.
const REDIS: Duration = Duration::from_millis(250);
