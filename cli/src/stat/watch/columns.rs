//! Which columns the live view has on a terminal of some width. The path, and why, is what people look for: it is there to the last.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::widgets::{Cell, Row};

use super::super::rates::{Lively, PAST};
use super::super::table;

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// Of each address; 0 for none.
    ends: u16,
    /// Whether an address of the loopback is its port only.
    short: bool,
    flow: Flow,
    calls: bool,
    sleeps: bool,
    /// Of the sparkline; 0 for none.
    bars: u16,
}

/// What of the bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Nothing,
    Sum,
    Each,
}

impl Columns {
    /// As much as there is room for beside a path that can be read.
    pub(super) fn fitting(width: u16, lines: &[Lively]) -> Self {
        let connections = lines.is_empty() || lines.iter().any(|line| line.ends.is_some());
        let whole = Self {
            ends: if connections { ENDS_WHOLE } else { 0 },
            short: false,
            flow: Flow::Each,
            calls: true,
            sleeps: true,
            bars: PAST as u16,
        };
        let summed = Self {
            flow: Flow::Sum,
            sleeps: false,
            ..whole
        };
        let short = Self {
            ends: if connections { longest(lines) } else { 0 },
            short: true,
            ..summed
        };
        let few = Self {
            calls: false,
            ..short
        };
        let bare = Self {
            flow: Flow::Nothing,
            ..few
        };
        let unswept = Self { bars: 0, ..bare };
        let each = [
            whole,
            Self {
                sleeps: false,
                ..whole
            },
            summed,
            short,
        ]
        .into_iter();
        let shrinking = |columns: Self| {
            let bars = (BARS_LEAST..=PAST as u16).rev();
            bars.map(move |bars| Self { bars, ..columns })
        };
        each.chain(shrinking(few))
            .chain(shrinking(bare))
            .find(|columns| columns.least() <= width)
            .unwrap_or_else(|| {
                // Cut addresses say something, too.
                let missing = unswept.least().saturating_sub(width);
                Self {
                    ends: unswept.ends.saturating_sub(missing.div_ceil(2)),
                    ..unswept
                }
            })
    }

    /// Their widths, titles and values. The path takes what the others leave, which 0 says.
    fn each(&self) -> Vec<(u16, &'static str, Value)> {
        let mut columns: Vec<(u16, &'static str, Value)> = vec![
            (7, "pid", |_, line| format!("{:>7}", line.pid)),
            (15, "program", |_, line| line.program.clone()),
        ];
        if self.ends > 0 {
            columns.push((self.ends, "local", |columns, line| columns.address(line, 0)));
            columns.push((self.ends, "peer", |columns, line| columns.address(line, 1)));
        }
        columns.push((0, "path", |_, line| line.way.clone()));
        match self.flow {
            Flow::Nothing => {}
            Flow::Sum => columns.push((10, "   bytes/s", |_, line| rate(line.rate.bytes(), 10))),
            Flow::Each => {
                columns.push((11, "     sent/s", |_, line| rate(line.rate.sent, 11)));
                columns.push((11, " received/s", |_, line| rate(line.rate.received, 11)));
            }
        }
        if self.calls {
            columns.push((9, "  calls/s", |_, line| {
                format!("{:>9.0}", line.rate.calls)
            }));
        }
        if self.sleeps {
            columns.push((8, "sleeps/s", |_, line| {
                format!("{:>8.0}", line.rate.sleeps)
            }));
        }
        if self.bars > 0 {
            let title = match self.flow {
                Flow::Sum => "",
                _ => "bytes/s",
            };
            columns.push((self.bars, title, |columns, line| {
                sparkline(&line.past, columns.bars.into())
            }));
        }
        columns
    }

    /// The width that all this takes, with a space between each and the next.
    fn least(&self) -> u16 {
        let columns = self.each();
        let widths: u16 = columns.iter().map(|(width, ..)| width).sum();
        widths + WAY_LEAST + columns.len() as u16 - 1
    }

    pub(super) fn widths(&self) -> Vec<Constraint> {
        let columns = self.each().into_iter();
        let widths = columns.map(|(width, ..)| match width {
            0 => Constraint::Fill(1),
            width => Constraint::Length(width),
        });
        widths.collect()
    }

    pub(super) fn header(&self) -> Row<'static> {
        self.each().into_iter().map(|(_, title, _)| title).collect()
    }

    pub(super) fn row(&self, line: &Lively) -> Row<'static> {
        let style = match line.way.starts_with("tcp") {
            true => Style::new().yellow(),
            false => Style::new(),
        };
        let cells = self.each().into_iter();
        let cells = cells.map(|(_, _, value)| Cell::from(value(self, line)));
        Row::new(cells).style(style)
    }

    fn address(&self, line: &Lively, end: usize) -> String {
        let Some((local, peer)) = line.ends else {
            return String::new();
        };
        let address = if end == 0 { local } else { peer };
        let text = match self.short {
            true => short(address),
            false => address.to_string(),
        };
        // The port says most.
        match text.len().checked_sub(self.ends.into()) {
            None | Some(0) => text,
            Some(over) => format!("…{}", text.get(over + 1..).unwrap_or_default()),
        }
    }
}

/// What stands in a line.
type Value = fn(&Columns, &Lively) -> String;

fn rate(bytes: f64, width: usize) -> String {
    format!("{:>width$}", table::bytes(bytes as u64))
}

/// An end on the loopback is told by its port.
fn short(address: SocketAddr) -> String {
    let usual = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip == Ipv4Addr::LOCALHOST,
        IpAddr::V6(ip) => ip == Ipv6Addr::LOCALHOST,
    };
    match usual {
        true => format!(":{}", address.port()),
        false => address.to_string(),
    }
}

fn longest(lines: &[Lively]) -> u16 {
    let ends = lines.iter().filter_map(|line| line.ends);
    let each = ends.flat_map(|(local, peer)| [short(local).len(), short(peer).len()]);
    let longest = each.max().unwrap_or_default() as u16;
    longest.clamp(PORT, ENDS_WHOLE)
}

/// The latest at the right; the highest bar is the line's own most.
fn sparkline(past: &[f64], width: usize) -> String {
    let past = past
        .get(past.len().saturating_sub(width)..)
        .unwrap_or_default();
    let most = past.iter().copied().fold(0.0, f64::max);
    let bars: String = past
        .iter()
        .map(|&value| {
            let eighths = if most > 0.0 { value / most * 8.0 } else { 0.0 };
            BARS.get(eighths.ceil() as usize).copied().unwrap_or('█')
        })
        .collect();
    format!("{bars:>width$}")
}

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BARS_LEAST: u16 = 6;
/// `tcp 6 peer-without-sovia`.
const WAY_LEAST: u16 = 24;
/// `255.255.255.255:65535`.
const ENDS_WHOLE: u16 = 21;
/// `:65535`.
const PORT: u16 = 6;
