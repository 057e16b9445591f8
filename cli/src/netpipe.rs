//! The NetPIPE method: messages of growing sizes between two processes, over each transport in turn in the same run.

use std::io::{self, Write};

use crate::error::{Context, Result};
use crate::output::{STDOUT, check_writable, unwritable};
use session::Session;

pub(crate) mod options;
pub(crate) mod pair;
pub(crate) mod pipe;
pub(crate) mod plan;
mod plot;
pub(crate) mod report;
mod run;
mod session;
pub(crate) mod side;
mod socket;
pub(crate) mod table;
pub(crate) mod tcp;
mod unix;
pub(crate) mod vi;

pub(crate) use options::Options;
pub(crate) use session::progress;
pub(crate) use tcp::{congestion, set_congestion};

/// The hidden command that a measuring process is started with.
pub(crate) const SIDE_COMMAND: &str = "netpipe-side";

/// `sovia vi netpipe`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let session = Session::new(options)?;
    for path in [&options.json, &options.svg].into_iter().flatten() {
        check_writable(path)?;
    }
    let report = session.measure()?;
    if let Some(path) = &options.svg {
        plot::draw(&report, path)?;
        if !report.transfer_sizes().is_empty() {
            plot::draw_mtu(&report, &plot::beside(path, "mtu"))?;
        }
    }
    let mut stdout = io::stdout().lock();
    match &options.json {
        Some(path) if path.as_os_str() == STDOUT => {
            return writeln!(stdout, "{}", report.json()?).context("standard output");
        }
        Some(path) => std::fs::write(path, report.json()?).map_err(unwritable(path))?,
        None => {}
    }
    write!(stdout, "{report}").context("standard output")
}
