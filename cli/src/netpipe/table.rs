//! The report's tables, for a terminal.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::plan::{Column, Placement, Transport, Wait};
use super::report::{NOISY_MARK, Report, Row};
use super::vi::MTU_DEFAULT;

/// The paper's Table 1. The VI columns say themselves how they wait; the sockets, whose read and write always block in the
/// paper, have a line for each way, and the VI's figures stand in the first.
pub(crate) fn latency(report: &Report, size: usize) -> Table {
    let placements = report.placements();
    let mut table = new_table();
    let titles = placements.iter().flat_map(|&placement| {
        let group = match placement {
            Placement::One => "Uni-\nProcessor",
            Placement::Two => "Dual-\nProcessor",
        };
        [
            format!("{group}\nTCP"),
            "\n\nUnix".into(),
            "\nVI\npoll".into(),
            "\nVI\nblock".into(),
        ]
    });
    let first = ["\n\nNIC", "\n\nsockets"].map(str::to_owned);
    table.set_header(first.into_iter().chain(titles).map(right));
    for wait in [Wait::Block, Wait::Poll] {
        let figures = placements.iter().flat_map(|&placement| {
            PAPER_COLUMNS.iter().map(move |&(transport, vi_wait)| {
                let vi_again = vi_wait.is_some() && wait != Wait::Block;
                let column = Column {
                    transport,
                    wait: vi_wait.unwrap_or(wait),
                    placement,
                    mtu: None,
                };
                let row = report
                    .curve(column)
                    .find(|row| row.size == size && !vi_again);
                figure(row, |row| micros(row.best_ns()))
            })
        });
        let first = [right(report.nic), right(wait)];
        table.add_row(first.into_iter().chain(figures));
    }
    table
}

/// A line a size, a column each of `columns`.
pub(crate) fn throughput(report: &Report, columns: &[Column]) -> Table {
    let mut table = new_table();
    let titles = columns.iter().map(|column| match column.mtu {
        Some(mtu) => bytes(mtu as usize),
        None if columns.iter().any(|column| column.mtu.is_some()) => bytes(MTU_DEFAULT as usize),
        None => format!("{} {}", column.transport, column.wait),
    });
    table.set_header(std::iter::once("bytes".to_owned()).chain(titles).map(right));
    for size in shown(report, columns) {
        let figures = columns.iter().map(|&column| {
            let row = report.curve(column).find(|row| row.size == size);
            figure(row, |row| significant(row.gigabytes_per_s()))
        });
        table.add_row(std::iter::once(right(bytes(size))).chain(figures));
    }
    table
}

/// All sizes; of more than a screen full that nobody named the powers of two only.
fn shown(report: &Report, columns: &[Column]) -> Vec<usize> {
    let rows = report
        .rows
        .iter()
        .filter(|row| columns.contains(&row.column));
    let mut sizes: Vec<_> = rows.map(|row| row.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > SCREEN && !report.is_exact {
        sizes.retain(|size| size.is_power_of_two());
    }
    sizes
}

/// The columns of Table 1 for one placement, Unix sockets added; how sockets wait is the line's.
const PAPER_COLUMNS: [(Transport, Option<Wait>); 4] = [
    (Transport::Tcp, None),
    (Transport::Unix, None),
    (Transport::Vi, Some(Wait::Poll)),
    (Transport::Vi, Some(Wait::Block)),
];

/// Lines that still are a table and not a scroll.
const SCREEN: usize = 30;

pub(crate) fn new_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table
}

pub(crate) fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn figure(row: Option<&Row>, text: impl Fn(&Row) -> String) -> Cell {
    right(match row {
        None => "-".to_owned(),
        Some(row) if row.is_noisy() => format!("{}{NOISY_MARK}", text(row)),
        Some(row) => text(row),
    })
}

pub(crate) fn micros(ns: f64) -> String {
    significant(ns / 1e3)
}

/// Three significant digits, but no more than five after the point.
pub(crate) fn significant(value: f64) -> String {
    let decimals = (2.0 - value.max(1e-9).log10().floor()).clamp(0.0, 5.0);
    format!("{value:.0$}", decimals as usize)
}

/// 65536 as `64k`, 65539 as `65539`.
pub(crate) fn bytes(size: usize) -> String {
    match size {
        0 => "0".to_owned(),
        _ if size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        _ if size.is_multiple_of(1 << 10) => format!("{}k", size >> 10),
        _ => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers() {
        assert_eq!(
            [78.4, 1_234.0, 26_900.0, 123_456.0].map(micros),
            ["0.0784", "1.23", "26.9", "123"]
        );
        assert_eq!(
            [1, 1023, 65_536, 65_539, 8 << 20].map(bytes),
            ["1", "1023", "64k", "65539", "8M"]
        );
    }
}
