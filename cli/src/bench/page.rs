//! The report of `sovia bench`: sections with medians, and what the rounds allow to say.

use super::aim::{Aim, Verdict, gain};
use super::chart;
use super::line::Point;
use super::registry::Section;
use super::report::{Measured, Report};
use super::way::Way;
use crate::netpipe::table::{bytes, significant};
use crate::report::{self, Page, Plot, Table};

impl Report {
    pub(super) fn page(&self, command: &str) -> Page {
        let sections = Section::ALL.into_iter().filter_map(|section| {
            let lines = self.lines.iter();
            let lines: Vec<_> = lines
                .filter(|line| line.row.entry().section == section)
                .collect();
            (!lines.is_empty()).then(|| section.report(&lines))
        });
        let mut before = vec![HOW_TO_READ.to_owned()];
        if self.quick {
            before.push(QUICK.to_owned());
        }
        let mut notes: Vec<_> = self.notes.iter().map(|note| format!("{note}.")).collect();
        notes.extend(self.failures.iter().map(|note| format!("Failed: {note}.")));
        Page {
            title: "sovia: unmodified programs against kernel TCP".to_owned(),
            before,
            sections: sections.collect(),
            notes,
            foot: vec![self.conditions.to_string(), command.to_owned()],
        }
    }
}

impl Section {
    fn report(self, lines: &[&Measured]) -> report::Section {
        let (title, words) = self.words();
        let plots = if lines.iter().all(|line| line.point.is_some()) {
            chart::curves(lines).into_iter().map(Plot::Curves).collect()
        } else if self == Self::Stat {
            // Nothing in it is compared with TCP.
            Vec::new()
        } else {
            vec![Plot::Bars(chart::bars(lines))]
        };
        let mut words: Vec<_> = words.iter().map(|&words| words.to_owned()).collect();
        words.extend(Measured::remarks(lines.iter().copied()));
        report::Section {
            title: title.to_owned(),
            plots,
            table: Some(self.table(lines)),
            words,
        }
    }

    fn table(self, lines: &[&Measured]) -> Table {
        let ways = Way::ALL.into_iter();
        let ways: Vec<Way> = ways
            .filter(|way| lines.iter().any(|line| line.tells_of(*way)))
            .collect();
        let mut header = vec![""];
        header.extend(ways.iter().map(|way| way.title()));
        header.extend(["gain", "between", "target", "", "left TCP", "CPUs"]);
        let mut table = Table::new(header);
        for line in lines {
            let mark = line.mark();
            let title = match line.point {
                Some(Point::Size(size)) => bytes(size),
                _ => line.title.clone(),
            };
            let mut cells = vec![format!("{title}{mark}")];
            cells.extend(ways.iter().map(|way| line.cell(*way)));
            cells.extend(line.verdict_cells());
            let left = line.left().map(|left| format!("{:.0} %", 100.0 * left));
            cells.push(left.unwrap_or_default());
            cells.push(line.cores());
            table.row(cells);
        }
        table.without_empty_columns()
    }

    fn words(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Latency => (
                "There and back by message size, blocking send and recv",
                &[PEERS_POLL],
            ),
            Self::LatencyEpoll => ("There and back by message size, through epoll", &[]),
            Self::Bandwidth => (
                "One way by message size, blocking send and recv",
                &[ONE_ANSWER],
            ),
            Self::BandwidthEpoll => ("One way by message size, through epoll", &[ONE_ANSWER]),
            Self::Basics => ("Messages of 64 B, writes of 64 kB", &[]),
            Self::Programs => ("Real programs", &[]),
            Self::Connections => ("Connections", &[MEMORY]),
            Self::Short => ("Connections that end soon", &[ONE_AFTER_THE_OTHER, LEFT]),
            Self::Company => ("More programs than CPUs", &[]),
            Self::OneEnd => ("Only one end under sovia", &[]),
            Self::Stat => ("What sovia stat costs those it looks at", &[OVER_SOVIA]),
        }
    }
}

impl Measured {
    /// Whether there is something to say in its cell.
    fn tells_of(&self, way: Way) -> bool {
        self.way(way).is_some() || (way == Way::Unix && self.not_unix.is_some())
    }

    /// The median; where only one end is under sovia, the gain.
    fn cell(&self, way: Way) -> String {
        if let Some(who) = self.not_unix.filter(|_| way == Way::Unix) {
            return format!("not by {who}");
        }
        let Some(outcome) = self.way(way) else {
            return "-".to_owned();
        };
        let text = match way {
            Way::ServerOnly | Way::ClientOnly => outcome.gains.map(gain),
            _ => outcome.spread.map(|spread| self.unit.text(spread.median)),
        };
        text.unwrap_or_else(|| "-".to_owned())
    }

