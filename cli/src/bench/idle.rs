//! What connections cost that nobody uses.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::aim::Aim;
use super::line::{EPOLL, Line};
use super::many::{KILOBYTES_MAX, check_limit, left_tcp};
use super::pair::{Method, Pair, Service};
use super::place::{Cpus, Place};
use super::report::{Figures, Measured};
use super::session::{Budget, Clock, Contestant, in_turn};
use super::unit::Unit;
use crate::error::{Error, Result};

/// For each way a pair without idle connections, and one with them.
pub(super) fn measure(
    place: &Place,
    line: &Line,
    connections: usize,
    budget: Budget,
    clock: &Clock<'_>,
) -> Result<Vec<Measured>> {
    check_limit(connections)?;
    let mut pairs = Vec::new();
    for &way in &line.ways {
        for idle in [0, connections] {
            let service = Service { idle, ..EPOLL };
            let mut pair = Pair::start(place, service, way, Cpus::Own, Method::Median)
                .map_err(way.blamed())?;
            pair.fit(budget).map_err(way.blamed())?;
            clock.started();
            pairs.push(pair);
        }
    }
    let runs = in_turn(&mut pairs, clock, |pair, _| {
        Ok(Round {
            ns: pair.run()?,
            memory_kb: memory_kb(pair)?,
            busy_percent: busy_percent(pair)?,
        })
    })?;

    let mut lines = [(); 4].map(|()| Vec::new());
    for ((&way, pairs), rounds) in line.ways.iter().zip(pairs.chunks(2)).zip(runs.chunks(2)) {
        let ([without, with], [rounds_without, rounds_with]) = (pairs, rounds) else {
            continue;
        };
        let [alone, beside] =
            [(without, 1), (with, 1 + connections)].map(|(pair, all)| left_tcp(pair, all));
        let left = [alone, beside, beside, beside];
        let micros = |rounds: &[Round]| rounds.iter().map(|round| round.ns / 1e3).collect();
        let both = rounds_with.iter().zip(rounds_without);
        let more = both.map(|(with, without)| with.memory_kb - without.memory_kb);
        let series = [
            micros(rounds_without),
            micros(rounds_with),
            more.map(|more| more / connections as f64).collect(),
            rounds_with.iter().map(|round| round.busy_percent).collect(),
        ];
        for ((figures, runs), left) in lines.iter_mut().zip(series).zip(left) {
            figures.push(Figures {
                way,
                runs,
                upgraded: left[0] > 0,
                left_tcp: Some(left),
            });
        }
    }
    let titles = [
        (
            "64 B there and back, epoll, alone".to_owned(),
            line.unit,
            line.aim,
        ),
        (
            format!("the same beside {connections} idle connections"),
            line.unit,
            line.aim,
        ),
        (
            "memory of an idle connection, both ends".to_owned(),
            Unit::Kilobytes,
            Aim::Beyond(KILOBYTES_MAX),
        ),
        (
            format!("CPU time of {connections} idle connections"),
            Unit::Percent,
            Aim::Beyond(PERCENT_MAX),
        ),
    ];
    let measured = titles.into_iter().zip(lines);
    Ok(measured
        .map(|((title, unit, aim), figures)| Measured::new(line, &title, unit, aim, figures))
        .collect())
}

/// What is seen of a pair in one round.
struct Round {
    ns: f64,
    memory_kb: f64,
    busy_percent: f64,
}

/// Of both processes; what they share counts once.
pub(super) fn memory_kb(pair: &Pair) -> Result<f64> {
    let mut kilobytes = 0.0;
    for id in pair.ids() {
        let text = read(format!("/proc/{id}/smaps_rollup"))?;
        let field = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let field = field.and_then(|field| field.split_whitespace().next());
        kilobytes += field
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(f64::NAN);
    }
    Ok(kilobytes)
}

/// Of one CPU, both processes together, while nobody wants anything of them.
fn busy_percent(pair: &Pair) -> Result<f64> {
    let start = Instant::now();
    let before = busy(pair)?;
    thread::sleep(IDLE);
    let busy = busy(pair)?.saturating_sub(before);
    Ok(100.0 * busy.as_secs_f64() / start.elapsed().as_secs_f64())
}

/// Time on a CPU so far.
fn busy(pair: &Pair) -> Result<Duration> {
    let mut ns = 0;
    for id in pair.ids() {
        let tasks = fs::read_dir(format!("/proc/{id}/task"));
        for task in tasks.map_err(unreadable(format!("/proc/{id}/task")))? {
            let Ok(task) = task else { continue };
            let text = read(task.path().join("schedstat").display().to_string())?;
            let first = text.split_whitespace().next();
            ns += first
                .and_then(|first| first.parse::<u64>().ok())
                .unwrap_or_default();
        }
    }
    Ok(Duration::from_nanos(ns))
}

fn read(path: String) -> Result<String> {
    fs::read_to_string(&path).map_err(unreadable(path))
}

fn unreadable(path: String) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::File { path, source }
}

/// In each round.
const IDLE: Duration = Duration::from_millis(100);
/// What is printed as nothing.
const PERCENT_MAX: f64 = 0.05;
