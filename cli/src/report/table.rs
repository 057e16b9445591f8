use std::fmt;

use comfy_table::Cell;

use crate::netpipe::table::{new_table, right};

/// Cells of text; the first column names the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Self {
        Self {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells that are missing stay empty.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.header.len(), String::new());
        self.rows.push(cells);
    }

    /// The same without the columns in which no row says anything.
    pub(crate) fn without_empty_columns(self) -> Self {
        let used: Vec<bool> = (0..self.header.len())
            .map(|at| at == 0 || self.rows.iter().any(|row| !is_blank(&row[at])))
            .collect();
        let keep = |cells: Vec<String>| {
            let cells = cells.into_iter().zip(&used);
            cells.filter_map(|(cell, used)| used.then_some(cell))
        };
        Self {
            header: keep(self.header).collect(),
            rows: self
                .rows
                .into_iter()
                .map(|row| keep(row).collect())
                .collect(),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aligned = |cells: &[String]| -> Vec<Cell> {
            let cells = cells.iter().enumerate();
            cells
                .map(|(at, cell)| {
                    if at == 0 {
                        Cell::new(cell)
                    } else {
                        right(cell)
                    }
                })
                .collect()
        };
        let mut table = new_table();
        table.set_header(aligned(&self.header));
        for row in &self.rows {
            table.add_row(aligned(row));
        }
        table.fmt(f)
    }
}

fn is_blank(cell: &str) -> bool {
    matches!(cell, "" | "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_nothing_can_go() {
        let mut table = Table::new(["", "TCP", "Unix", "sovia"]);
        table.row(["a", "1", "-", "2"]);
        table.row(["b", "3"]);
        let mut expected = Table::new(["", "TCP", "sovia"]);
        expected.row(["a", "1", "2"]);
        expected.row(["b", "3"]);
        assert_eq!(table.without_empty_columns(), expected);
    }
}
