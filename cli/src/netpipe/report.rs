use std::fmt;

use serde::Serialize;

use super::plan::{Column, Pattern, Placement};
use super::table;
use super::vi::MTU_DEFAULT;
use crate::error::{Context, Result};
use crate::machine::Conditions;

/// Everything that one invocation measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Name of the VI NIC.
    pub(crate) nic: &'static str,
    pub(crate) pattern: Pattern,
    /// Connections a transport.
    pub(crate) connections: u16,
    pub(crate) runs: u16,
    pub(crate) run_ms: u64,
    /// The user named each size, so no line of a long table is left out.
    #[serde(skip)]
    pub(crate) is_exact: bool,
    pub(crate) conditions: Conditions,
    pub(crate) rows: Vec<Row>,
}

/// One size in one column.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "Figures")]
pub(crate) struct Row {
    pub(crate) column: Column,
    pub(crate) pattern: Pattern,
    pub(crate) size: usize,
    /// Nanoseconds a message, one way: the median block of each run.
    pub(crate) runs_ns: Vec<f64>,
}

/// A row as JSON tells it: with what follows from the runs.
#[derive(Serialize)]
struct Figures {
    #[serde(flatten)]
    column: Column,
    size: usize,
    one_way_ns: f64,
    gigabytes_per_s: f64,
    noisy: bool,
    runs_ns: Vec<f64>,
}

impl Row {
    pub(crate) fn new(column: Column, pattern: Pattern, size: usize) -> Self {
        Self {
            column,
            pattern,
            size,
            runs_ns: Vec::new(),
        }
    }

    /// The best run.
    pub(crate) fn best_ns(&self) -> f64 {
        self.runs_ns.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Of the best run, both directions together; 1 GB is 10⁹ bytes.
    pub(crate) fn gigabytes_per_s(&self) -> f64 {
        self.pattern.bytes(self.size) as f64 / self.best_ns()
    }

    /// Whether the runs disagree so much that the figure says more about the machine than about the transport.
    pub(crate) fn is_noisy(&self) -> bool {
        let worst = self.runs_ns.iter().copied().fold(0.0, f64::max);
        worst > NOISY_RATIO * self.best_ns()
    }
}

impl From<Row> for Figures {
    fn from(row: Row) -> Self {
        Self {
            column: row.column,
            size: row.size,
            one_way_ns: row.best_ns(),
            gigabytes_per_s: row.gigabytes_per_s(),
            noisy: row.is_noisy(),
            runs_ns: row.runs_ns,
        }
    }
}

impl Report {
    pub(crate) fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).context("encoding the report")
    }

    /// The rows of one column, by size.
    pub(crate) fn curve(&self, column: Column) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.column == column)
    }

    /// The columns that compare transports, in the order in which they were measured.
    pub(crate) fn compared(&self, placement: Placement) -> Vec<Column> {
        self.columns(|column| column.placement == placement && column.mtu.is_none())
    }

    /// The columns that compare maximum transfer sizes, by size; the one that all else is measured with among them.
    pub(crate) fn transfer_sizes(&self) -> Vec<Column> {
        let mut columns = self.columns(|column| column.mtu.is_some());
        if let Some(&other) = columns.first() {
            columns.extend(self.columns(|column| column == Column { mtu: None, ..other }));
        }
        columns.sort_by_key(|column| column.mtu.unwrap_or(MTU_DEFAULT));
        columns
    }

    pub(crate) fn placements(&self) -> Vec<Placement> {
        let mut placements: Vec<_> = self.rows.iter().map(|row| row.column.placement).collect();
        placements.dedup();
        [Placement::One, Placement::Two]
            .into_iter()
            .filter(|p| placements.contains(p))
            .collect()
    }

    fn columns(&self, wanted: impl Fn(Column) -> bool) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for row in &self.rows {
            if wanted(row.column) && !columns.contains(&row.column) {
                columns.push(row.column);
            }
        }
        columns
    }

    /// The measured size that stands for "a small message": 8 bytes, or what is nearest to it.
    fn small(&self) -> Option<usize> {
        self.rows
            .iter()
            .map(|row| row.size)
            .min_by_key(|size| size.abs_diff(8))
    }

    fn pattern_name(&self) -> &'static str {
        match self.pattern {
            Pattern::PingPong => "ping-pong",
            Pattern::Stream => "one-directional stream",
            Pattern::Bidirectional => "both directions together",
            Pattern::RdmaWrite => "RDMA write",
            Pattern::Connect => "connect and disconnect",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Pattern::PingPong, Some(small)) = (self.pattern, self.small()) {
            writeln!(f, "Latency of {small} bytes in µs, one way")?;
            writeln!(f, "{}\n", table::latency(self, small))?;
        }
        for placement in self.placements() {
            let connections = match self.connections {
                1 => String::new(),
                n => format!(", {n} connections"),
            };
            let pattern = self.pattern_name();
            writeln!(f, "Throughput in GB/s, {pattern}, {placement}{connections}")?;
            writeln!(
                f,
                "{}\n",
                table::throughput(self, &self.compared(placement))
            )?;
        }
        let transfer_sizes = self.transfer_sizes();
        if let Some(column) = transfer_sizes.first() {
            let (wait, placement) = (column.wait, column.placement);
            writeln!(
                f,
                "Throughput in GB/s by maximum transfer size, VI {wait}, {placement}"
            )?;
            writeln!(f, "{}\n", table::throughput(self, &transfer_sizes))?;
        }
        writeln!(
            f,
            "Each figure: best of {} runs of {} ms, of a run the median block. {NOISY_MARK} marks runs that \
             differ by more than {NOISY_RATIO} ×.",
            self.runs, self.run_ms,
        )?;
        writeln!(f, "{}", self.conditions)
    }
}

