use std::fmt;

use comfy_table::Cell;
use serde::Serialize;

use super::aim::{Aim, Verdict};
use super::line::{Line, Point};
use super::registry::Row;
use super::spread::Spread;
use super::unit::Unit;
use super::way::Way;
use super::{Output, chart};
use crate::error::Result;
use crate::machine::{Conditions, near_or_far};
use crate::netpipe::table::{new_table, right, significant};
use crate::output::{check_is_file, worse};
use crate::report::Page;

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
    #[serde(flatten)]
    pub(crate) point: Option<Point>,
    pub(crate) unit: Unit,
    pub(crate) aim: Aim,
    /// Whether connections live long enough to be upgraded.
    pub(crate) lasts: bool,
    /// Who has no Unix sockets, where they were asked for.
    pub(crate) not_unix: Option<&'static str>,
    /// One-way hand-off of a cache line before and after; `None` with a single CPU.
    pub(crate) cores_ns: Option<[f64; 2]>,
    /// The first is what the others are compared with.
    pub(crate) ways: Vec<Outcome>,
}

/// A cell of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    #[serde(flatten)]
    figures: Figures,
    best: f64,
    /// How many times better than kernel TCP the best runs are, where that can be said.
    gain: Option<f64>,
    /// Of the runs.
    pub(super) spread: Option<Spread>,
    /// Of the gains, each of one round.
    pub(super) gains: Option<Spread>,
    /// Of the differences, each of one round, where those have a target.
    pub(super) more: Option<Spread>,
    /// Whether the target is met; `None` where there is none for this way.
    pub(super) verdict: Option<Verdict>,
}

/// What was measured for one way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) way: Way,
    pub(crate) runs: Vec<f64>,
    /// Whether any connection left TCP.
    pub(crate) upgraded: bool,
    /// How many did, and of how many, where not all may: for want of descriptors or memory, or since they end too soon.
    pub(crate) left_tcp: Option<[usize; 2]>,
}

impl Measured {
    pub(super) fn new(
        line: &Line,
        title: &str,
        unit: Unit,
        aim: Aim,
        figures: Vec<Figures>,
    ) -> Self {
        let base = figures.first().map_or(&[][..], |figures| &figures.runs);
        let base = base.to_vec();
        let ways = figures.into_iter().map(|figures| {
            let best = unit.best(&figures.runs);
            Outcome {
                gain: unit.gain(unit.best(&base), best),
                best,
                spread: Spread::of(figures.runs.iter().copied()),
                gains: unit.gains(&base, &figures.runs),
                more: aim.more(&base, &figures.runs),
                verdict: None,
                figures,
            }
        });
        let mut measured = Self {
            row: line.row,
            title: title.to_owned(),
            point: line.point,
            unit,
            aim,
            lasts: line.kind.lasts(),
            not_unix: line.not_unix,
            cores_ns: None,
            ways: ways.collect(),
        };
        measured.place(None);
        measured
    }

    /// Says where the two CPUs were, before and after; some targets depend on it.
    pub(super) fn place(&mut self, cores_ns: Option<[f64; 2]>) {
        self.cores_ns = cores_ns;
        let near = cores_ns.is_none_or(|cores| cores.iter().all(|&ns| near_or_far(ns) == "near"));
        let Some((base, others)) = self.ways.split_first_mut() else {
            return;
        };
        for other in others
            .iter_mut()
            .filter(|other| other.figures.way.is_ours())
        {
            let [base, runs] = [&base.figures.runs, &other.figures.runs];
            let verdict = self.aim.judge(self.unit, near, base, runs);
            // One CPU is neither near nor far.
            other.verdict = verdict.filter(|_| cores_ns.is_some() || !self.aim.depends_on_place());
        }
    }

    pub(super) fn way(&self, way: Way) -> Option<&Outcome> {
        self.ways.iter().find(|outcome| outcome.figures.way == way)
    }

    pub(super) fn gain(&self, way: Way) -> Option<f64> {
        self.way(way)?.gain
    }

    fn figure(&self, way: Way) -> String {
        self.way(way)
            .map_or_else(|| "-".to_owned(), |outcome| self.unit.text(outcome.best))
    }

