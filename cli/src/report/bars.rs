use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::undrawable;
use crate::error::Result;
use crate::netpipe::table::significant;

/// Ratios as bars from 1, on a logarithmic axis.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) groups: Vec<Group>,
}

/// Bars under one name.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Least and most that the noise allows.
    pub(crate) spread: Option<[f64; 2]>,
    /// Bars of the same kind have the same, from 0.
    pub(crate) hue: usize,
}

impl Bars {
    /// As SVG; empty if there is no bar.
    pub(super) fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let values = || bars().map(|bar| bar.value).filter(|value| *value > 0.0);
        if values().next().is_none() {
            return Ok(svg);
        }
        let spreads = || bars().filter_map(|bar| bar.spread).flatten();
        let shown = || values().chain(spreads().filter(|value| *value > 0.0));
        let height = TOP + bars().count() as i32 * BAR + self.groups.len() as i32 * GAP + BOTTOM;
        let axis = Axis {
            low: shown().fold(0.5, f64::min),
            high: shown().fold(2.0, f64::max) * 1.3,
        };
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32))
                .into_drawing_area();
            root.fill(&WHITE).map_err(undrawable)?;
            let title = Text::new(self.title.as_str(), (LEFT, 12), font(16));
            root.draw(&title).map_err(undrawable)?;
            axis.draw(&root, height)?;
            let mut y = TOP;
            for group in &self.groups {
                y = group.draw(&root, &axis, y)?;
            }
            root.present().map_err(undrawable)?;
        }
        svg.push('\n');
        Ok(svg)
    }
}

impl Group {
    /// The first line below it.
    fn draw(&self, root: &Area<'_>, axis: &Axis, mut y: i32) -> Result<i32> {
        let middle = y + self.bars.len() as i32 * BAR / 2;
        let label = font(13).pos(Pos::new(HPos::Right, VPos::Center));
        let title = Text::new(self.title.as_str(), (LEFT - 10, middle), label);
        root.draw(&title).map_err(undrawable)?;
        for bar in &self.bars {
            let colour = HUES[bar.hue % HUES.len()];
            let ends = [(axis.x(1.0), y + 1), (axis.x(bar.value), y + BAR - 2)];
            root.draw(&Rectangle::new(ends, colour.filled()))
                .map_err(undrawable)?;
            let mut right = bar.value.max(1.0);
            if let Some([low, high]) = bar.spread {
                let whisker = [(axis.x(low), y + BAR / 2), (axis.x(high), y + BAR / 2)];
                root.draw(&PathElement::new(whisker, BLACK.mix(0.6)))
                    .map_err(undrawable)?;
                right = right.max(high);
            }
            let text = format!("{} × {}", significant(bar.value), bar.name);
            let label = font(11).pos(Pos::new(HPos::Left, VPos::Center));
            let beside = (axis.x(right) + 5, y + BAR / 2);
            root.draw(&Text::new(text, beside, label))
                .map_err(undrawable)?;
            y += BAR;
        }
        Ok(y + GAP)
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Logarithmic.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn draw(&self, root: &Area<'_>, height: i32) -> Result<()> {
        for value in DECADES.into_iter().filter(|value| self.holds(*value)) {
            let x = self.x(value);
            let shade = BLACK.mix(if value == 1.0 { 0.8 } else { 0.15 });
            let line = PathElement::new([(x, TOP - 6), (x, height - BOTTOM)], shade);
            root.draw(&line).map_err(undrawable)?;
            let label = font(12).pos(Pos::new(HPos::Center, VPos::Top));
            let below = (x, height - BOTTOM + 6);
            root.draw(&Text::new(format!("{value} ×"), below, label))
                .map_err(undrawable)?;
        }
        Ok(())
    }

    fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn x(&self, value: f64) -> i32 {
        let value = value.clamp(self.low, self.high);
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        LEFT + (part * f64::from(WIDTH - LEFT - RIGHT)) as i32
    }
}

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(WIDTH as u32, 100))
}

const DECADES: [f64; 8] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0];
const HUES: [RGBColor; 4] = [
    RGBColor(0, 140, 60),
    RGBColor(70, 120, 190),
    RGBColor(130, 165, 215),
    RGBColor(200, 120, 0),
];

// Pixels.
const WIDTH: i32 = 900;
const LEFT: i32 = 300;
const RIGHT: i32 = 110;
const TOP: i32 = 48;
const BOTTOM: i32 = 32;
const BAR: i32 = 16;
const GAP: i32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whiskers_are_whole() {
        let bar = Bar {
            name: "both ends".to_owned(),
            value: 2.0,
            spread: Some([0.1, 40.0]),
            hue: 0,
        };
        let bars = Bars {
            title: "Gains".to_owned(),
            groups: vec![Group {
                title: "redis".to_owned(),
                bars: vec![bar],
            }],
        };
        let svg = bars.svg().expect("it can be drawn");
        let middle = TOP + BAR / 2;
        let whisker = format!("points=\"{LEFT},{middle} 769,{middle} \"");
        assert!(svg.contains(&whisker), "{whisker} in {svg}");
    }
}
