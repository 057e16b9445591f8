//! The report's curves, as SVG.

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use super::plan::{Column, Pattern, Transport, Wait};
use super::report::{Report, Row};
use super::table::bytes;
use super::vi::MTU_DEFAULT;
use crate::error::{Error, Result};

/// One line of panels a placement: throughput, and time for one message.
pub(crate) fn draw(report: &Report, path: &Path) -> Result<()> {
    let placements = report.placements();
    let panels = if report.pattern == Pattern::PingPong {
        2
    } else {
        1
    };
    let size = (PANEL.0 * panels as u32, PANEL.1 * placements.len() as u32);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE).map_err(plot)?;
    let areas = root.split_evenly((placements.len(), panels));
    for (areas, &placement) in areas.chunks(panels).zip(&placements) {
        let curves = Curves::of(report, &report.compared(placement), look);
        let title = format!("Throughput, {placement}");
        curves.draw(&areas[0], &title, GIGABYTES)?;
        if let Some(area) = areas.get(1) {
            curves.draw(area, &format!("One-way time, {placement}"), MICROS)?;
        }
    }
    root.present().map_err(plot)
}

/// Throughput of the VI by maximum transfer size: the paper's section 5.3.
pub(crate) fn draw_mtu(report: &Report, path: &Path) -> Result<()> {
    let root = SVGBackend::new(path, PANEL).into_drawing_area();
    root.fill(&WHITE).map_err(plot)?;
    let columns = report.transfer_sizes();
    let curves = Curves::of(report, &columns, |column| {
        let at = columns
            .iter()
            .position(|other| *other == column)
            .unwrap_or(0);
        let style = Palette99::pick(at).stroke_width(2);
        (bytes(column.mtu.unwrap_or(MTU_DEFAULT) as usize), style)
    });
    let title = columns.first().map_or(String::new(), |column| {
        format!(
            "Effect of the maximum transfer size, VI {}, {}",
            column.wait, column.placement
        )
    });
    curves.draw(&root, &title, GIGABYTES)?;
    root.present().map_err(plot)
}

/// `curves.svg` and `mtu` make `curves-mtu.svg`.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path
        .extension()
        .map_or_else(|| "svg".into(), |extension| extension.to_string_lossy());
    path.with_file_name(format!("{stem}-{name}.{extension}"))
}

/// What stands on the vertical axis.
#[derive(Clone, Copy)]
struct Axis {
    name: &'static str,
    value: fn(&Row) -> f64,
    logarithmic: bool,
}

const GIGABYTES: Axis = Axis {
    name: "GB/s",
    value: Row::gigabytes_per_s,
    logarithmic: false,
};
const MICROS: Axis = Axis {
    name: "µs",
    value: |row| row.best_ns() / 1e3,
    logarithmic: true,
};

struct Curves {
    curves: Vec<Curve>,
}

struct Curve {
    name: String,
    style: ShapeStyle,
    rows: Vec<Row>,
}

impl Curves {
    fn of(
        report: &Report,
        columns: &[Column],
        look: impl Fn(Column) -> (String, ShapeStyle),
    ) -> Self {
        let curve = |&column: &Column| {
            let (name, style) = look(column);
            Curve {
                name,
                style,
                rows: report.curve(column).cloned().collect(),
            }
        };
        Self {
            curves: columns.iter().map(curve).collect(),
        }
    }

    fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        title: &str,
        axis: Axis,
    ) -> Result<()> {
        let rows = || self.curves.iter().flat_map(|curve| &curve.rows);
        let sizes = rows().map(|row| row.size as f64);
        let [left, right] = bounds(sizes);
        let [low, high] = bounds(rows().map(axis.value));
        let mut chart = ChartBuilder::on(area);
        chart
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60);
        let sizes = (left..right * 1.05).log_scale().base(2.0);
        // The two kinds of axis are of different types.
        if axis.logarithmic {
            let values = (low * 0.8..high * 1.2).log_scale();
            self.fill(chart.build_cartesian_2d(sizes, values).map_err(plot)?, axis)
        } else {
            self.fill(
                chart
                    .build_cartesian_2d(sizes, 0.0..high * 1.1)
                    .map_err(plot)?,
                axis,
            )
        }
    }

    fn fill<'a, X, Y>(&self, mut chart: Chart<'a, X, Y>, axis: Axis) -> Result<()>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        chart
            .configure_mesh()
            .x_desc("bytes")
            .y_desc(axis.name)
            .x_labels(13)
            .x_label_formatter(&|size| bytes(size.round() as usize))
            .light_line_style(WHITE)
            .draw()
            .map_err(plot)?;
        for curve in &self.curves {
            let style = curve.style;
            let points = curve
                .rows
                .iter()
                .map(|row| (row.size as f64, (axis.value)(row)));
            chart
                .draw_series(LineSeries::new(points, style).point_size(if style.filled {
                    2
                } else {
                    0
                }))
                .map_err(plot)?
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(plot)
    }
}

type Chart<'a, X, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>;

/// A colour a transport, and one for the adaptive VI; blocking is paler and dotted.
fn look(column: Column) -> (String, ShapeStyle) {
    let colour = match column.transport {
        Transport::Tcp => RED,
        Transport::Unix => BLUE,
        Transport::Vi => RGBColor(0, 140, 60),
    };
    let style = match column.wait {
        Wait::Poll => colour.stroke_width(2),
        Wait::Adaptive => RGBColor(200, 120, 0).stroke_width(2),
        Wait::Block => ShapeStyle {
            filled: true,
            ..colour.mix(0.5).stroke_width(2)
        },
    };
    (column.to_string(), style)
}

/// Least and greatest; 1 and 2 where there is nothing.
fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = values.fold([f64::INFINITY, 0.0], |[low, high], value| {
        [low.min(value), high.max(value)]
    });
    if low < high {
        [low, high]
    } else {
        [1.0, high.max(2.0)]
    }
}

fn plot(error: impl std::fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

/// Pixels.
const PANEL: (u32, u32) = (720, 420);
