//! `sovia check`: says of a program, before it is run, what will be accelerated, what not, and why.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use sockets::reason::Reason;

use crate::config::{self, Config};
use crate::error::{self, Context};
use crate::run::place::Place;
use crate::run::program::{Error, Obstacle, Program};
use crate::run::starter::{Followed, Start, followed};
use finding::{Finding, Verdict};
use image::Image;
use libraries::{Folders, Loaded, Missing, Search};
pub(crate) use rules::Rings;

mod finding;
mod folders;
mod image;
mod libraries;
mod raw;
mod report;
mod rules;
mod surroundings;

/// Say what would become of a program's connections under sovia, without running it
///
/// Looks at the program's file, the libraries that are loaded with it, and the caller's limits. Libraries that a program loads while it
/// runs (plugins, extension modules), and programs that it starts, are not seen.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Configuration in place of the one that would be found; an empty name is none
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<OsString>,
    /// The program, and its arguments: `env`, `nice`, `nohup`, `setsid`, `timeout`, `taskset`, `chrt`, `ionice`, `stdbuf`, `numactl`, `time` and the C library's linker are followed to the program that they start
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const HELP: &str = "\
Verdicts, and the exit status: accelerated (0); works, slower (3): some connections may stay on TCP; stays on TCP (4); cannot run \
(127 if there is no such program, interpreter or library, 125 for a mistake in sovia.toml, without libsovia.so or where env refuses its words, else 126, as `sovia run` says). Raw system calls and io_uring are guesses from the files' bytes.

Examples:
  sovia check redis-server
  sovia check env PORT=80 ./server
  sovia check --config ./new.toml psql
  sovia check --json nginx | jq -r '.findings[].text'";

/// `sovia check`.
pub(crate) fn main(options: &Options) -> error::Result<ExitCode> {
    let followed = followed(options.command.iter().cloned(), Place::ours());
    let shown = followed.last.program.display().to_string();
    let program = found(&followed);
    let stripped = followed.last.loses_preload.then_some(Obstacle::Stripped);
    let config = Config::find(options.config.as_deref().map(Path::new));
    let mut findings = match &program {
        Ok(program) => examine(program, config, stripped),
        Err(error) => {
            let mut found = vec![unfound(error)];
            surroundings::library(&mut found);
            rules::mistake(config, &mut found);
            found
        }
    };
    if report::verdict(&findings) >= Verdict::Tcp {
        findings.retain(|found| found.key != surroundings::LIMITS);
    }
    let text = if options.json {
        report::json(&shown, &findings)
            .map_err(io::Error::from)
            .context("JSON")?
    } else {
        report::table(&shown, &findings, width())
    };
    let written = io::stdout()
        .write_all(text.as_bytes())
        .context("standard output");
    if let Err(error) = written
        && !error.is_enough()
    {
        return Err(error);
    }
    let is_found = |key| findings.iter().any(|found| found.key == key);
    let is_absent = match program.and_then(|program| program.check_interpreter()) {
        Ok(()) => false,
        Err(error) => error.is_absent(),
    };
    Ok(ExitCode::from(match report::verdict(&findings) {
        Verdict::Accelerated => 0,
        Verdict::Partly => 3,
        Verdict::Tcp => 4,
        // As `sovia run` would end, or the dynamic linker.
        Verdict::CannotRun
            if [rules::MISTAKE, surroundings::ABSENT, REFUSED]
                .into_iter()
                .any(is_found) =>
        {
            125
        }
        Verdict::CannotRun if is_absent || is_found(MISSING) => 127,
        Verdict::CannotRun => 126,
    }))
}

/// The program that a command line comes down to, if all are there that start it.
fn found(followed: &Followed) -> Result<Program, Error> {
    let find = |start: &Start| Program::find(&start.program, &start.place);
    for starter in &followed.starters {
        find(starter)?.check_interpreter()?;
    }
    let last = find(&followed.last)?;
    followed.accepted().map(|()| last)
}

/// What of this host and of our limits keeps all connections with such rings on TCP, if anything does, and what stands at the peers' or here because of it.
pub(crate) fn obstacle_here(rings: Rings) -> Option<(Option<Reason>, String)> {
    let mut found = Vec::new();
    surroundings::look(rings, &mut found);
    // Of several that are as bad the first.
    let worst = found.into_iter().rev();
    let worst = worst.max_by_key(|finding| finding.verdict)?;
    match worst.verdict {
        Verdict::Accelerated | Verdict::Partly => None,
        Verdict::Tcp => Some((worst.reason, worst.text)),
        // No library, so that nobody would come.
        Verdict::CannotRun => Some((Some(Reason::NobodyCame), worst.text)),
    }
}

/// Of a table that no terminal shows, which would tell its own.
fn width() -> Option<u16> {
    let told = std::env::var("COLUMNS").ok();
    let told = told.and_then(|columns| columns.parse().ok());
    (!io::stdout().is_terminal()).then(|| told.filter(|&columns| columns > 0).unwrap_or(WIDTH))
}

const WIDTH: u16 = 100;

fn unfound(error: &Error) -> Finding {
    let key = match error {
        Error::Interpreter { inner, .. } if matches!(**inner, Error::Refused { .. }) => REFUSED,
        Error::Interpreter { .. } | Error::Interpreters(_) => "interpreter",
        Error::Absent(_) => "absent",
        Error::Forbidden(_) => "forbidden",
        Error::Refused { .. } => REFUSED,
    };
    Finding::new(Verdict::CannotRun, key, error.to_string())
}