    /// Nothing is compared with itself.
    fn ratio(&self, way: Way) -> String {
        let base = self.ways.first().map(|base| base.figures.way);
        let gain = self.gain(way).filter(|_| base != Some(way));
        gain.map_or_else(|| "-".to_owned(), |gain| format!("{} ×", significant(gain)))
    }

    /// Where the CPUs were, as far as that is known.
    pub(super) fn cores(&self) -> String {
        match self.cores_ns.map(|ends| ends.map(near_or_far)) {
            None => "one".to_owned(),
            Some([before, after]) if before == after => before.to_owned(),
            Some([before, after]) => format!("{before}, {after}"),
        }
    }

    /// Both ends were under sovia, and yet all bytes went over TCP.
    pub(super) fn stayed(&self) -> bool {
        self.lasts
            && self
                .way(Way::Sovia)
                .is_some_and(|outcome| !outcome.figures.upgraded)
    }

    /// How many connections left TCP, where some did and some did not.
    fn partly(&self) -> Option<[usize; 2]> {
        let [left, all] = self.way(Way::Sovia)?.figures.left_tcp?;
        (self.lasts && !self.stayed() && left < all).then_some([left, all])
    }

    /// Which part of those that end soon left TCP; one that stays is no fault.
    pub(super) fn left(&self) -> Option<f64> {
        let [left, all] = self.way(Way::Sovia)?.figures.left_tcp?;
        (!self.lasts && all > 0).then(|| left as f64 / all as f64)
    }

