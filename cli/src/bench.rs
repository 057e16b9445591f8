//! `sovia bench`: what sovia does for unmodified programs, against kernel TCP in the same run.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use line::Line;
use registry::{Extent, Row};
use report::Shown;
use session::Session;

mod aim;
mod chart;
mod crowd;
mod idle;
mod line;
mod many;
mod page;
mod pair;
mod peer;
mod place;
mod program;
mod ram;
mod redis;
pub(crate) mod registry;
mod report;
mod session;
mod short;
mod spread;
mod unit;
mod watched;
pub(crate) mod way;

pub(crate) use program::free_port;

use crate::error::{Context, Error, Result};
use crate::report::Files;

/// Measure, side by side
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct Bench {
    #[command(subcommand)]
    part: Option<Part>,
    /// Measure these only [default: all but what `sovia bench sockets` measures in more detail]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME", value_parser = crate::names::Name::<Row>::new())]
    only: Vec<Row>,
    /// List what there is to measure, by the names that --only takes
    #[arg(long, conflicts_with_all = ["only", "quick", "json", "html", "svg"])]
    list: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    Sockets(Sockets),
    PaperSovia(crate::paper::Options),
    PaperIwarp(crate::paper_iwarp::Options),
}

/// Unmodified programs under sovia against kernel TCP, row by row
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES_SOCKETS)]
pub(crate) struct Sockets {
    /// Rows to measure [default: all but those by size, and the programs but redis]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME", value_parser = crate::names::Name::<Row>::new())]
    row: Vec<Row>,
    #[command(flatten)]
    output: Output,
}

/// How long, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Take a quarter of the time or less, and figures that are less certain
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) files: Files,
    /// Draw the gains into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
TCP, Unix sockets and sovia take turns, so that a machine that changes its mind does so for all. Server and client are processes with a \
CPU of their own each, but for `pairs`. What is not installed is left out, and named. docs/bench.md tells what each measures.

Examples:
  sovia bench --quick
  sovia bench --html bench.html --json bench.json
  sovia bench --list
  sovia bench --only latency,bandwidth
  sovia bench --only nginx,pgbench";

const EXAMPLES_SOCKETS: &str = "\
Server and client are processes with a CPU of their own each, but for the rows `pairs`. The runs of the ways to be compared \
alternate. A figure is the best of the runs; of a run, the median of many short blocks, but with CPU hogs the whole.

Examples:
  sovia bench sockets
  sovia bench sockets --row pingpong epoll
  sovia bench sockets --row redis --json redis.json --svg redis.svg";

impl Bench {
    pub(crate) fn measures(&self) -> bool {
        !self.list
    }
}

/// `sovia bench`.
pub(crate) fn main(bench: &Bench) -> Result<()> {
    if bench.list {
        let written = io::stdout().write_all(rows().as_bytes());
        return written.context("standard output");
    }
    let (asked, all, output, shown) = match &bench.part {
        Some(Part::PaperSovia(options)) => return crate::paper::main(options),
        Some(Part::PaperIwarp(options)) => return crate::paper_iwarp::main(options),
        Some(Part::Sockets(options)) => {
            let all = &Row::SOCKETS[..];
            (&options.row, all, &options.output, Shown::Table)
        }
        None => (&bench.only, &Row::BENCH[..], &bench.output, Shown::Page),
    };
    let asked = crate::names::once(asked);
    let rows = if asked.is_empty() { all } else { &asked };
    let lines = rows.iter().flat_map(|row| row.lines(output.extent()));
    let lines = match shown {
        Shown::Table => lines.collect(),
        Shown::Page => lines.map(Line::beside_unix).collect(),
    };
    measure(lines, output, shown)
}

/// All that can be asked for, line by line.
fn rows() -> String {
    let values = Row::value_variants()
        .iter()
        .filter_map(Row::to_possible_value);
    let line = |value: PossibleValue| {
        let help = value.get_help().map(ToString::to_string);
        format!("{:<16}{}\n", value.get_name(), help.unwrap_or_default())
    };
    values.map(line).collect()
}

/// `sovia demo`.
pub(crate) fn demo(output: &Output) -> Result<()> {
    measure(registry::demo(), output, Shown::Table)
}

/// Measures `lines`, and writes what `output` asks for.
fn measure(lines: Vec<Line>, output: &Output, shown: Shown) -> Result<()> {
    output.check()?;
    let report = Session::new(output.extent())?.measure(lines)?;
    let words = std::env::args_os().skip(1);
    // A file may have a name that is no text.
    let words: Vec<_> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let page = report.page(&format!("sovia {}", words.join(" ")));
    let written = output.write(&report, &page, shown);
    match report.failures.len() {
        0 => written,
        failures => match written {
            Err(error) if !error.is_enough() => Err(error),
            _ => Err(Error::Unmeasured(failures)),
        },
    }
}

impl Output {
    fn extent(&self) -> Extent {
        if self.quick {
            Extent::Quick
        } else {
            Extent::Whole
        }
    }
}
