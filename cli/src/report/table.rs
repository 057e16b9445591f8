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