    /// What stands behind its title.
    pub(super) fn mark(&self) -> &'static str {
        if self.stayed() {
            STAYED_MARK
        } else if self.partly().is_some() {
            PARTLY_MARK
        } else {
            ""
        }
    }

    /// What the marks mean.
    pub(super) fn remarks<'a>(lines: impl IntoIterator<Item = &'a Self>) -> Vec<String> {
        let mut remarks = Vec::new();
        for line in lines {
            let remark = match line.partly() {
                _ if line.stayed() => format!("{} No connection left TCP.", STAYED_MARK.trim()),
                Some([left, all]) => format!(
                    "{} Only {left} of {all} connections left TCP; `sovia stat` says why, `ulimit -Hn` bounds their descriptors.",
                    PARTLY_MARK.trim()
                ),
                None => continue,
            };
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        remarks
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured = |way| self.lines.iter().any(|line| line.way(way).is_some());
        let both = measured(Way::Sovia);
        let watched = measured(Way::Watched);
        let one = measured(Way::ServerOnly) || measured(Way::ClientOnly);
        let mut header = vec!["", "TCP"];
        header.extend(
            both.then_some(["both under sovia", "gain"])
                .iter()
                .flatten(),
        );
        header.extend(
            watched
                .then_some(["with stat", "of that without"])
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
            let mark = line.mark();
            let mut cells = vec![
                Cell::new(format!("{}{mark}", line.title)),
                right(line.figure(Way::Tcp)),
            ];
            if both {
                cells.push(right(line.figure(Way::Sovia)));
                cells.push(right(line.ratio(Way::Sovia)));
            }
            if watched {
                cells.push(right(line.figure(Way::Watched)));
                cells.push(right(line.ratio(Way::Watched)));
            }
            if one {
                cells.push(right(line.ratio(Way::ServerOnly)));
                cells.push(right(line.ratio(Way::ClientOnly)));
            }
            cells.push(right(line.cores()));
            table.add_row(cells);
        }
        if !self.lines.is_empty() {
            writeln!(f, "{table}")?;
        }
        for remark in Measured::remarks(&self.lines) {
            writeln!(f, "{remark}")?;
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
        check_is_file("--svg", self.svg.as_ref())?;
        self.files.check(self.svg.as_ref())
    }

    /// What `shown` says on standard output, and the files that were asked for.
    pub(super) fn write(&self, report: &Report, page: &Page, shown: Shown) -> Result<()> {
        let written = match shown {
            Shown::Table => self.files.write(report, page, report),
            Shown::Page => self.files.write(report, page, page),
        };
        match &self.svg {
            Some(path) => worse(written, chart::draw(report, path)),
            None => written,
        }
    }
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// One table of the best runs.
    Table,
    /// All sections, with medians and what they allow to say.
    Page,
}

const STAYED_MARK: &str = " ¹";
const PARTLY_MARK: &str = " ²";

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::registry::Extent;

    fn measured(row: Row, figures: &[(Way, &[f64], bool)]) -> Measured {
        let line = &row.lines(Extent::Whole)[0];
        let figures = figures.iter().map(|&(way, runs, upgraded)| Figures {
            way,
            runs: runs.to_vec(),
            upgraded,
            left_tcp: None,
        });
        Measured::new(line, &line.title, line.unit, line.aim, figures.collect())
    }

    pub(in crate::bench) fn report(lines: Vec<Measured>) -> Report {
        Report {
            quick: false,
            conditions: Conditions {
                cpu_model: "Model".into(),
                kernel: "Linux 6".into(),
                affinity: vec![0, 1],
                handoff_ns: Some([44.0, 170.0]),
                bare_ns: Some([230.0, 900.0]),
                wakeup_us: Some(20.0),
                congestion: "cubic".to_owned(),
                host_congestion: "bbr".to_owned(),
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
                (Way::Tcp, &[54.0, 55.0], false),
                (Way::Sovia, &[0.5, 0.25], true),
                (Way::ServerOnly, &[27.0], false),
            ],
        );
        pingpong.cores_ns = Some([44.0, 170.0]);
        let stream = measured(
            Row::Stream,
            &[(Way::Tcp, &[3.0, 4.0], false), (Way::Sovia, &[4.0], false)],
        );
        insta::assert_snapshot!(report(vec![pingpong, stream]));
    }

    #[test]
    fn columns_that_nobody_asked_for_are_left_out() {
        let one_end = measured(
            Row::OneEnd,
            &[
                (Way::Tcp, &[54.0], false),
                (Way::ClientOnly, &[27.0], false),
            ],
        );
        let text = report(vec![one_end]).to_string();
        assert!(!text.contains("gain") && text.contains("2.00 ×"), "{text}");
        assert!(!text.contains(STAYED_MARK), "{text}");
    }

    #[test]
    fn connections_that_stayed_are_counted() {
        let many = |left_tcp| {
            let mut many = measured(
                Row::Many,
                &[(Way::Tcp, &[18.0], false), (Way::Sovia, &[20.0], true)],
            );
            many.ways[1].figures.left_tcp = Some(left_tcp);
            report(vec![many]).to_string()
        };
        let some = many([45, 1_000]);
        assert!(some.contains("Only 45 of 1000 connections"), "{some}");
        let all = many([1_000, 1_000]);
        assert!(!all.contains("Only"), "{all}");
    }

    #[test]
    fn what_stat_costs_has_a_column() {
        let watched = measured(
            Row::Stat,
            &[(Way::Sovia, &[0.5], true), (Way::Watched, &[1.0], true)],
        );
        let text = report(vec![watched]).to_string();
        assert!(
            text.contains("with stat") && text.contains("0.500 ×"),
            "{text}"
        );
        assert!(!text.contains("1.00 ×"), "{text}");
    }

    #[test]
    fn one_cpu_is_neither_near_nor_far() {
        let mut pingpong = measured(
            Row::Pingpong,
            &[
                (Way::Tcp, &[9.0, 9.0], false),
                (Way::Sovia, &[3.0, 3.0], true),
            ],
        );
        assert_eq!(pingpong.way(Way::Sovia).and_then(|way| way.verdict), None);
        pingpong.place(Some([44.0, 44.0]));
        let verdict = pingpong.way(Way::Sovia).and_then(|way| way.verdict);
        assert_eq!(verdict, Some(Verdict::Missed));
    }

    #[test]
    fn short_connections_need_not_leave_tcp() {
        let connects = measured(
            Row::Connects,
            &[
                (Way::Tcp, &[18_000.0], false),
                (Way::Sovia, &[18_000.0], false),
            ],
        );
        assert!(!report(vec![connects]).to_string().contains(STAYED_MARK));
    }
}
