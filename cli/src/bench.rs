//! `sovia bench`: what sovia does for unmodified programs, against kernel TCP in the same run.

use std::path::PathBuf;

use line::Row;
use session::Session;

mod chart;
mod crowd;
mod idle;
pub(crate) mod line;
mod pair;
pub(crate) mod place;
mod redis;
pub(crate) mod report;
pub(crate) mod session;
mod unit;

use crate::error::{Error, Result};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    Sockets(Options),
    PaperSovia(crate::paper::Options),
}

/// Unmodified programs under sovia against kernel TCP, row by row
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Rows to measure [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME")]
    row: Vec<Row>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How long, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Take a quarter of the time, and figures that are less certain
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write all figures to this file, - for standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draw the gains into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Server and client are processes with a CPU of their own each, but for the rows `pairs`. The runs of the ways to be compared
alternate. A figure is the best of the runs; of a run, the median of many short blocks, but with CPU hogs the whole.

Examples:
  sovia bench sockets
  sovia bench sockets --row pingpong epoll
  sovia bench sockets --row redis --json redis.json --svg redis.svg";

/// `sovia bench`.
pub(crate) fn main(bench: &Bench) -> Result<()> {
    let options = match bench {
        Bench::Sockets(options) => options,
        Bench::PaperSovia(options) => return crate::paper::main(options),
    };
    let rows = if options.row.is_empty() {
        <Row as clap::ValueEnum>::value_variants()
    } else {
        &options.row
    };
    let lines = rows.iter().flat_map(|&row| line::lines_of(row)).collect();
    measure(lines, &options.output)
}

/// Measures `lines`, and writes what `output` asks for.
pub(crate) fn measure(lines: Vec<line::Line>, output: &Output) -> Result<()> {
    output.check()?;
    let report = Session::new(output.quick)?.measure(lines)?;
    output.write(&report)?;
    match report.failures.len() {
        0 => Ok(()),
        failures => Err(Error::Unmeasured(failures)),
    }
}
