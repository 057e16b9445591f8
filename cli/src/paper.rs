//! `sovia bench paper-sovia`: the figures of the SOVIA paper, redone.

use std::process::Stdio;

use crate::error::{Error, Result};
use crate::machine::{self, Conditions};
use crate::netpipe;
use crate::netpipe::plan::Placement;
use crate::process::{Process, myself};
use crate::report::Files;
use crate::run::PRELOAD;
use crate::run::library::Library;
use crate::steps::{self, Figure};
use ftp::Transfer;
pub(crate) use ftp::reported;
use report::{Report, Run};
use rpc::Call;
use stage::Stage;
use way::Way;

pub(crate) mod end;
pub(crate) mod file;
mod ftp;
mod page;
mod plain;
mod report;
mod rpc;
mod stage;
mod sync;
mod table;
mod under;
mod way;
mod words;

/// The figures of the SOVIA paper: TCP, a VI itself, each version of SOVIA, and the ring, in one run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Parts to measure [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "PART", value_parser = crate::names::Name::<Part>::new())]
    part: Vec<Part>,
    /// Ways to measure for Figure 9 [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME", value_parser = crate::names::Name::<Way>::new())]
    way: Vec<Way>,
    /// Take a quarter of the time, and figures that are less certain
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    files: Files,
}

const EXAMPLES: &str = "\
Two processes with a CPU of their own each. The ways take turns, three times; a figure is the best of the runs, and of a run the median of \
short blocks. A VI and SOVIA poll, as in the paper's figure; programs over TCP and over the ring do what they do. Table I needs vsftpd and \
tnftp, Figure 10 rpcgen, a C compiler and libtirpc's headers; what is missing is named.

Examples:
  sovia bench paper-sovia --html paper.html
  sovia bench paper-sovia --part table1,figure10
  sovia bench paper-sovia --way native,single,dacks --json paper.json";

/// A part of the paper's section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// latency and bandwidth by message size
    Figure9,
    /// files by FTP
    Table1,
    /// calls of remote procedures
    Figure10,
}

/// `sovia bench paper-sovia`.
pub(crate) fn main(options: &Options) -> Result<()> {
    options.files.check(None)?;
    let before = machine::measure()?;
    let cpus = machine::cpus(Placement::Two)?;
    let mut all = Figures::default();
    if options.wants(Part::Figure9) {
        figure9(options, cpus, &mut all);
    }
    if options.wants(Part::Table1) {
        table1(options, &Stage::new(cpus)?, &mut all);
    }
    if options.wants(Part::Figure10) {
        figure10(options, cpus, &Stage::new(cpus)?, &mut all);
    }
    let report = Report::new(all, Conditions::since(before)?, options.quick);
    let page = report.page();
    options.files.write(&report, &page, &page)?;
    match report.failures.len() {
        0 => Ok(()),
        failures => Err(Error::Unmeasured(failures)),
    }
}

/// All that was measured, and what was not.
#[derive(Default)]
struct Figures {
    runs: Vec<Run>,
    t_sync_us: Option<f64>,
    transfers: Vec<Transfer>,
    calls: Vec<Call>,
    failures: Vec<String>,
    /// What is not installed.
    missing: Vec<String>,
}

impl Figures {
    /// The others may still be of use.
    fn note(&mut self, name: &str, error: &Error) {
        self.failures.push(format!("{name}: {error}"));
    }
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.part.is_empty() || self.part.contains(&part)
    }
}

fn figure9(options: &Options, cpus: [usize; 2], all: &mut Figures) {
    let asked = crate::names::once(&options.way);
    let ways = if asked.is_empty() {
        &Way::ALL[..]
    } else {
        &asked
    };
    let blocking = ways
        .iter()
        .filter(|way| way.variant().is_some() || **way == Way::Native);
    let plan: Vec<(Way, bool)> = ways
        .iter()
        .map(|&way| (way, false))
        .chain(blocking.map(|&way| (way, true)))
        .collect();
    let [_, asking] = cpus;
    match sync::measure(asking) {
        Ok(us) => all.t_sync_us = Some(us),
        Err(error) => all.note("T_sync", &error),
    }
    let progress = netpipe::progress(plan.len() * ROUNDS);
    for _ in 0..ROUNDS {
        for &(way, block) in &plan {
            progress.set_message(format!("{} · ", way.title()));
            let arguments: &[&str] = if block { &["--block", "--short"] } else { &[] };
            match measure(way, arguments, options.quick, cpus) {
                Ok(figures) => all.runs.push(Run {
                    way,
                    block,
                    figures,
                }),
                Err(error) => all.note(way.title(), &error),
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
}

fn table1(options: &Options, stage: &Stage, all: &mut Figures) {
    let obstacle = ftp::obstacle();
    let rows = ftp::ROWS
        .iter()
        .filter(|(by, _)| obstacle.is_none() || *by != ftp::By::Ftp);
    let progress = netpipe::progress(rows.clone().count() * ROUNDS);
    if let Err(error) = ftp::prepare(stage) {
        return all.note("Table I", &error);
    }
    for _ in 0..ROUNDS {
        for &(by, way) in rows.clone() {
            let name = ftp::name(by, way);
            progress.set_message(format!("{name} · "));
            match ftp::measure(stage, by, way, if options.quick { 1 } else { 3 }) {
                Ok(transfers) => all.transfers.extend(transfers),
                Err(error) => all.note(&name, &error),
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    all.missing.extend(obstacle);
}

fn figure10(options: &Options, cpus: [usize; 2], stage: &Stage, all: &mut Figures) {
    let obstacle = rpc::obstacle();
    let programs = match &obstacle {
        Some(_) => None,
        None => match rpc::Programs::build(stage) {
            Ok(programs) => Some(programs),
            Err(error) => {
                all.note("Figure 10", &error);
                None
            }
        },
    };
    let progress = netpipe::progress(rpc::CURVES.len() * ROUNDS);
    for _ in 0..ROUNDS {
        for &(by, way) in &rpc::CURVES {
            let name = rpc::name(by, way);
            progress.set_message(format!("{name} · "));
            let calls = match (by, &programs) {
                (rpc::By::Rpcgen, None) => Ok(Vec::new()),
                (rpc::By::Rpcgen, Some(programs)) => {
                    programs.measure(stage, way, if options.quick { 100 } else { 400 })
                }
                (rpc::By::Own, _) => {
                    measure(way, &["--calls"], options.quick, cpus).map(|figures| {
                        figures
                            .iter()
                            .map(|figure| Call::own(way, figure))
                            .collect()
                    })
                }
            };
            match calls {
                Ok(calls) => all.calls.extend(calls),
                Err(error) => all.note(&name, &error),
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    all.missing.extend(obstacle);
}

/// One way, in two fresh processes.
fn measure(way: Way, arguments: &[&str], quick: bool, cpus: [usize; 2]) -> Result<Vec<Figure>> {
    let start = |side: usize, dial: Option<&str>| {
        let mut command = myself();
        command.args([
            end::COMMAND,
            "--way",
            way.word(),
            "--cpu",
            &cpus[side].to_string(),
        ]);
        command.args(arguments);
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
    steps::between(start)
}

const ROUNDS: usize = 3;
