//! `sovia run`: a program with `libsovia.so` in front of its C library.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::config::{self, Config};
use crate::output::complain;
use library::Library;
use place::Place;
use program::{Obstacle, Program};

pub(crate) mod library;
pub(crate) mod place;
pub(crate) mod program;
pub(crate) mod starter;

/// Run a program with its TCP connections within this host over Virtual Interfaces
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Do not warn of a program that cannot be accelerated
    #[arg(long, short)]
    quiet: bool,
    /// Configuration in place of the one that would be found; an empty name is none
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<OsString>,
    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const HELP: &str = "\
The exit status is the program's; 127 if there is no such program, 126 if it cannot be run, 125 if libsovia.so is missing or the \
configuration is wrong. SOVIA_PRELOAD names libsovia.so if it is not in its place beside sovia; SOVIA_CONFIG names the configuration, else \
it is $XDG_CONFIG_HOME/sovia/sovia.toml or /etc/sovia/sovia.toml, if there is one (docs/configuration.md).

Examples:
  sovia run redis-server
  sovia run redis-benchmark -t get
  sovia run --config ./never-for-5432.toml psql";

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Library(#[from] library::Error),
    #[error(transparent)]
    Program(#[from] program::Error),
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error("{}: its file is damaged", .0.display())]
    Damaged(OsString),
    #[error("{}: {source}", program.display())]
    Exec {
        program: OsString,
        source: io::Error,
    },
}

impl Error {
    /// As a shell says it; 125 for a failure of our own, as `env` and `timeout` do.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let absent = match self {
            Self::Library(_) | Self::Config(_) => return ExitCode::from(125),
            Self::Program(error) => error.is_absent(),
            Self::Damaged(_) => false,
            Self::Exec { source, .. } => source.kind() == io::ErrorKind::NotFound,
        };
        ExitCode::from(if absent { 127 } else { 126 })
    }
}

/// `sovia run`: returns only if the program could not be run.
pub(crate) fn main(options: &Options) -> Result<(), Error> {
    let Some((name, arguments)) = options.command.split_first() else {
        return Ok(());
    };
    let config = Config::find(options.config.as_deref().map(Path::new))?;
    let library = Library::find()?;
    let here = Place::ours();
    let program = Program::find(name, &here)?;
    let followed = starter::followed(options.command.iter().cloned(), here);
    let obstacle = program
        .obstacle()
        .filter(|_| !starter::is_linker(name) || followed.starters.is_empty());
    if obstacle == Some(Obstacle::Damaged) {
        // The shell would be given it, and complain of its first bytes.
        return Err(Error::Damaged(name.clone()));
    }
    let hindered = match obstacle {
        Some(obstacle) => Some((name, obstacle)),
        None => hindrance(&followed).map(|obstacle| (&followed.last.program, obstacle)),
    };
    if let (false, Some((name, obstacle))) = (options.quiet, &hindered) {
        complain(format_args!(
            "{} will run, but not over Virtual Interfaces: {obstacle}",
            name.display()
        ));
    }
    let mut command = Command::new(program.path());
    command.arg0(name).args(arguments);
    // What is said of a program that is run by this one holds for it, too.
    for (name, value) in config::environment(config.as_ref()) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if !hindered.is_some_and(|(_, obstacle)| obstacle.refuses_to_start()) {
        command.env(PRELOAD, library.before(env::var_os(PRELOAD).as_deref()));
    }
    start::hand_on(&mut command);
    let source = command.exec();
    program.check_interpreter()?;
    Err(Error::Exec {
        program: name.clone(),
        source,
    })
}

/// Why the library would be of no use to the program that another starts. One that is not found that one will complain of.
fn hindrance(followed: &starter::Followed) -> Option<Obstacle> {
    let last = &followed.last;
    if last.loses_preload {
        return Some(Obstacle::Stripped);
    }
    Program::find(&last.program, &last.place).ok()?.obstacle()
}

/// What the dynamic linker reads.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";