    /// The gain and its bounds, the target, and whether it is met.
    fn verdict_cells(&self) -> [String; 4] {
        let ours = [Way::Watched, Way::Sovia].into_iter();
        let ours = ours.filter_map(|way| self.way(way)).next();
        let gains = ours.and_then(|outcome| outcome.gains);
        let own = ours.and_then(|outcome| outcome.spread);
        let more = ours.and_then(|outcome| outcome.more);
        let between = match self.aim {
            Aim::Gain(_) => gains.map(|gains| [gains.low, gains.high].map(significant)),
            Aim::Figure { .. } => own.map(|own| [own.low, own.high].map(|end| self.unit.text(end))),
            Aim::Beyond(_) => more.map(|more| [more.low, more.high].map(|end| self.unit.text(end))),
        };
        let between = between.map(|[low, high]| format!("{low} – {high}"));
        let verdicts = self.ways.iter().filter_map(|outcome| outcome.verdict);
        let verdict = verdicts.reduce(Verdict::and);
        [
            gains.map(gain),
            between,
            verdict.map(|_| self.aim.text(self.unit)),
            verdict.map(|verdict| verdict.text().to_owned()),
        ]
        .map(|cell| cell.unwrap_or_else(|| "-".to_owned()))
    }
}

const HOW_TO_READ: &str = "A figure is the median of the rounds, in which the ways take turns; a gain is the median of the rounds' gains over TCP, so it is not quite \
the quotient of the two figures. `between` holds the gain, where the target is a figure the figure, and where it is so much more than TCP that difference, with 94 % confidence (75 % where there are three rounds). \
A target is met if all of `between` meets it and missed if none of it does; what the noise does not allow to say is marked ~.";
const QUICK: &str = "This was --quick: few rounds of short runs, and 1,000 connections instead of 10,000. Only what is far from its target is told from it.";
const OVER_SOVIA: &str =
    "Nothing here is compared with TCP: a gain is over sovia while nobody looks.";
const PEERS_POLL: &str = "UCX and libfabric poll without end, and their users call their functions; sovia's programs call send and recv, and sleep when nothing comes.";
const ONE_ANSWER: &str = "The receiver answers with one byte at the end of each block of messages, when it has taken the last.";
const ONE_AFTER_THE_OTHER: &str = "A figure is of one connection, from connect to its end: the mean of all that one client makes to one server, one after the other, in a run. \
The first 64 are not timed: from them a program under sovia may learn how long connections to a port last.";
const LEFT: &str = "Connections that stay on TCP do so on purpose: to leave it takes time, which those that end soon would not win back. `left TCP` is how many did of 64 others, \
since to note each takes time, too.";
const MEMORY: &str =
    "Memory is of both processes (Pss); what the kernel has for a socket is in neither column.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::registry::{Extent, Row};
    use crate::bench::report::Figures;
    use crate::bench::report::tests::report;

    fn measured(row: Row, at: usize, figures: &[(Way, &[f64])]) -> Measured {
        let line = &row.lines(Extent::Quick)[at];
        let figures = figures.iter().map(|&(way, runs)| Figures {
            way,
            runs: runs.to_vec(),
            upgraded: way != Way::Tcp,
            left_tcp: None,
        });
        let mut measured = Measured::new(line, &line.title, line.unit, line.aim, figures.collect());
        measured.place(Some([44.0, 45.0]));
        measured
    }

    fn short(at: usize, left_tcp: [usize; 2]) -> Measured {
        let line = &Row::Short.lines(Extent::Quick)[at];
        let figures = [Way::Tcp, Way::Sovia].map(|way| Figures {
            way,
            runs: vec![50.0, 51.0, 52.0],
            upgraded: way == Way::Sovia && left_tcp[0] > 0,
            left_tcp: (way == Way::Sovia).then_some(left_tcp),
        });
        let mut short = Measured::new(line, &line.title, line.unit, line.aim, figures.into());
        short.place(Some([44.0, 45.0]));
        short
    }

    #[test]
    fn the_sections() {
        let mut report = report(vec![
            measured(
                Row::Stat,
                0,
                &[
                    (Way::Sovia, &[0.5, 0.5, 0.5]),
                    (Way::Watched, &[0.5, 0.49, 0.51]),
                ],
            ),
            measured(
                Row::Latency,
                1,
                &[
                    (Way::Tcp, &[50.0, 54.0, 58.0]),
                    (Way::Unix, &[49.0, 53.0, 57.0]),
                    (Way::Sovia, &[0.25, 0.26, 0.29]),
                    (Way::Ucx, &[0.5]),
                ],
            ),
            measured(
                Row::Nginx,
                0,
                &[
                    (Way::Tcp, &[50e3, 51e3, 52e3]),
                    (Way::Sovia, &[50e3, 60e3, 50e3]),
                ],
            ),
            short(0, [0, 64]),
            short(1, [61, 64]),
            measured(
                Row::OneEnd,
                0,
                &[
                    (Way::Tcp, &[54.0, 55.0, 56.0]),
                    (Way::ServerOnly, &[27.0, 27.0, 27.0]),
                    (Way::ClientOnly, &[57.0, 58.0, 60.0]),
                ],
            ),
        ]);
        report.quick = true;
        report.failures.push("many: no".to_owned());
        insta::assert_snapshot!(report.page("sovia bench --quick"));
    }
}
