//! `sovia`: user-level sockets over Virtual Interfaces.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod again;
mod demo;
mod error;
mod machine;
mod netpipe;
mod nic;
mod vi;

/// User-level sockets over Virtual Interfaces
#[derive(Debug, Parser)]
#[command(name = "sovia", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Options),
    /// Virtual Interfaces themselves
    #[command(subcommand)]
    Vi(Vi),
    /// One of netpipe's two measuring processes
    #[command(hide = true, name = netpipe::SIDE_COMMAND)]
    Side,
}

#[derive(Debug, Subcommand)]
enum Vi {
    List(vi::list::Options),
    Netpipe(netpipe::Options),
    Ping(vi::ping::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::main(&options),
        Command::Vi(Vi::List(options)) => vi::list::main(&options),
        Command::Vi(Vi::Netpipe(options)) => netpipe::main(&options),
        Command::Vi(Vi::Ping(options)) => vi::ping::main(&options),
        Command::Side => netpipe::side::serve(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sovia: {error}");
            error.exit_code()
        }
    }
}
