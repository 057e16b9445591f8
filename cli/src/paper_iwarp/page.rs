//! The report: Figures 5 and 6 as tables and plots, and what is to be said under them.

use super::report::{Curve, Report, shown};
use super::way::Way;
use super::words;
use crate::report::{Page, Plot, Section};
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
                    words: self.under_ratios(),
                    ..Section::default()
                },
            ],
            notes: self.failures.clone(),
            foot: vec![self.conditions.to_string(), self.command.clone()],
        }
    }

    fn under_ratios(&self) -> Vec<String> {
        let mut said = vec![words::TESTBED.to_owned()];
        let bare = |curve: &Curve| matches!(curve.way, Way::Bare | Way::BareMarkers);
        if self.ways.iter().any(bare) {
            said.push(words::BARE.to_owned());
        }
        if self.ways.iter().any(|curve| curve.way == Way::Siw) {
            said.push(words::SIW.to_owned());
            said.extend(self.siw_crc.map(|crc| {
                let made = if crc { "makes" } else { "makes no" };
                format!("Its settings: it {made} checksums.")
            }));
        }
        said
    }

    fn plot(&self, what: What, is_plain: bool) -> Plot {
        let ways = self.ways.iter().filter(|curve| shown(curve.way, is_plain));
        what.plot(ways.map(|curve| (curve.way.title(), &curve.figures[..])))
    }
}
