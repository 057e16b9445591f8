//! The NetPIPE method: messages of growing sizes between two processes, over each transport in turn in the same run.

use std::io::{self, Write};

use crate::error::{Context, Result};
use crate::output::{STDOUT, check_all_writable, check_is_file, worse, write_whole};
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
    check_is_file("--svg", options.svg.as_ref())?;
    check_all_writable([&options.json, &options.svg].into_iter().flatten())?;
    let report = session.measure()?;
    let json = report.json()?;
    let mut stdout = io::stdout().lock();
    let file = options.json.as_ref();
    let file = file.filter(|path| path.as_os_str() != STDOUT);
    let mut written = match (&options.json, file) {
        (Some(_), None) => writeln!(stdout, "{json}"),
        _ => write!(stdout, "{report}"),
    }
    .and_then(|()| stdout.flush())
    .context("standard output");
    if let Some(path) = file {
        written = worse(written, write_whole(path, json));
    }
    if let Some(path) = &options.svg {
        written = worse(written, plot::draw(&report, path));
        if !report.transfer_sizes().is_empty() {
            let beside = plot::beside(path, "mtu");
            written = worse(written, plot::draw_mtu(&report, &beside));
        }
    }
    written
}
