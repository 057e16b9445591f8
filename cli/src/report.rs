//! One report for whatever measures: sections with a table, plots and words, as text for a terminal and as one HTML page.
//!
//! A command builds a [`Page`] and is done: `page.to_string()` is the terminal's text, [`Page::html`] the page with its plots
//! inside, [`Files`] writes both. What stands in a table is text; only plots are given numbers.

use std::fmt;

pub(crate) use bars::{Bar, Bars, Group};
pub(crate) use curves::{Curve, Curves, Scale};
pub(crate) use files::Files;
pub(crate) use table::Table;

use crate::error::{Error, Result};

mod bars;
mod curves;
mod files;
mod html;
mod table;

/// Everything that one command has to say.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// What is to be known before the figures are read, a paragraph each.
    pub(crate) before: Vec<String>,
    pub(crate) sections: Vec<Section>,
    /// What was left out or failed, and why; a line each.
    pub(crate) notes: Vec<String>,
    /// The machine, and the command that does it again.
    pub(crate) foot: Vec<String>,
}

/// A figure of the report, or several that belong together.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// Left out on a terminal.
    pub(crate) plots: Vec<Plot>,
    pub(crate) table: Option<Table>,
    /// Under it, a paragraph each.
    pub(crate) words: Vec<String>,
}

/// A drawing.
#[derive(Debug)]
pub(crate) enum Plot {
    Curves(Curves),
    Bars(Bars),
}

impl Page {
    /// The page with its plots within it: one file, no scripts, nothing from elsewhere.
    ///
    /// # Errors
    /// A plot cannot be drawn.
    pub(crate) fn html(&self) -> Result<String> {
        html::page(self)
    }
}

impl Plot {
    /// As SVG; empty if there is nothing to see.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub(crate) fn svg(&self) -> Result<String> {
        match self {
            Self::Curves(curves) => curves.svg(),
            Self::Bars(bars) => bars.svg(),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for paragraph in &self.before {
            writeln!(f, "{}\n", wrapped(paragraph))?;
        }
        for section in &self.sections {
            writeln!(f, "{}", section.title)?;
            if let Some(table) = &section.table {
                writeln!(f, "{table}")?;
            }
            for paragraph in &section.words {
                writeln!(f, "{}", wrapped(paragraph))?;
            }
            writeln!(f)?;
        }
        for line in self.notes.iter().chain(&self.foot) {
            writeln!(f, "{}", wrapped(line))?;
        }
        Ok(())
    }
}

/// In lines that a terminal shows without breaking words.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::with_capacity(paragraph.len());
    let mut column = 0;
    for word in paragraph.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

const COLUMNS: usize = 120;

fn undrawable(error: impl fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut table = Table::new(["size", "TCP", "sovia"]);
        table.row(["1", "25.0 µs", "0.250 µs"]);
        table.row(["64k", "<40 µs>", "-"]);
        let curve = |name: &str, points: &[(f64, f64)]| Curve {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        let curves = Curves {
            x: ("message size".to_owned(), Scale::Bytes),
            y: ("µs".to_owned(), Scale::Logarithmic),
            curves: vec![
                curve("TCP", &[(1.0, 25.0), (65_536.0, 40.0)]),
                curve("sovia", &[(1.0, 0.25), (65_536.0, f64::NAN)]),
            ],
        };
        let bars = Bars {
            title: "Gains".to_owned(),
            groups: vec![Group {
                title: "redis & co.".to_owned(),
                bars: vec![Bar {
                    name: "both ends".to_owned(),
                    value: 9.5,
                    spread: Some([8.0, 11.0]),
                    hue: 1,
                }],
            }],
        };
        Page {
            title: "Figures".to_owned(),
            before: vec!["Read me first.".to_owned()],
            sections: vec![Section {
                title: "By size".to_owned(),
                plots: vec![Plot::Curves(curves), Plot::Bars(bars)],
                table: Some(table),
                words: vec!["It is 100 × for a < b.".to_owned()],
            }],
            notes: vec!["nginx is not installed.".to_owned()],
            foot: vec!["machine: Model".to_owned()],
        }
    }

    #[test]
    fn the_text() {
        insta::assert_snapshot!(page());
    }

    #[test]
    fn the_page() {
        insta::assert_snapshot!(page().html().expect("it can be drawn"));
    }

    #[test]
    fn nothing_makes_no_plot() {
        let curves = Curves {
            x: (String::new(), Scale::Linear),
            y: (String::new(), Scale::Linear),
            curves: Vec::new(),
        };
        assert_eq!(curves.svg().expect("nothing is easy"), "");
        let bars = Bars {
            title: String::new(),
            groups: Vec::new(),
        };
        assert_eq!(bars.svg().expect("nothing is easy"), "");
    }

    #[test]
    fn each_pair_of_scales_can_be_drawn() {
        let scales = [Scale::Bytes, Scale::Logarithmic, Scale::Linear];
        for x in scales {
            for y in scales {
                let curves = Curves {
                    x: ("x".to_owned(), x),
                    y: ("y".to_owned(), y),
                    curves: vec![Curve {
                        name: "curve".to_owned(),
                        // One point alone, and nought where a logarithm has none.
                        points: vec![(1.0, 2.0), (0.0, 0.0)],
                    }],
                };
                let svg = curves.svg().expect("it can be drawn");
                assert!(svg.contains("<svg"), "{x:?} {y:?}");
            }
        }
    }
}
