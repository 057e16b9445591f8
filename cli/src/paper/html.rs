//! The report as one page: tables, and plots within it.

use std::fmt::Write;

use plotters::prelude::*;

use super::end::What;
use super::report::{Report, value};
use super::words;
use crate::error::{Error, Result};
use crate::netpipe::table::bytes;

/// The page.
pub(super) fn page(report: &Report) -> Result<String> {
    let mut page = String::from(HEAD);
    let parts = [
        (
            "Figure 9(a): latency",
            Some(What::Latency),
            words::UNDER_LATENCY,
        ),
        (
            "Figure 9(b): bandwidth",
            Some(What::Bandwidth),
            words::UNDER_BANDWIDTH,
        ),
        ("The paper's ratios beside ours", None, words::UNDER_WAITING),
    ];
    for (title, what, under) in parts {
        page.push_str(&format!("<h2>{title}</h2>\n"));
        let table = match what {
            Some(what) => {
                page.push_str(&plot(report, what)?);
                report.rows(what)
            }
            None => report.ratios(),
        };
        page.push_str(&tabulate(table));
        page.push_str(&format!("<p>{}</p>\n", escaped(under)));
    }
    for line in report
        .failures
        .iter()
        .map(String::as_str)
        .chain([words::LEFT_OUT])
    {
        page.push_str(&format!("<p>{}</p>\n", escaped(line)));
    }
    page.push_str(&format!(
        "<p class=small>{}. `sovia bench paper-sovia`</p>\n",
        escaped(&report.conditions.to_string())
    ));
    Ok(page)
}

fn tabulate((header, rows): (Vec<String>, Vec<Vec<String>>)) -> String {
    let mut html = String::from("<table>\n<tr>");
    for cell in header {
        html.push_str(&format!("<th>{}</th>", escaped(&cell)));
    }
    for row in rows {
        html.push_str("</tr>\n<tr>");
        for cell in row {
            html.push_str(&format!("<td>{}</td>", escaped(&cell)));
        }
    }
    html.push_str("</tr>\n</table>\n");
    html
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// Both axes logarithmic.
fn plot(report: &Report, what: What) -> Result<String> {
    let mut svg = String::new();
    let curves: Vec<_> = report.ways.iter().filter(|curve| !curve.block).collect();
    let points = |curve: &super::report::Curve| -> Vec<(f64, f64)> {
        let figures = curve.figures.iter().filter(|figure| figure.what == what);
        figures
            .map(|figure| (figure.bytes as f64, value(what, figure.bytes, figure.ns)))
            .collect()
    };
    let all: Vec<_> = curves
        .iter()
        .flat_map(|curve| points(curve))
        .filter(|point| point.1.is_finite() && point.1 > 0.0)
        .collect();
    if all.is_empty() {
        return Ok(svg);
    }
    let over = |pick: fn((f64, f64)) -> f64| {
        let low = all.iter().copied().map(pick).fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().map(pick).fold(0.0, f64::max);
        low * 0.8..high * 1.25
    };
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(60)
            .build_cartesian_2d(
                over(|point| point.0).log_scale(),
                over(|point| point.1).log_scale(),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc("message size")
            .y_desc(if what == What::Latency {
                "µs one way"
            } else {
                "MB/s"
            })
            .x_label_formatter(&|size| bytes(*size as usize))
            .draw()
            .map_err(failed)?;
        for (at, curve) in curves.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            let line = LineSeries::new(points(curve), colour.stroke_width(2)).point_size(3);
            chart
                .draw_series(line)
                .map_err(failed)?
                .label(curve.way.title())
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .position(SeriesLabelPosition::UpperLeft)
            .draw()
            .map_err(failed)?;
        root.present().map_err(failed)?;
    }
    writeln!(svg).map_err(failed)?;
    Ok(svg)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

const SIZE: (u32, u32) = (860, 480);
const HEAD: &str = "<!doctype html>\n<meta charset=utf-8>\n<title>SOVIA's figures, redone</title>\n\
<style>body{font:15px/1.5 sans-serif;max-width:960px;margin:2em auto;padding:0 1em}table{border-collapse:collapse;font-size:13px}\
td,th{padding:2px 9px;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}.small{color:#666;font-size:13px}</style>\n\
<h1>SOVIA's figures, redone</h1>\n";
