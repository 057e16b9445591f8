//! The figures, and their tables.

use serde::Serialize;

use super::end::{BANDWIDTH_BYTES, LATENCY_BYTES};
use super::ftp::Transfer;
use super::rpc::Call;
use super::way::Way;
use super::{Figures, words};
use crate::machine::Conditions;
use crate::netpipe::table::{bytes, significant};
use crate::report::Table;
use crate::steps::{self, Figure, What};

/// One way measured once.
pub(super) struct Run {
    pub(super) way: Way,
    pub(super) block: bool,
    pub(super) figures: Vec<Figure>,
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) quick: bool,
    pub(super) conditions: Conditions,
    /// Microseconds to wake a thread on the same CPU.
    pub(super) t_sync_us: Option<f64>,
    pub(super) ways: Vec<Curve>,
    /// Table I, all of them.
    pub(super) transfers: Vec<Transfer>,
    /// Figure 10, the best of each.
    pub(super) calls: Vec<Call>,
    pub(super) failures: Vec<String>,
    pub(super) missing: Vec<String>,
}

/// One way, or one way that blocks.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    pub(super) way: Way,
    pub(super) block: bool,
    pub(super) figures: Vec<Figure>,
}

impl Report {
    pub(super) fn new(all: Figures, conditions: Conditions, quick: bool) -> Self {
        let mut ways: Vec<Curve> = Vec::new();
        for run in &all.runs {
            let known = ways
                .iter_mut()
                .find(|curve| (curve.way, curve.block) == (run.way, run.block));
            let Some(curve) = known else {
                ways.push(Curve {
                    way: run.way,
                    block: run.block,
                    figures: run.figures.clone(),
                });
                continue;
            };
            steps::keep_best(&mut curve.figures, &run.figures);
        }
        let mut calls: Vec<Call> = Vec::new();
        for call in all.calls {
            let of = |known: &Call| (known.by, known.way, known.bytes);
            match calls.iter_mut().find(|known| of(known) == of(&call)) {
                Some(best) => best.ns = best.ns.min(call.ns),
                None => calls.push(call),
            }
        }
        Self {
            quick,
            conditions,
            t_sync_us: all.t_sync_us,
            ways,
            transfers: all.transfers,
            calls,
            failures: all.failures,
            missing: all.missing,
        }
    }

    /// Nanoseconds.
    pub(super) fn ns(&self, way: Way, block: bool, what: What, bytes: usize) -> Option<f64> {
        let curve = self
            .ways
            .iter()
            .find(|curve| (curve.way, curve.block) == (way, block))?;
        steps::ns(&curve.figures, what, bytes)
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = Way> {
        self.ways
            .iter()
            .filter(|curve| !curve.block)
            .map(|curve| curve.way)
    }

    /// A table of one half of Figure 9; a row a size, a column a way.
    pub(super) fn figure(&self, what: What) -> Table {
        let sizes: &[usize] = match what {
            What::Latency | What::Call => &LATENCY_BYTES,
            What::Bandwidth => &BANDWIDTH_BYTES,
        };
        let mut header = vec![match what {
            What::Latency | What::Call => "one way, µs".to_owned(),
            What::Bandwidth => "MB/s".to_owned(),
        }];
        header.extend(self.measured().map(|way| way.title().to_owned()));
        let mut table = Table::new(header);
        for &size in sizes {
            let cells = self.measured().map(|way| {
                let ns = self.ns(way, false, what, size);
                ns.map_or_else(|| "-".to_owned(), |ns| significant(what.value(size, ns)))
            });
            table.row(std::iter::once(bytes(size)).chain(cells));
        }
        table
    }

    /// The paper's ratios beside ours.
    pub(super) fn ratios(&self) -> Table {
        let mut table = Table::new(["", "the paper", "here", "here, as measured"]);
        let peak = 32 << 10;
        let latency = |way, block| self.ns(way, block, What::Latency, 4);
        let speed = |way, block, size| {
            self.ns(way, block, What::Bandwidth, size)
                .map(|ns| size as f64 / ns * 1e3)
        };
        let mut row = |name: &str, paper: Option<f64>, ours: Option<[f64; 2]>, unit: &str| {
            let Some([a, b]) = ours else { return };
            table.row([
                name.to_owned(),
                paper.map_or_else(
                    || "-".to_owned(),
                    |ratio| format!("{} ×", significant(ratio)),
                ),
                format!("{} ×", significant(a / b)),
                format!("{} against {} {unit}", significant(a), significant(b)),
            ]);
        };
        let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| [a, b]);
        let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
        for way in [Way::Tcp, Way::Handler, Way::Single, Way::Combine, Way::Ring] {
            let paper = words::latency_us(way).zip(words::latency_us(Way::Native));
            let name = format!("4 B, one way: {} / native VI", way.title());
            let ours = both(us(latency(way, false)), us(latency(Way::Native, false)));
            row(&name, paper.map(|(a, b)| a / b), ours, "µs");
        }
        for way in [Way::Tcp, Way::Dacks, Way::Ring] {
            let paper = words::bandwidth_mbps(way).zip(words::bandwidth_mbps(Way::Native));
            let name = format!("32 kB stream: {} / native VI", way.title());
            let ours = both(speed(way, false, peak), speed(Way::Native, false, peak));
            row(&name, paper.map(|(a, b)| a / b), ours, "MB/s");
        }
        let small = both(speed(Way::Combine, false, 64), speed(Way::Dacks, false, 64));
        row(
            "64 B stream: SOVIA_COMBINE / SOVIA_DACKS",
            None,
            small,
            "MB/s",
        );
        let synchronise = latency(Way::Handler, false).zip(latency(Way::Single, false));
        let extra = synchronise.map(|(handler, single)| (handler - single) / 1e3);
        let t_sync = [self.t_sync_us, self.conditions.wakeup_us];
        for ((place, paper), ours) in ["on one CPU", "between two"]
            .into_iter()
            .zip(words::T_SYNC_US)
            .zip(t_sync)
        {
            let name = format!("SOVIA_HANDLER − SOVIA_SINGLE / T_sync, {place}");
            row(&name, Some(16.0 / paper), both(extra, ours), "µs");
        }
        let paper = words::BLOCKING_LATENCY_US / 10.5;
        let ours = both(
            us(latency(Way::Single, true)),
            us(latency(Way::Single, false)),
        );
        row(
            "4 B: SOVIA_SINGLE blocking / polling",
            Some(paper),
            ours,
            "µs",
        );
        let paper = words::BLOCKING_BANDWIDTH_MBPS / 814.0;
        let ours = both(
            speed(Way::Dacks, true, peak),
            speed(Way::Dacks, false, peak),
        );
        row(
            "32 kB stream: SOVIA_DACKS blocking / polling",
            Some(paper),
            ours,
            "MB/s",
        );
        table
    }
}
