//! The gains, as SVG: a bar a line and way, on a logarithmic axis.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::place::Ends;
use super::report::{Measured, Report};
use crate::error::{Error, Result};
use crate::netpipe::table::significant;

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let groups: Vec<_> = report.lines.iter().map(Group::of).collect();
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = TOP + bars as i32 * BAR + groups.len() as i32 * GAP + BOTTOM;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(plot)?;
    let gains = || groups.iter().flat_map(|group| &group.bars).map(|bar| bar.1);
    let axis = Axis {
        low: gains().fold(0.5, f64::min),
        high: gains().fold(2.0, f64::max) * 1.3,
    };
    let title = "Unmodified programs: how many times as good as kernel TCP";
    root.draw(&Text::new(title, (LEFT, 12), font(16)))
        .map_err(plot)?;
    for gain in DECADES.into_iter().filter(|gain| axis.holds(*gain)) {
        let x = axis.x(gain);
        let style = if gain == 1.0 {
            BLACK.mix(0.8)
        } else {
            BLACK.mix(0.15)
        };
        let line = PathElement::new([(x, TOP - 6), (x, height - BOTTOM)], style);
        root.draw(&line).map_err(plot)?;
        let label = font(12).pos(Pos::new(HPos::Center, VPos::Top));
        root.draw(&Text::new(
            format!("{gain} ×"),
            (x, height - BOTTOM + 6),
            label,
        ))
        .map_err(plot)?;
    }
    let mut y = TOP;
    for group in &groups {
        let middle = y + group.bars.len() as i32 * BAR / 2;
        let label = font(13).pos(Pos::new(HPos::Right, VPos::Center));
        root.draw(&Text::new(group.title.clone(), (LEFT - 10, middle), label))
            .map_err(plot)?;
        for &(ends, gain) in &group.bars {
            let (name, colour) = look(ends);
            let ends = [(axis.x(1.0), y + 1), (axis.x(gain), y + BAR - 2)];
            root.draw(&Rectangle::new(ends, colour.filled()))
                .map_err(plot)?;
            let beside = (axis.x(gain.max(1.0)) + 5, y + BAR / 2);
            let text = format!("{} × {name}", significant(gain));
            let label = font(11).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(text, beside, label)).map_err(plot)?;
            y += BAR;
        }
        y += GAP;
    }
    root.present().map_err(plot)
}

/// The bars of one line.
struct Group {
    title: String,
    bars: Vec<(Ends, f64)>,
}

impl Group {
    fn of(line: &Measured) -> Self {
        let bars = [Ends::Both, Ends::Server, Ends::Client]
            .into_iter()
            .filter_map(|ends| Some((ends, line.gain(ends)?)));
        Self {
            title: line.title.clone(),
            bars: bars.collect(),
        }
    }
}

/// Logarithmic.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn holds(&self, gain: f64) -> bool {
        (self.low..=self.high).contains(&gain)
    }

    fn x(&self, gain: f64) -> i32 {
        let part = (gain / self.low).ln() / (self.high / self.low).ln();
        LEFT + (part * f64::from(WIDTH - LEFT - RIGHT)) as i32
    }
}

fn look(ends: Ends) -> (&'static str, RGBColor) {
    match ends {
        Ends::Neither => ("neither", RED),
        Ends::Both => ("both ends", RGBColor(0, 140, 60)),
        Ends::Server => ("server only", RGBColor(70, 120, 190)),
        Ends::Client => ("client only", RGBColor(130, 165, 215)),
    }
}

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(WIDTH as u32, 100))
}

fn plot(error: impl std::fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

const DECADES: [f64; 8] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0];

// Pixels.
const WIDTH: i32 = 900;
const LEFT: i32 = 300;
const RIGHT: i32 = 110;
const TOP: i32 = 48;
const BOTTOM: i32 = 32;
const BAR: i32 = 16;
const GAP: i32 = 8;
