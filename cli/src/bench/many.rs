//! Connections by the thousands, all of them used.

use super::aim::Aim;
use super::idle::memory_kb;
use super::line::Line;
use super::pair::{Method, Pair, Service};
use super::place::{Cpus, Place};
use super::report::{Figures, Measured};
use super::session::{Budget, Clock, Contestant, in_turn};
use super::unit::Unit;
use crate::error::{Error, Result};

/// For each way a pair with few connections and one with many.
pub(super) fn measure(
    place: &Place,
    line: &Line,
    [few, many]: [usize; 2],
    budget: Budget,
    clock: &Clock<'_>,
) -> Result<Vec<Measured>> {
    check_limit(many)?;
    let mut pairs = Vec::new();
    for &way in &line.ways {
        for connections in [few, many] {
            let service = Service {
                idle: connections,
                ..CROWD
            };
            let mut pair =
                Pair::start(place, service, way, Cpus::Own, Method::Whole).map_err(way.blamed())?;
            pair.fit(budget).map_err(way.blamed())?;
            clock.started();
            pairs.push(pair);
        }
    }
    let rounds = in_turn(&mut pairs, clock, |pair, _| {
        Ok((pair.run()?, memory_kb(pair)?))
    })?;
    let (runs, kilobytes): (Vec<Vec<f64>>, Vec<Vec<f64>>) = rounds
        .into_iter()
        .map(|rounds| rounds.into_iter().unzip())
        .unzip();

    let mut rates = [Vec::new(), Vec::new()];
    let mut parts = Vec::new();
    let mut memory = Vec::new();
    let of_ways = line.ways.iter().zip(pairs.chunks(2)).zip(runs.chunks(2));
    for (((&way, pairs), runs), kilobytes) in of_ways.zip(kilobytes.chunks(2)) {
        let ([of_few, of_many], [few_ns, many_ns]) = (pairs, runs) else {
            continue;
        };
        let [few_kb, many_kb] = kilobytes else {
            continue;
        };
        let figures_of = |pair: &Pair, connections, runs| Figures {
            way,
            runs,
            upgraded: pair.upgrades() > 0,
            left_tcp: Some(left_tcp(pair, connections)),
        };
        let of = [(of_few, few, few_ns), (of_many, many, many_ns)];
        for (rates, (pair, connections, ns)) in rates.iter_mut().zip(of) {
            let runs = ns.iter().map(|ns| 1e9 / ns).collect();
            rates.push(figures_of(pair, connections, runs));
        }
        let figures = |runs| figures_of(of_many, many, runs);
        let quotients = few_ns.iter().zip(many_ns);
        parts.push(figures(quotients.map(|(few, many)| few / many).collect()));
        let differences = many_kb
            .iter()
            .zip(few_kb)
            .map(|(of_many, of_few)| of_many - of_few);
        let each = differences.map(|more| more / (many - few) as f64);
        memory.push(figures(each.collect()));
    }
    let gains = beside_the_first(&parts);
    let [of_few, of_many] = rates;
    let title = |connections| format!("64 B there and back, {connections} connections in turn");
    Ok(vec![
        Measured::new(line, &title(few), line.unit, line.aim, of_few),
        Measured::new(line, &title(many), line.unit, line.aim, of_many),
        Measured::new(
            line,
            &format!("the speed with {many}, of that with {few}"),
            Unit::Share,
            AS_FAST,
            parts,
        ),
        Measured::new(
            line,
            &format!("the gain with {many}, of that with {few}"),
            Unit::Share,
            AS_FAST,
            gains,
        ),
        Measured::new(
            line,
            &format!("memory of each of {many} connections, both ends"),
            Unit::Kilobytes,
            Aim::Beyond(KILOBYTES_MAX),
            memory,
        ),
    ])
}

/// What TCP takes. What more a connection needs that leaves it is seen by how many do.
pub(super) fn check_limit(connections: usize) -> Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let needed = (connections + SPARE) as u64;
    if limit.is_some_and(|limit| limit < needed) {
        return Err(Error::Misuse(format!(
            "{connections} connections need a hard limit on open files of {needed} (ulimit -Hn)"
        )));
    }
    Ok(())
}

/// How many of them left TCP, with both their ends.
pub(super) fn left_tcp(pair: &Pair, connections: usize) -> [usize; 2] {
    [(pair.upgrades() / 2).min(connections), connections]
}

/// Each round's figures over those that the first way, which is TCP, has in it.
fn beside_the_first(figures: &[Figures]) -> Vec<Figures> {
    let Some(first) = figures.first() else {
        return Vec::new();
    };
    let beside = |figures: &Figures| {
        let rounds = figures.runs.iter().zip(&first.runs);
        Figures {
            runs: rounds.map(|(own, first)| own / first).collect(),
            ..figures.clone()
        }
    };
    figures.iter().map(beside).collect()
}

const CROWD: Service = Service::of("echo-epoll-server", "crowd-client", 64);
/// Descriptors that a process has besides.
const SPARE: usize = 64;
/// "Throughput as with 100", within what two runs of the same differ by: by itself, and as all ratios are meant, over TCP in the same round.
const AS_FAST: Aim = Aim::Figure {
    near: 0.95,
    far: 0.95,
};
pub(super) const KILOBYTES_MAX: f64 = 16.0;
