//! `sovia bench paper-iwarp`: the figures of the paper on user-level iWARP and the extended sockets interface, redone.

use std::net::Ipv4Addr;
use std::process::Stdio;

use crate::config::RULES;
use crate::error::{Error, Result};
use crate::machine::{self, Conditions};
use crate::netpipe;
use crate::netpipe::plan::Placement;
use crate::process::Process;
use crate::report::Files;
use crate::run::PRELOAD;
use crate::run::library::Library;
use crate::steps::{self, Figure};
use place::Place;
use report::{Report, Run};
use way::Way;

mod bare;
mod bytes;
mod convert;
pub(crate) mod end;
mod page;
mod place;
mod posted;
mod report;
mod siw;
mod stream;
mod way;
mod words;

/// Figures 5 and 6 of the iWARP paper: plain sockets through the interface, and the extended interface against TCP
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Ways to measure [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME", value_parser = crate::names::Name::<Way>::new())]
    way: Vec<Way>,
    /// Between two network namespaces joined by a veth pair, made and removed by this command (as root; with unshare, nsenter and ip),
    /// instead of over loopback
    #[arg(long)]
    namespaces: bool,
    /// Linux siw, too, by perftest's ib_send_lat and ib_send_bw (Debian's package perftest): at this address of this host, whose
    /// interface has a siw device
    #[arg(long, value_name = "ADDRESS", conflicts_with = "namespaces")]
    siw: Option<Ipv4Addr>,
    /// Take a quarter of the time, and figures that are less certain
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    files: Files,
}

const EXAMPLES: &str = "\
Two processes with a CPU of their own each. The ways take turns, round after round; a figure is the best of the rounds, and of a round the \
median of short blocks. A stream waits for an answer after each window of messages, as the paper's did.

Examples:
  sovia bench paper-iwarp --html paper.html
  sovia bench paper-iwarp --namespaces
  sovia bench paper-iwarp --way tcp,asked --json paper.json
  sovia bench paper-iwarp --way spinning,crc,plain --siw 10.99.0.1   (rdma link add siw0 type siw netdev eth0)";

/// `sovia bench paper-iwarp`.
pub(crate) fn main(options: &Options) -> Result<()> {
    options.files.check(None)?;
    let mut ways = crate::names::once(&options.way);
    if ways.is_empty() {
        ways.extend(Way::ALL);
    }
    match options.siw {
        Some(_) if !ways.contains(&Way::Siw) => ways.push(Way::Siw),
        None if ways.contains(&Way::Siw) => {
            let why = "--way siw needs --siw, an address of an interface with a siw device";
            return Err(Error::Misuse(why.to_owned()));
        }
        _ => {}
    }
    let before = machine::measure()?;
    let cpus = machine::cpus(Placement::Two)?;
    let place = if options.namespaces {
        Place::namespaces()?
    } else {
        Place::Loopback
    };
    let rounds = if options.quick { ROUNDS_QUICK } else { ROUNDS };
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    let progress = netpipe::progress(ways.len() * rounds);
    for _ in 0..rounds {
        for &way in &ways {
            progress.set_message(format!("{} · ", way.title()));
            match measure(way, &place, options, cpus) {
                Ok(figures) => runs.push(Run { way, figures }),
                // The others may still be of use.
                Err(error) => failures.push(format!("{}: {error}", way.title())),
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let command = match options.siw {
        Some(address) => format!("{} --siw {address}", place.command()),
        None => place.command().to_owned(),
    };
    drop(place);
    let report = Report::new(&runs, Conditions::since(before)?, command, failures);
    let page = report.page();
    options.files.write(&report, &page, &page)?;
    match report.failures.len() {
        0 => Ok(()),
        failures => Err(Error::Unmeasured(failures)),
    }
}

/// One way, in two fresh processes.
fn measure(way: Way, place: &Place, options: &Options, cpus: [usize; 2]) -> Result<Vec<Figure>> {
    let start = |side: usize, dial: Option<&str>| {
        let mut command = place.again(side);
        let siw = options.siw.filter(|_| way == Way::Siw);
        let host = siw.unwrap_or_else(|| place.hosts()[side]).to_string();
        let cpu = cpus[side].to_string();
        command.args([
            end::COMMAND,
            "--way",
            way.word(),
            "--cpu",
            &cpu,
            "--host",
            &host,
        ]);
        command.args(options.quick.then_some("--quick"));
        command.args(dial.map(|address| ["--dial", address]).iter().flatten());
        if way.is_under() {
            let library = Library::find().map_err(crate::run::Error::from)?;
            let others = std::env::var_os(PRELOAD);
            command.env(PRELOAD, library.before(others.as_deref()));
            // What is to be seen is the cost of a connection that never asks, and not what becomes of one that leaves TCP; and not
            // the polling that a sleeping call begins with, which makes it faster.
            command.env(
                RULES,
                format!("{} bench spin=0;1 never", sockets::rules::text::VERSION),
            );
        }
        Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    };
    steps::between(start)
}

const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 2;
