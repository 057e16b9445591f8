//! `sovia`: user-level sockets over Virtual Interfaces.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Error;

mod alone;
mod bench;
mod check;
mod config;
mod demo;
mod dist;
mod error;
mod explain;
mod folder;
mod machine;
mod names;
mod netpipe;
mod nic;
mod output;
mod paper;
mod paper_iwarp;
mod plain;
mod process;
mod report;
mod run;
mod signals;
mod stat;
mod steps;
mod vi;

/// User-level sockets over Virtual Interfaces
#[derive(Debug, Parser)]
#[command(name = "sovia", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Options),
    Check(check::Options),
    Stat(stat::Options),
    Explain(explain::Options),
    Demo(demo::Options),
    Bench(bench::Bench),
    /// Virtual Interfaces themselves
    #[command(subcommand, after_help = EXAMPLES_OF_VI)]
    Vi(Vi),
    #[command(hide = true)]
    Dist(dist::Options),
    /// One of bench paper-sovia's two measuring processes
    #[command(hide = true, name = paper::end::COMMAND)]
    PaperEnd(paper::end::End),
    /// One of bench paper-iwarp's two measuring processes
    #[command(hide = true, name = paper_iwarp::end::COMMAND)]
    PaperIwarpEnd(paper_iwarp::end::End),
    /// One end of bench paper-sovia's own file transfer
    #[command(hide = true, name = paper::file::COMMAND)]
    PaperFile(paper::file::End),
    /// One of netpipe's two measuring processes
    #[command(hide = true, name = netpipe::SIDE_COMMAND)]
    Side,
    /// Programs to measure with
    #[command(subcommand, hide = true, name = plain::COMMAND)]
    Plain(plain::Program),
}

#[derive(Debug, Subcommand)]
enum Vi {
    Demo(vi::demo::Options),
    List(vi::list::Options),
    Netpipe(netpipe::Options),
    Ping(vi::ping::Options),
    Rping(vi::rping::Options),
}

const EXAMPLES: &str = "\
Examples:
  sovia check redis-server
  sovia run redis-server
  sovia run redis-benchmark -t get
  sovia stat
  sovia bench --quick";

const EXAMPLES_OF_VI: &str = "\
Examples:
  sovia vi list
  sovia vi ping
  sovia vi netpipe --quick";

fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return misused(&error),
    };
    if command.measures()
        && let Err(error) = alone::from_the_library()
    {
        return ended(Err(error));
    }
    let result = match command {
        Command::Run(options) => run::main(&options).map_err(Error::from),
        Command::Check(options) => return ended(check::main(&options)),
        Command::Stat(options) => stat::main(&options),
        Command::Explain(options) => explain::main(&options),
        Command::Demo(options) => demo::main(&options),
        Command::Bench(bench) => bench::main(&bench),
        Command::Vi(Vi::Demo(options)) => vi::demo::main(&options),
        Command::Vi(Vi::List(options)) => vi::list::main(&options),
        Command::Vi(Vi::Netpipe(options)) => netpipe::main(&options),
        Command::Vi(Vi::Ping(options)) => vi::ping::main(&options),
        Command::Vi(Vi::Rping(options)) => return ended(vi::rping::main(&options)),
        Command::Dist(options) => dist::main(&options),
        Command::PaperEnd(end) => paper::end::main(&end),
        Command::PaperIwarpEnd(end) => paper_iwarp::end::main(&end),
        Command::PaperFile(end) => paper::file::main(&end),
        Command::Side => netpipe::side::serve(),
        Command::Plain(program) => plain::main(&program),
    };
    ended(result.map(|()| ExitCode::SUCCESS))
}

impl Command {
    /// Whether it has figures of TCP beside others.
    fn measures(&self) -> bool {
        match self {
            Self::Bench(bench) => bench.measures(),
            Self::Demo(_) | Self::Vi(Vi::Demo(_) | Vi::Netpipe(_)) => true,
            _ => false,
        }
    }
}

/// A command line that is none, or asks for help.
fn misused(error: &clap::Error) -> ExitCode {
    let _nobody_reads = error.print();
    let is_rping = std::env::args_os().skip(1).take(2).eq(["vi", "rping"]);
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_rping => ExitCode::from(vi::rping::STATUS_MISUSE),
        _ => ExitCode::from(2),
    }
}

fn ended(result: error::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(status) => status,
        Err(error) if error.is_enough() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            error.exit_code()
        }
    }
}
