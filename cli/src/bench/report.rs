use std::fmt;
use std::io::{self, Write};

use comfy_table::Cell;
use serde::Serialize;

use super::line::{Line, Row};
use super::place::Ends;
use super::unit::Unit;
use super::{Output, chart};
use crate::error::{Context, Result};
use crate::machine::{Conditions, near_or_far};
use crate::netpipe::table::{new_table, right, significant};
use crate::output::{STDOUT, check_writable, unwritable};

/// Everything that one invocation measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) quick: bool,
    pub(crate) conditions: Conditions,
    pub(crate) lines: Vec<Measured>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
    /// What could not be measured, and why.
    pub(crate) failures: Vec<String>,
}

/// One line: the same done in several ways.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) title: String,
    pub(crate) unit: Unit,
    /// Whether connections live long enough to be upgraded.
    pub(crate) lasts: bool,
    /// One-way hand-off of a cache line before and after; `None` with a single CPU.
    pub(crate) cores_ns: Option<[f64; 2]>,
    pub(crate) ways: Vec<Way>,
}

/// A cell of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Way {
    #[serde(flatten)]
    figures: Figures,
    best: f64,
    /// How many times better than kernel TCP, where that can be said.
    gain: Option<f64>,
}

/// What was measured for one way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) ends: Ends,
    pub(crate) runs: Vec<f64>,
    /// Whether any connection left TCP.
    pub(crate) upgraded: bool,
}

impl Measured {
    pub(super) fn new(line: &Line, title: &str, unit: Unit, figures: Vec<Figures>) -> Self {
        let base = figures
            .iter()
            .find(|figures| figures.ends == Ends::Neither)
            .map_or(f64::NAN, |figures| unit.best(&figures.runs));
        let ways = figures.into_iter().map(|figures| {
            let best = unit.best(&figures.runs);
            Way {
                gain: unit.gain(base, best),
                best,
                figures,
            }
        });
        Self {
            row: line.row,
            title: title.to_owned(),
            unit,
            lasts: line.kind.lasts(),
            cores_ns: None,
            ways: ways.collect(),
        }
    }

    fn way(&self, ends: Ends) -> Option<&Way> {
        self.ways.iter().find(|way| way.figures.ends == ends)
    }

    pub(super) fn gain(&self, ends: Ends) -> Option<f64> {
        self.way(ends)?.gain
    }

    fn figure(&self, ends: Ends) -> String {
        self.way(ends)
            .map_or_else(|| "-".to_owned(), |way| self.unit.text(way.best))
    }

    fn ratio(&self, ends: Ends) -> String {
        self.gain(ends)
            .map_or_else(|| "-".to_owned(), |gain| format!("{} ×", significant(gain)))
    }

    /// Where the CPUs were, as far as that is known.
    fn cores(&self) -> String {
        match self.cores_ns.map(|ends| ends.map(near_or_far)) {
            None => "one".to_owned(),
            Some([before, after]) if before == after => before.to_owned(),
            Some([before, after]) => format!("{before}, {after}"),
        }
    }

    /// Both ends were under sovia, and yet all bytes went over TCP.
    fn stayed(&self) -> bool {
        self.lasts
            && self
                .way(Ends::Both)
                .is_some_and(|way| !way.figures.upgraded)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured = |ends| self.lines.iter().any(|line| line.way(ends).is_some());
        let both = measured(Ends::Both);
        let one = measured(Ends::Server) || measured(Ends::Client);
        let mut header = vec!["", "TCP"];
        header.extend(
            both.then_some(["both under sovia", "gain"])
                .iter()
                .flatten(),
        );
        header.extend(
            one.then_some(["server only", "client only"])
                .iter()
                .flatten(),
        );
        header.push("CPUs");
        let mut table = new_table();
        table.set_header(header.into_iter().map(right));
        for line in &self.lines {
            let mark = if line.stayed() { STAYED_MARK } else { "" };
            let mut cells = vec![
                Cell::new(format!("{}{mark}", line.title)),
                right(line.figure(Ends::Neither)),
            ];
            if both {
                cells.push(right(line.figure(Ends::Both)));
                cells.push(right(line.ratio(Ends::Both)));
            }
            if one {
                cells.push(right(line.ratio(Ends::Server)));
                cells.push(right(line.ratio(Ends::Client)));
            }
            cells.push(right(line.cores()));
            table.add_row(cells);
        }
        if !self.lines.is_empty() {
            writeln!(f, "{table}")?;
        }
        if self.lines.iter().any(Measured::stayed) {
            writeln!(f, "{STAYED_MARK} No connection left TCP.")?;
        }
        for note in self.notes.iter().chain(&self.failures) {
            writeln!(f, "{note}.")?;
        }
        writeln!(f, "{}", self.conditions)
    }
}

