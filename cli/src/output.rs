use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Says now, and not after minutes of measuring, that a file cannot be written.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    if path.as_os_str() == STDOUT {
        return Ok(());
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map(drop)
        .map_err(unwritable(path))
}

pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File {
        path: path.display().to_string(),
        source,
    }
}

/// In place of a file.
pub(crate) const STDOUT: &str = "-";
