//! What there is to see: gains as bars, and curves by size.

use std::path::Path;

use super::report::{Measured, Report};
use super::way::Way;
use crate::error::Result;
use crate::output::write_whole;
use crate::report::{Bar, Bars, Curve, Curves, Group, Plot, Scale};

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let bars = bars(&report.lines.iter().collect::<Vec<_>>());
    write_whole(path, Plot::Bars(bars).svg()?)
}

pub(super) fn bars(lines: &[&Measured]) -> Bars {
    Bars {
        title: "How many times as good as kernel TCP".to_owned(),
        groups: lines
            .iter()
            .map(|line| group(line))
            .filter(|group| !group.bars.is_empty())
            .collect(),
    }
}

/// The medians of all sizes, a curve a way.
pub(super) fn curves(lines: &[&Measured]) -> Curves {
    let unit = lines.first().map_or("", |line| line.unit.name());
    let ways = Way::ALL.into_iter();
    let curves = ways.filter(|way| lines.iter().any(|line| line.way(*way).is_some()));
    let curves = curves.map(|way| {
        let points = lines.iter().filter_map(|line| {
            let median = line.way(way)?.spread?.median;
            Some((line.size? as f64, median))
        });
        Curve {
            name: way.title().to_owned(),
            points: points.collect(),
        }
    });
    Curves {
        x: ("message size".to_owned(), Scale::Bytes),
        y: (unit.to_owned(), Scale::Logarithmic),
        curves: curves.collect(),
    }
}

fn group(line: &Measured) -> Group {
    let looks = [
        (Way::Sovia, "both ends"),
        (Way::ServerOnly, "server only"),
        (Way::ClientOnly, "client only"),
    ];
    let bars = looks.into_iter().enumerate();
    let bars = bars.filter_map(|(hue, (way, name))| {
        let gains = line.way(way)?.gains?;
        Some(Bar {
            name: name.to_owned(),
            value: gains.median,
            spread: (gains.low < gains.high).then_some([gains.low, gains.high]),
            hue,
        })
    });
    Group {
        title: line.title.clone(),
        bars: bars.collect(),
    }
}
