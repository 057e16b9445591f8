//! The report: Figures 5 and 6 as tables and plots, and what is to be said under them.

use super::report::{Report, shown, value};
use super::words;
use crate::report::{Curve, Curves, Page, Plot, Scale, Section};
use crate::steps::What;

impl Report {
    pub(super) fn page(&self) -> Page {
        let section = |title: &str, what, is_plain, under: &str| Section {
            title: title.to_owned(),
            plots: vec![self.plot(what, is_plain)],
            table: Some(self.figure(what, is_plain)),
            words: vec![under.to_owned()],
        };
        let (latency, bandwidth) = (What::Latency, What::Bandwidth);
        let (plain, extended) = (words::UNDER_PLAIN, words::UNDER_EXTENDED);
        Page {
            title: "iWARP's figures, redone".to_owned(),
            before: vec![words::BEFORE.to_owned()],
            sections: vec![
                section(
                    "Figure 5(a): plain sockets, latency",
                    latency,
                    true,
                    plain[0],
                ),
                section(
                    "Figure 5(b): plain sockets, bandwidth",
                    bandwidth,
                    true,
                    plain[1],
                ),
                section(
                    "Figure 6(a): the extended interface, latency",
                    latency,
                    false,
                    extended[0],
                ),
                section(
                    "Figure 6(b): the extended interface, bandwidth",
                    bandwidth,
                    false,
                    extended[1],
                ),
                Section {
                    title: "The paper beside ours".to_owned(),
                    table: Some(self.ratios()),
                    words: vec![words::TESTBED.to_owned()],
                    ..Section::default()
                },
            ],
            notes: self.failures.clone(),
            foot: vec![self.conditions.to_string(), self.command.to_owned()],
        }
    }

    fn plot(&self, what: What, is_plain: bool) -> Plot {
        let curves = self.ways.iter().filter(|curve| shown(curve.way, is_plain));
        let curves = curves.map(|curve| {
            let figures = curve.figures.iter().filter(|figure| figure.what == what);
            let point = |bytes: usize, ns| (bytes as f64, value(what, bytes, ns));
            Curve {
                name: curve.way.title().to_owned(),
                points: figures
                    .map(|figure| point(figure.bytes, figure.ns))
                    .collect(),
            }
        });
        let unit = match what {
            What::Latency | What::Call => "µs one way",
            What::Bandwidth => "MB/s",
        };
        Plot::Curves(Curves {
            x: ("message size".to_owned(), Scale::Bytes),
            y: (unit.to_owned(), Scale::Logarithmic),
            curves: curves.collect(),
        })
    }
}
