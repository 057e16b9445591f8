use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::Page;
use crate::error::{Context, Result};
use crate::output::{STDOUT, check_all_writable, unwritable};

/// The files that a paper's figures go to, beside standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// Write the report, with plots, to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write all figures to this file, - for standard output instead of the tables
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Files {
    /// Whether they can be written, before anything is measured.
    pub(crate) fn check(&self) -> Result<()> {
        check_all_writable([&self.html, &self.json].into_iter().flatten())
    }

    /// The figures as JSON, the page as HTML, and its text to standard output.
    pub(crate) fn write(&self, figures: &impl Serialize, page: &Page) -> Result<()> {
        if let Some(path) = &self.html {
            std::fs::write(path, page.html()?).map_err(unwritable(path))?;
        }
        let mut stdout = io::stdout().lock();
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(figures).context("encoding the report")?;
            if path.as_os_str() == STDOUT {
                return writeln!(stdout, "{json}").context("standard output");
            }
            std::fs::write(path, json).map_err(unwritable(path))?;
        }
        write!(stdout, "{page}").context("standard output")
    }
}