fn examine(
    program: &Program,
    config: Result<Option<Config>, config::Error>,
    stripped: Option<Obstacle>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let config = rules::mistake(config, &mut found);
    let rings = config.as_ref().map(|config| Rings::of(program, config));
    surroundings::look(rings.unwrap_or_default(), &mut found);
    if let Some(config) = &config {
        rules::look(program, config, &mut found);
    }
    let (file, place) = program.runs();
    if file != program.path() {
        found.push(Finding::note(
            "script",
            format!(
                "it is a script: what is said here is of its interpreter, {}; the programs that it starts are to be checked by themselves",
                file.display()
            ),
        ));
    }
    if let Err(error) = program.check_interpreter() {
        found.push(unfound(&error));
        return found;
    }
    match program.obstacle().or(stripped) {
        Some(obstacle) => found.push(hindered(&obstacle)),
        None => match Image::read(&file) {
            Ok(mut image) => {
                let search = Search::of(&mut image, &place);
                surroundings::others_preloaded(&search, &Folders::of_program(&image), &mut found);
                loaded(&Loaded::with(image, &search), &mut found);
            }
            Err(error) => found.push(Finding::new(
                Verdict::Partly,
                "unreadable",
                format!("{}: {error}: what it calls is not known", file.display()),
            )),
        },
    }
    found
}

/// By `env`, whose own status it is.
const REFUSED: &str = "refused";
/// Of a library that the program, or one of its libraries, names.
const MISSING: &str = "library-missing";

fn hindered(obstacle: &Obstacle) -> Finding {
    let (verdict, key) = match obstacle {
        Obstacle::Capabilities => (Verdict::Tcp, "capabilities"),
        Obstacle::Damaged => (Verdict::CannotRun, "damaged"),
        Obstacle::Foreign => (Verdict::CannotRun, "other-processor"),
        Obstacle::Go => (Verdict::Tcp, "go"),
        Obstacle::Narrow => (Verdict::Tcp, "32-bit"),
        Obstacle::OtherLibrary(_) => (Verdict::Tcp, "other-libc"),
        Obstacle::Setuid => (Verdict::Tcp, "setuid"),
        Obstacle::Static => (Verdict::Tcp, "static"),
        Obstacle::Stripped => (Verdict::Tcp, "stripped"),
        Obstacle::Interpreter(_, inner) => {
            let inner = hindered(inner);
            (inner.verdict, inner.key)
        }
    };
    let finding = Finding::new(verdict, key, obstacle.to_string());
    match verdict {
        Verdict::CannotRun => finding,
        // Its peers say so; it is in nobody's list itself.
        _ => finding.because(Reason::NobodyCame),
    }
}

fn loaded(loaded: &Loaded, found: &mut Vec<Finding>) {
    for Missing { name, unknown } in &loaded.missing {
        found.push(match unknown {
            None => Finding::new(
                Verdict::CannotRun,
                MISSING,
                format!("{name} is not found"),
            ),
            Some(folder) => Finding::new(
                Verdict::Partly,
                MISSING,
                format!(
                    "{name} is not found, but may be in {}, which is for the dynamic linker to read: what it calls is not known",
                    folder.display()
                ),
            ),
        });
    }
    let images = || loaded.images.iter().filter(|image| !image.is_c_library());
    if !images().any(|image| image.imports_any(&surroundings::SOCKET_CALLS)) {
        found.push(Finding::note(
            "no-sockets",
            "neither it nor its libraries call for sockets; what it loads while it runs may",
        ));
    }
    let uses_liburing = images().any(|image| image.uses_uring && !image.is_liburing());
    for image in images() {
        // Its calls are made for the program that uses it, of which they are told.
        if uses_liburing && image.is_liburing() {
            continue;
        }
        let name = image.path.file_name().unwrap_or(image.path.as_os_str());
        let name = name.display();
        if image.uses_uring {
            found.push(
                Finding::new(
                    Verdict::Partly,
                    "io-uring",
                    match image.is_uring_seen {
                        true => format!("{name} can use io_uring; what for cannot be known before it runs. For files, as databases do, it changes nothing. With the first request about a socket, which is seen, all connections of the process go to TCP; `sovia stat` says so then"),
                        false => format!("{name} can set up io_uring past the C library and liburing, where what is asked of it is not seen: from then on all connections of the process are on TCP"),
                    },
                )
                .because(Reason::IoUring),
            );
        }
        if image.filters {
            found.push(
                Finding::new(
                    Verdict::Partly,
                    "seccomp",
                    format!("{name} can bind itself to some system calls: from then on all connections of the process are on TCP"),
                )
                .because(Reason::Filtered),
            );
        }
        let calls = image.raw.on_descriptors();
        if !calls.is_empty() {
            found.push(
                Finding::new(
                    Verdict::Partly,
                    "raw-calls",
                    format!("{name} seems to make system calls of its own, past the C library: {calls}; connections that only they read stay on TCP"),
                )
                .because(Reason::RawCalls),
            );
        } else if image.raw.unknown > 0 {
            found.push(Finding::note(
                "raw-calls",
                format!("{name} makes system calls of its own; which ones does not stand beside the instruction"),
            ));
        }
    }
}
