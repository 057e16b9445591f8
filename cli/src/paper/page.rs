//! The report: Figure 9 as tables and plots, and what is to be said under them.

use super::end::What;
use super::report::{Report, value};
use super::words;
use crate::report::{Curve, Curves, Page, Plot, Scale, Section};

impl Report {
    pub(super) fn page(&self) -> Page {
        let section = |title: &str, plots, table, under: &str| Section {
            title: title.to_owned(),
            plots,
            table: Some(table),
            words: vec![under.to_owned()],
        };
        let mut notes = self.failures.clone();
        notes.push(words::LEFT_OUT.to_owned());
        Page {
            title: "SOVIA's figures, redone".to_owned(),
            sections: vec![
                section(
                    "Figure 9(a): latency",
                    vec![self.plot(What::Latency)],
                    self.figure(What::Latency),
                    words::UNDER_LATENCY,
                ),
                section(
                    "Figure 9(b): bandwidth",
                    vec![self.plot(What::Bandwidth)],
                    self.figure(What::Bandwidth),
                    words::UNDER_BANDWIDTH,
                ),
                section(
                    "The paper's ratios beside ours",
                    Vec::new(),
                    self.ratios(),
                    words::UNDER_WAITING,
                ),
            ],
            notes,
            foot: vec![
                self.conditions.to_string(),
                "sovia bench paper-sovia".to_owned(),
            ],
            ..Page::default()
        }
    }

    fn plot(&self, what: What) -> Plot {
        let curves = self.ways.iter().filter(|curve| !curve.block).map(|curve| {
            let figures = curve.figures.iter().filter(|figure| figure.what == what);
            Curve {
                name: curve.way.title().to_owned(),
                points: figures
                    .map(|figure| (figure.bytes as f64, value(what, figure.bytes, figure.ns)))
                    .collect(),
            }
        });
        let unit = match what {
            What::Latency => "µs one way",
            What::Bandwidth => "MB/s",
        };
        Plot::Curves(Curves {
            x: ("message size".to_owned(), Scale::Bytes),
            y: (unit.to_owned(), Scale::Logarithmic),
            curves: curves.collect(),
        })
    }
}
