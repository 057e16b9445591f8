use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::Page;
use crate::error::{Context, Result};
use crate::output::{STDOUT, check_all_writable, check_is_file, worse, write_whole};

/// The files that figures go to, beside standard output.
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
    /// Whether they can be written, and another one, before anything is measured.
    pub(crate) fn check(&self, other: Option<&PathBuf>) -> Result<()> {
        check_is_file("--html", self.html.as_ref())?;
        let files = [self.html.as_ref(), self.json.as_ref(), other];
        check_all_writable(files.into_iter().flatten())
    }

    /// What is said to standard output first, where nothing can be in its way; then the page as HTML, and the figures as JSON. One
    /// that cannot be written keeps no other from it.
    pub(crate) fn write(
        &self,
        figures: &impl Serialize,
        page: &Page,
        said: &impl Display,
    ) -> Result<()> {
        let json = serde_json::to_string_pretty(figures).context("encoding the report")?;
        let mut stdout = io::stdout().lock();
        let file = self.json.as_ref().filter(|path| path.as_os_str() != STDOUT);
        let mut written = match (&self.json, file) {
            (Some(_), None) => writeln!(stdout, "{json}"),
            _ => write!(stdout, "{said}"),
        }
        .and_then(|()| stdout.flush())
        .context("standard output");
        if let Some(path) = &self.html {
            let html = page.html().and_then(|html| write_whole(path, html));
            written = worse(written, html);
        }
        if let Some(path) = file {
            written = worse(written, write_whole(path, json));
        }
        written
    }
}
