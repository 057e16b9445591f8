//! How long connections take that end soon, by how much they exchange: a pool without keep-alive, a sender of mail, FTP with many files.

use super::line::{Kind, Line, Point};
use super::pair::{Method, Pair, Service};
use super::place::{Cpus, Place};
use super::registry::{Extent, Row};
use super::report::{Figures, Measured};
use super::session::{Budget, Clock, Contestant, in_turn};
use super::unit::Unit;
use super::way::Way;
use crate::error::Result;

/// By messages there and back, and by bytes in one piece.
pub(super) fn lines(row: Row, extent: Extent) -> Vec<Line> {
    let (trips, received): (&[usize], &[usize]) = match extent {
        Extent::Quick => (&[1, 8, 64], &[16 << 10, 256 << 10, 4 << 20]),
        Extent::Whole => (
            &[1, 2, 4, 8, 16, 32, 64, 128, 256],
            &[16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20],
        ),
    };
    let line = |title: String, service, point| {
        let mut line = Line::new(row, title, Unit::Microseconds, Kind::Short(service));
        line.point = Some(point);
        line
    };
    let trips = trips.iter().map(|&trips| {
        let times = match trips {
            1 => "once".to_owned(),
            _ => format!("{trips} times"),
        };
        let title = format!("64 B there and back, {times}");
        line(
            title,
            Service { trips, ..MESSAGES },
            Point::RoundTrips(trips),
        )
    });
    let received = received.iter().map(|&size| {
        let size_told = match size >> 20 {
            0 => format!("{} kB", size >> 10),
            megabytes => format!("{megabytes} MB"),
        };
        let title = format!("{size_told} after a request");
        line(title, Service { size, ..FILE }, Point::Received(size))
    });
    trips.chain(received).collect()
}

/// The mean of each run. Which part left TCP is counted with a pair that is not timed.
pub(super) fn measure(
    place: &Place,
    line: &Line,
    service: Service,
    budget: Budget,
    clock: &Clock<'_>,
) -> Result<Vec<Measured>> {
    let mut pairs = Vec::new();
    for &way in &line.ways {
        let start = || -> Result<Pair> {
            let trace = place.no_trace()?;
            let mut pair =
                Pair::start_noting(place, service, way, Cpus::Own, Method::Whole, trace)?;
            pair.warm_up(LEARNING)?;
            pair.fit(budget)?;
            Ok(pair)
        };
        pairs.push(start().map_err(way.blamed())?);
        clock.started();
    }
    let runs = in_turn(&mut pairs, clock, |pair, _| pair.run())?;
    drop(pairs);

    let mut figures = Vec::new();
    for (&way, runs) in line.ways.iter().zip(runs) {
        let left = match way {
            Way::Sovia => Some(left_tcp(place, service).map_err(way.blamed())?),
            _ => None,
        };
        figures.push(Figures {
            way,
            runs: runs.into_iter().map(|ns| ns / 1e3).collect(),
            upgraded: left.is_some_and(|left| left > 0),
            left_tcp: left.map(|left| [left, COUNTED as usize]),
        });
    }
    Ok(vec![Measured::new(
        line,
        &line.title,
        line.unit,
        line.aim,
        figures,
    )])
}

/// How many connections leave TCP, once the library has seen as many as before those that are timed.
fn left_tcp(place: &Place, service: Service) -> Result<usize> {
    let mut pair = Pair::start(place, service, Way::Sovia, Cpus::Own, Method::Whole)?;
    pair.warm_up(LEARNING)?;
    let before = pair.upgrades();
    pair.warm_up(COUNTED)?;
    // The last server's line may be on its way, both times.
    let ends = pair.upgrades().saturating_sub(before);
    Ok(ends.div_ceil(2).min(COUNTED as usize))
}

const MESSAGES: Service = Service::of("echo-server", "short-client", 64);
const FILE: Service = Service::of("fetch-server", "fetch-client", 0);
/// Connections that are not timed: what `libsovia.so` does with one may depend on how long those before it lasted.
const LEARNING: u32 = 64;
const COUNTED: u32 = 64;
