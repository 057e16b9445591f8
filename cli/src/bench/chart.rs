//! The gains: a bar a line and way.

use std::path::Path;

use super::place::Ends;
use super::report::{Measured, Report};
use crate::error::Result;
use crate::output::unwritable;
use crate::report::{Bar, Bars, Group, Plot};

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    std::fs::write(path, Plot::Bars(bars(&report.lines)).svg()?).map_err(unwritable(path))
}

pub(super) fn bars(lines: &[Measured]) -> Bars {
    Bars {
        title: "Unmodified programs: how many times as good as kernel TCP".to_owned(),
        groups: lines.iter().map(group).collect(),
    }
}

fn group(line: &Measured) -> Group {
    let looks = [
        (Ends::Both, "both ends"),
        (Ends::Server, "server only"),
        (Ends::Client, "client only"),
    ];
    let bars = looks.into_iter().enumerate();
    let bars = bars.filter_map(|(hue, (ends, name))| {
        Some(Bar {
            name: name.to_owned(),
            value: line.gain(ends)?,
            spread: None,
            hue,
        })
    });
    Group {
        title: line.title.clone(),
        bars: bars.collect(),
    }
}