/// Follows a figure whose runs disagree.
pub(crate) const NOISY_MARK: char = '~';
const NOISY_RATIO: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::super::plan::{Transport, Wait};
    use super::*;

    /// A machine that never was, with figures that follow a simple law.
    fn report() -> Report {
        let mut rows = Vec::new();
        for placement in [Placement::One, Placement::Two] {
            for (transport, fixed_ns) in [
                (Transport::Tcp, 4000.0),
                (Transport::Unix, 2000.0),
                (Transport::Vi, 80.0),
            ] {
                for (wait, wake_ns) in [(Wait::Poll, 0.0), (Wait::Block, 22_000.0)] {
                    let column = Column {
                        transport,
                        wait,
                        placement,
                        mtu: None,
                    };
                    for size in [8, 65_536] {
                        let ns = fixed_ns + wake_ns + size as f64 / 10.0;
                        rows.push(row(column, size, &[ns, ns * 1.2, ns * 1.4]));
                    }
                }
            }
        }
        let sweep = Column {
            transport: Transport::Vi,
            wait: Wait::Poll,
            placement: Placement::Two,
            mtu: Some(1500),
        };
        rows.push(row(sweep, 65_536, &[20_000.0, 31_000.0]));
        Report {
            nic: "shm",
            pattern: Pattern::PingPong,
            connections: 1,
            runs: 5,
            run_ms: 40,
            is_exact: false,
            rows,
            conditions: Conditions {
                cpu_model: "Abacus".into(),
                kernel: "Linux 2.2.16".into(),
                affinity: vec![0, 1],
                handoff_ns: Some([43.2, 171.0]),
                bare_ns: Some([230.0, 900.0]),
                wakeup_us: Some(21.0),
                congestion: "cubic".to_owned(),
                host_congestion: "bbr".to_owned(),
            },
        }
    }

    fn row(column: Column, size: usize, runs_ns: &[f64]) -> Row {
        Row {
            runs_ns: runs_ns.to_vec(),
            ..Row::new(column, Pattern::PingPong, size)
        }
    }

    #[test]
    fn the_best_run_counts_and_disagreement_shows() {
        let report = report();
        let sweep = report.rows.last().unwrap();
        assert_eq!(sweep.best_ns(), 20_000.0);
        assert_eq!(sweep.gigabytes_per_s(), 3.2768);
        assert!(sweep.is_noisy());
        assert!(!report.rows[0].is_noisy());
    }

    #[test]
    fn both_directions_count_when_both_send() {
        let row = Row {
            pattern: Pattern::Bidirectional,
            ..report().rows[0].clone()
        };
        assert_eq!(
            row.gigabytes_per_s(),
            2.0 * report().rows[0].gigabytes_per_s()
        );
    }

    #[test]
    fn the_tables() {
        insta::assert_snapshot!(report());
    }

    #[test]
    fn a_long_table_shows_powers_of_two_or_all_that_were_named() {
        let mut report = report();
        let column = report.rows[0].column;
        report.rows = (7..60).map(|size| row(column, size, &[50.0])).collect();
        let lines = |report: &Report| table::throughput(report, &[column]).row_iter().count();
        assert_eq!(lines(&report), 3);
        report.is_exact = true;
        assert_eq!(lines(&report), 53);
    }

    #[test]
    fn the_json() {
        let mut report = report();
        report.rows.truncate(1);
        insta::assert_snapshot!(report.json().unwrap());
    }
}