impl Output {
    /// Whether the files can be written, before anything is measured.
    pub(super) fn check(&self) -> Result<()> {
        for path in [&self.json, &self.svg].into_iter().flatten() {
            check_writable(path)?;
        }
        Ok(())
    }

    pub(super) fn write(&self, report: &Report) -> Result<()> {
        if let Some(path) = &self.svg {
            chart::draw(report, path)?;
        }
        let mut stdout = io::stdout().lock();
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(report).context("encoding the report")?;
            if path.as_os_str() == STDOUT {
                return writeln!(stdout, "{json}").context("standard output");
            }
            std::fs::write(path, json).map_err(unwritable(path))?;
        }
        write!(stdout, "{report}").context("standard output")
    }
}

const STAYED_MARK: &str = " ¹";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::line::lines_of;

    fn measured(row: Row, figures: &[(Ends, &[f64], bool)]) -> Measured {
        let line = &lines_of(row)[0];
        let figures = figures.iter().map(|&(ends, runs, upgraded)| Figures {
            ends,
            runs: runs.to_vec(),
            upgraded,
        });
        Measured::new(line, &line.title, line.unit, figures.collect())
    }

    fn report(lines: Vec<Measured>) -> Report {
        Report {
            quick: false,
            conditions: Conditions {
                cpu_model: "Model".into(),
                kernel: "Linux 6".into(),
                affinity: vec![0, 1],
                handoff_ns: Some([44.0, 170.0]),
                bare_ns: Some([230.0, 900.0]),
                wakeup_us: Some(20.0),
                congestion: "cubic",
            },
            lines,
            notes: vec!["redis is not installed".into()],
            failures: Vec::new(),
        }
    }

    #[test]
    fn the_table() {
        let mut pingpong = measured(
            Row::Pingpong,
            &[
                (Ends::Neither, &[54.0, 55.0], false),
                (Ends::Both, &[0.5, 0.25], true),
                (Ends::Server, &[27.0], false),
            ],
        );
        pingpong.cores_ns = Some([44.0, 170.0]);
        let stream = measured(
            Row::Stream,
            &[
                (Ends::Neither, &[3.0, 4.0], false),
                (Ends::Both, &[4.0], false),
            ],
        );
        insta::assert_snapshot!(report(vec![pingpong, stream]));
    }

    #[test]
    fn columns_that_nobody_asked_for_are_left_out() {
        let one_end = measured(
            Row::OneEnd,
            &[
                (Ends::Neither, &[54.0], false),
                (Ends::Client, &[27.0], false),
            ],
        );
        let text = report(vec![one_end]).to_string();
        assert!(!text.contains("gain") && text.contains("2.00 ×"), "{text}");
        assert!(!text.contains(STAYED_MARK), "{text}");
    }

    #[test]
    fn short_connections_need_not_leave_tcp() {
        let connects = measured(
            Row::Connects,
            &[
                (Ends::Neither, &[18_000.0], false),
                (Ends::Both, &[18_000.0], false),
            ],
        );
        assert!(!report(vec![connects]).to_string().contains(STAYED_MARK));
    }
}
