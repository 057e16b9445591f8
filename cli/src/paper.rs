//! `sovia bench paper-sovia`: the figures of the SOVIA paper, redone.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::error::{Context, Error, Result};
use crate::machine::{self, Conditions};
use crate::netpipe;
use crate::netpipe::plan::Placement;
use crate::process::{Process, Said, myself};
use crate::run::PRELOAD;
use crate::run::library::Library;
use end::Figure;
use report::{Report, Run};
use way::Way;

pub(crate) mod end;
mod page;
mod plain;
mod report;
mod way;
mod words;

/// Figure 9 of the SOVIA paper: TCP, a VI itself, each version of SOVIA, and the ring, in one run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Ways to measure [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME")]
    way: Vec<Way>,
    /// Take a quarter of the time, and figures that are less certain
    #[arg(long)]
    quick: bool,
    /// Write the report, with plots, to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write all figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Two processes with a CPU of their own each. The ways take turns, three times; a figure is the best of the runs, and of a run the median of
short blocks. A VI and SOVIA poll, as in the paper's figure; programs over TCP and over the ring do what they do.

Examples:
  sovia bench paper-sovia --html paper.html
  sovia bench paper-sovia --way native,single,dacks --json paper.json";

/// `sovia bench paper-sovia`.
pub(crate) fn main(options: &Options) -> Result<()> {
    for path in [&options.html, &options.json].into_iter().flatten() {
        crate::output::check_writable(path)?;
    }
    let ways = if options.way.is_empty() {
        &Way::ALL[..]
    } else {
        &options.way
    };
    let before = machine::measure()?;
    let cpus = machine::cpus(Placement::Two)?;
    let mut runs = Vec::new();
    let mut failures = Vec::new();
    let blocking = ways
        .iter()
        .filter(|way| way.variant().is_some() || **way == Way::Native);
    let plan: Vec<(Way, bool)> = ways
        .iter()
        .map(|&way| (way, false))
        .chain(blocking.map(|&way| (way, true)))
        .collect();
    let progress = netpipe::progress(plan.len() * ROUNDS);
    for _ in 0..ROUNDS {
        for &(way, block) in &plan {
            progress.set_message(format!("{} · ", way.title()));
            match measure(way, block, options.quick, cpus) {
                Ok(figures) => runs.push(Run {
                    way,
                    block,
                    figures,
                }),
                // The others may still be of use.
                Err(error) => failures.push(format!("{}: {error}", way.title())),
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let report = Report::new(&runs, Conditions::since(before)?, options.quick, failures);
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&report).context("encoding the report")?;
        std::fs::write(path, json).map_err(crate::output::unwritable(path))?;
    }
    report.page().write(options.html.as_deref())?;
    match report.failures.len() {
        0 => Ok(()),
        failures => Err(Error::Unmeasured(failures)),
    }
}

/// One way, in two fresh processes.
fn measure(way: Way, block: bool, quick: bool, cpus: [usize; 2]) -> Result<Vec<Figure>> {
    let start = |cpu: usize, dial: Option<&str>| {
        let mut command = myself();
        command.args([end::COMMAND, "--way", way.word(), "--cpu", &cpu.to_string()]);
        command.args(block.then_some(["--block", "--short"]).iter().flatten());
        command.args(quick.then_some("--quick"));
        command.args(dial.map(|address| ["--dial", address]).iter().flatten());
        if way == Way::Ring {
            let library = Library::find().map_err(crate::run::Error::from)?;
            command.env(
                PRELOAD,
                library.before(std::env::var_os(PRELOAD).as_deref()),
            );
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Process::start(&mut command)
    };
    let (mut server, address) = {
        let mut server = start(cpus[0], None)?;
        let address = line(&mut server)?;
        (server, address)
    };
    let mut client = start(cpus[1], Some(&address))?;
    let figures = line(&mut client)?;
    client.wait()?;
    drop(client);
    drop(server.pipes());
    serde_json::from_str(&figures).map_err(|_| Error::Protocol {
        from: "a measuring process",
        what: figures,
    })
}

fn line(process: &mut Process) -> Result<String> {
    let stdout = process.stdout().ok_or(Error::Closed)?;
    let mut line = String::new();
    BufReader::new(Said::new(stdout, SILENCE_MAX)?)
        .read_line(&mut line)
        .context("a measuring process")?;
    match line.trim() {
        "" => Err(Error::Closed),
        said => Ok(said.to_owned()),
    }
}

const ROUNDS: usize = 3;
const SILENCE_MAX: Duration = Duration::from_secs(60);
