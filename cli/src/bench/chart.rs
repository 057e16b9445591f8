//! What there is to see: gains as bars, and curves by size.

use std::path::Path;

use super::line::Point;
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

/// The medians, a curve a way; a plot for each of what lines differ by.
pub(super) fn curves(lines: &[&Measured]) -> Vec<Curves> {
    let mut axes: Vec<_> = lines.iter().filter_map(|line| axis(line)).collect();
    axes.dedup();
    let curves = axes.into_iter().map(|name| {
        let lines = lines.iter().copied();
        let lines: Vec<_> = lines.filter(|line| axis(line) == Some(name)).collect();
        along(name, &lines)
    });
    curves.collect()
}

fn axis(line: &Measured) -> Option<&'static str> {
    line.point.map(Point::axis)
}

fn along(axis: &str, lines: &[&Measured]) -> Curves {
    let unit = lines.first().map_or("", |line| line.unit.name());
    let ways = Way::ALL.into_iter();
    let curves = ways.filter(|way| lines.iter().any(|line| line.way(*way).is_some()));
    let curves = curves.map(|way| {
        let points = lines.iter().filter_map(|line| {
            let median = line.way(way)?.spread?.median;
            Some((line.point?.value() as f64, median))
        });
        Curve {
            name: way.title().to_owned(),
            points: points.collect(),
        }
    });
    Curves {
        // Messages come in powers of two, too, and so few are written as they are.
        x: (axis.to_owned(), Scale::Bytes),
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
