//! The figures, and their tables.

use serde::Serialize;

use super::end::{BANDWIDTH_BYTES, LATENCY_BYTES};
use super::siw;
use super::way::Way;
use super::words;
use crate::machine::Conditions;
use crate::netpipe::table::{bytes, significant};
use crate::report::Table;
use crate::steps::{self, Figure, What};

/// One way measured once.
pub(super) struct Run {
    pub(super) way: Way,
    pub(super) figures: Vec<Figure>,
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) command: String,
    pub(super) conditions: Conditions,
    pub(super) ways: Vec<Curve>,
    /// Whether siw makes checksums, where it says so.
    pub(super) siw_crc: Option<bool>,
    pub(super) failures: Vec<String>,
}

/// One way, at its best.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    pub(super) way: Way,
    pub(super) figures: Vec<Figure>,
}

impl Report {
    pub(super) fn new(
        runs: &[Run],
        conditions: Conditions,
        command: String,
        failures: Vec<String>,
    ) -> Self {
        let mut ways: Vec<Curve> = Vec::new();
        for run in runs {
            let Some(curve) = ways.iter_mut().find(|curve| curve.way == run.way) else {
                ways.push(Curve {
                    way: run.way,
                    figures: run.figures.clone(),
                });
                continue;
            };
            steps::keep_best(&mut curve.figures, &run.figures);
        }
        Self {
            command,
            conditions,
            siw_crc: ways
                .iter()
                .find(|curve| curve.way == Way::Siw)
                .and_then(|_| siw::requires_crc()),
            ways,
            failures,
        }
    }

    fn ns(&self, way: Way, what: What, bytes: usize) -> Option<f64> {
        let curve = self.ways.iter().find(|curve| curve.way == way)?;
        steps::ns(&curve.figures, what, bytes)
    }

    /// A row a size, a column a way; beside each that is not TCP how it compares with TCP that waits alike: more is better.
    pub(super) fn figure(&self, what: What, is_plain: bool) -> Table {
        let (sizes, unit) = match what {
            What::Latency | What::Call => (LATENCY_BYTES, "one way, µs"),
            What::Bandwidth => (BANDWIDTH_BYTES, "MB/s"),
        };
        let ways = || self.ways.iter().map(|curve| curve.way);
        let ways: Vec<Way> = ways().filter(|way| shown(*way, is_plain)).collect();
        let mut header = vec![unit.to_owned()];
        header.extend(ways.iter().map(|way| way.title().to_owned()));
        let mut table = Table::new(header);
        for size in sizes {
            let cells = ways.iter().map(|&way| {
                let Some(ns) = self.ns(way, what, size) else {
                    return "-".to_owned();
                };
                let figure = significant(what.value(size, ns));
                match self.ns(way.beside(), what, size) {
                    Some(tcp) if way.beside() != way => format!("{figure} ({:.2} ×)", tcp / ns),
                    _ => figure,
                }
            });
            table.row(std::iter::once(bytes(size)).chain(cells));
        }
        table
    }

    /// The paper's beside ours.
    pub(super) fn ratios(&self) -> Table {
        let mut table = Table::new(["", "the paper", "here", "here, as measured"]);
        let mut row = |name: String, paper: &str, here: String, detail: String| {
            table.row([name, paper.to_owned(), here, detail]);
        };
        let us = |way: Way| self.ns(way, What::Latency, 4).map(|ns| ns / 1e3);
        for way in [Way::Asked, Way::AskedSpinning] {
            if let (Some(ours), Some(tcp)) = (us(way), us(way.beside())) {
                let name = format!("4 B, {} / {}", way.title(), way.beside().title());
                let detail = format!("{} against {} µs", significant(ours), significant(tcp));
                let here = format!("{:+.1} %", (ours / tcp - 1.0) * 100.0);
                row(name, words::PLAIN, here, detail);
            }
        }
        for way in [
            Way::Extended,
            Way::ExtendedPlain,
            Way::ExtendedMarkers,
            Way::Stream,
            Way::StreamPlain,
            Way::Crc,
            Way::Plain,
        ] {
            if let (Some(ours), Some(tcp)) = (us(way), us(way.beside())) {
                let name = format!("4 B, {} − {}", way.title(), way.beside().title());
                let detail = format!("{} against {} µs", significant(ours), significant(tcp));
                let here = format!("{:+.2} µs, {:.2} ×", ours - tcp, ours / tcp);
                row(name, words::LATENCY, here, detail);
            }
        }
        // What does the same work.
        let alike = match self.siw_crc {
            Some(true) => Way::Crc,
            Some(false) | None => Way::Plain,
        };
        for (size, words) in [(4, "4 B"), (64, "64 B"), (65536, "64k")] {
            let us = |way| self.ns(way, What::Latency, size).map(|ns| ns / 1e3);
            if let (Some(ours), Some(siw)) = (us(alike), us(Way::Siw)) {
                let name = format!("{words}, {} / Linux siw", alike.title());
                let detail = format!("{} against {} µs", significant(ours), significant(siw));
                row(name, "-", format!("{:.2} ×", ours / siw), detail);
            }
        }
        let speed = |way: Way, size| {
            let ns = self.ns(way, What::Bandwidth, size);
            ns.map(|ns| size as f64 / ns * 1e3)
        };
        for size in [65536, 262_144, 1 << 20] {
            for way in [
                Way::Extended,
                Way::ExtendedPlain,
                Way::ExtendedMarkers,
                Way::Stream,
                Way::StreamPlain,
                Way::Crc,
                Way::Plain,
                Way::CrcMarkers,
                Way::Bare,
                Way::BareMarkers,
            ] {
                if let (Some(ours), Some(tcp)) = (speed(way, size), speed(way.beside(), size)) {
                    let name = format!("{} stream, {} / TCP", bytes(size), way.title());
                    let detail = format!("{} against {} MB/s", significant(ours), significant(tcp));
                    row(
                        name,
                        words::BANDWIDTH,
                        format!("{:.2} ×", ours / tcp),
                        detail,
                    );
                }
            }
        }
        for size in [4096, 65536, 1 << 20] {
            if let (Some(ours), Some(siw)) = (speed(alike, size), speed(Way::Siw, size)) {
                let name = format!("{} stream, {} / Linux siw", bytes(size), alike.title());
                let detail = format!("{} against {} MB/s", significant(ours), significant(siw));
                row(name, "-", format!("{:.2} ×", ours / siw), detail);
            }
        }
        table
    }
}

/// Whether a way is a curve of that figure: TCP is of both.
pub(super) fn shown(way: Way, is_plain: bool) -> bool {
    way.is_tcp() || way.is_under() == is_plain
}
