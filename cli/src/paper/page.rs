//! The report: tables and plots, and what is to be said under them.

use super::report::Report;
use crate::report::{Page, Plot, Section};
use crate::steps::What;

impl Report {
    pub(super) fn page(&self) -> Page {
        let section = |title: &str, plots, table, under: String| Section {
            title: title.to_owned(),
            plots,
            table: Some(table),
            words: vec![under],
        };
        let mut sections = Vec::new();
        if !self.ways.is_empty() {
            sections.push(section(
                "Figure 9(a): latency",
                vec![self.plot(What::Latency)],
                self.figure(What::Latency),
                self.under_latency(),
            ));
            sections.push(section(
                "Figure 9(b): bandwidth",
                vec![self.plot(What::Bandwidth)],
                self.figure(What::Bandwidth),
                self.under_bandwidth(),
            ));
            sections.push(section(
                "The paper's ratios beside ours",
                Vec::new(),
                self.ratios(),
                self.under_waiting(),
            ));
            if let (Some(text), Some(last)) = (self.ring_against_packets(), sections.last_mut()) {
                last.words.push(text);
            }
        }
        sections.extend(self.files());
        sections.extend(self.remote_calls());
        Page {
            title: "SOVIA's figures, redone".to_owned(),
            sections,
            notes: [&self.missing[..], &self.failures[..]].concat(),
            foot: vec![
                self.conditions.to_string(),
                "sovia bench paper-sovia".to_owned(),
            ],
            ..Page::default()
        }
    }

    fn plot(&self, what: What) -> Plot {
        let ways = self.ways.iter().filter(|curve| !curve.block);
        what.plot(ways.map(|curve| (curve.way.title(), &curve.figures[..])))
    }
}
