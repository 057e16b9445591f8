use std::ops::Range;

use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use super::undrawable;
use crate::error::Result;
use crate::netpipe::table::bytes;

/// Curves over one pair of axes.
#[derive(Clone, Debug)]
pub(crate) struct Curves {
    /// Name and scale.
    pub(crate) x: (String, Scale),
    pub(crate) y: (String, Scale),
    pub(crate) curves: Vec<Curve>,
}

/// One of them. Points that are not finite, or not above nought where the scale is logarithmic, are left out.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Logarithmic, in powers of two, and written as a size.
    Bytes,
    Logarithmic,
    /// From nought.
    Linear,
}

impl Curves {
    /// As SVG; empty if there is no point to see.
    pub(super) fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        let drawn = self.visible();
        let all = || drawn.iter().flat_map(|curve| &curve.points);
        if all().next().is_none() {
            return Ok(svg);
        }
        let x = span(all().map(|point| point.0), self.x.1);
        let y = span(all().map(|point| point.1), self.y.1);
        {
            let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            root.fill(&WHITE).map_err(undrawable)?;
            let mut chart = ChartBuilder::on(&root);
            chart.margin(12).x_label_area_size(40).y_label_area_size(64);
            // Each pair of scales is a type of its own.
            match (self.x.1, self.y.1) {
                (Scale::Linear, Scale::Linear) => {
                    self.fill(chart.build_cartesian_2d(x, y).map_err(undrawable)?, &drawn)?;
                }
                (Scale::Linear, _) => {
                    let area = chart.build_cartesian_2d(x, y.log_scale());
                    self.fill(area.map_err(undrawable)?, &drawn)?;
                }
                (scale, Scale::Linear) => {
                    let area = chart.build_cartesian_2d(x.log_scale().base(base(scale)), y);
                    self.fill(area.map_err(undrawable)?, &drawn)?;
                }
                (scale, _) => {
                    let x = x.log_scale().base(base(scale));
                    let area = chart.build_cartesian_2d(x, y.log_scale());
                    self.fill(area.map_err(undrawable)?, &drawn)?;
                }
            }
            root.present().map_err(undrawable)?;
        }
        svg.push('\n');
        Ok(svg)
    }

    fn visible(&self) -> Vec<Curve> {
        let on = |value: f64, scale| value.is_finite() && (scale == Scale::Linear || value > 0.0);
        let curves = self.curves.iter().map(|curve| Curve {
            name: curve.name.clone(),
            points: {
                let points = curve.points.iter().copied();
                points
                    .filter(|&(x, y)| on(x, self.x.1) && on(y, self.y.1))
                    .collect()
            },
        });
        curves.collect()
    }

    fn fill<'a, X, Y>(&self, mut chart: Chart<'a, X, Y>, curves: &[Curve]) -> Result<()>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let [x, y] = [self.x.1, self.y.1];
        chart
            .configure_mesh()
            .x_desc(&self.x.0)
            .y_desc(&self.y.0)
            .x_label_formatter(&|value| label(*value, x))
            .y_label_formatter(&|value| label(*value, y))
            .light_line_style(WHITE)
            .draw()
            .map_err(undrawable)?;
        for (at, curve) in curves.iter().enumerate() {
            let style = COLOURS[at % COLOURS.len()].stroke_width(2);
            chart
                .draw_series(LineSeries::new(curve.points.iter().copied(), style).point_size(3))
                .map_err(undrawable)?
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .position(SeriesLabelPosition::UpperLeft)
            .draw()
            .map_err(undrawable)
    }
}

type Chart<'a, X, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>;

/// A little more than what is to be seen.
fn span(values: impl Iterator<Item = f64>, scale: Scale) -> Range<f64> {
    let [low, high] = values.fold([f64::INFINITY, 0.0], |[low, high], value| {
        [low.min(value), high.max(value)]
    });
    match scale {
        Scale::Bytes => low..(high * 1.1).max(low * 2.0),
        Scale::Logarithmic => low * 0.8..high.max(low) * 1.25,
        Scale::Linear => low.min(0.0)..if high > 0.0 { high * 1.1 } else { 1.0 },
    }
}

fn base(scale: Scale) -> f64 {
    if scale == Scale::Bytes { 2.0 } else { 10.0 }
}

fn label(value: f64, scale: Scale) -> String {
    match scale {
        Scale::Bytes => bytes(value.round() as usize),
        // Rounded to what a label can show, and then as short as it goes.
        _ => ((value * 1e6).round() / 1e6).to_string(),
    }
}

/// Each tells itself from those before it, also on paper.
const COLOURS: [RGBColor; 8] = [
    RGBColor(200, 40, 40),
    RGBColor(60, 110, 190),
    RGBColor(0, 140, 60),
    RGBColor(220, 130, 0),
    RGBColor(130, 70, 170),
    RGBColor(0, 150, 160),
    RGBColor(140, 90, 50),
    RGBColor(90, 90, 90),
];
/// Pixels.
const SIZE: (u32, u32) = (860, 460);
