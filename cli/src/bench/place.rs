use std::cell::Cell;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::line::Company;
use super::pair::SILENCE_MAX;
use super::way::{End, Way};
use crate::alone::TRACE;
use crate::error::{Error, Result};
use crate::folder::{Folder, clear_when_told_to_end, make_within};
use crate::machine::{self, Affinity};
use crate::netpipe::plan::Placement;
use crate::process::Process;
use crate::run::PRELOAD;
use crate::run::library::Library;

/// Where a process may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpus {
    /// On the CPU of its end.
    Own,
    /// On either.
    Both,
}

/// What all processes of a session have in common: CPUs, the library, and a folder that is gone at the end.
pub(crate) struct Place {
    /// Of server and client; equal where there is but one.
    cpus: [usize; 2],
    everywhere: Affinity,
    library: Library,
    folder: Folder,
    /// The same in memory, where there is room.
    memory: Option<Folder>,
    traces: Cell<usize>,
}

impl Place {
    pub(super) fn new() -> Result<Self> {
        let cpus = machine::cpus(Placement::Two).or_else(|_| machine::cpus(Placement::One))?;
        let everywhere = Affinity::current()?;
        let library = Library::find().map_err(crate::run::Error::from)?;
        let folder = Folder::temporary("bench")?;
        if rustix::process::geteuid().is_root() {
            // PostgreSQL is somebody else then.
            folder.let_pass()?;
        }
        let memory = Folder::in_memory("bench");
        let folders = [Some(&folder), memory.as_ref()].into_iter().flatten();
        clear_when_told_to_end(folders.map(|folder| folder.path().to_owned()).collect())?;
        Ok(Self {
            cpus,
            everywhere,
            library,
            folder,
            memory,
            traces: Cell::new(0),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A folder in memory that nobody else has, or on disk where there is no memory for files.
    pub(super) fn memory(&self, trace: &Trace) -> Result<PathBuf> {
        let name = trace.path.file_name().unwrap_or_default();
        let memory = self.memory.as_ref().unwrap_or(&self.folder).path();
        let folder = memory.join(name).with_extension("memory");
        make_within(&folder)?;
        Ok(folder)
    }

    /// Starts one end, under sovia if `way` says so; `trace` is where its upgrades are noted.
    pub(super) fn start(
        &self,
        command: &mut Command,
        end: End,
        way: Way,
        cpus: Cpus,
        trace: &Trace,
    ) -> Result<Process> {
        // Figures for kernel TCP are without any library, and a program under sovia has ours and what the caller wants.
        if way.has(end) {
            let others = env::var_os(PRELOAD);
            command.env(PRELOAD, self.library.before(others.as_deref()));
            if trace.is_written {
                command.env(TRACE, &trace.path);
            }
        }
        let own = match end {
            End::Server => self.cpus[0],
            End::Client => self.cpus[1],
        };
        // A child begins where its parent is, so that not even its first instruction runs elsewhere.
        match cpus {
            Cpus::Own => machine::pin(own)?,
            Cpus::Both => machine::keep_to(&self.cpus)?,
        }
        let process = Process::start(command);
        self.everywhere.restore()?;
        process
    }

    /// Starts those who want the CPUs, too, until they are dropped.
    pub(super) fn start_company(&self, company: Company) -> Result<Vec<Process>> {
        let mut cpus = self.cpus.to_vec();
        cpus.dedup();
        let start = |program: &str| {
            let process =
                Process::start(crate::process::myself().args([crate::plain::COMMAND, program]));
            self.everywhere.restore()?;
            process
        };
        let mut started = Vec::new();
        for cpu in &cpus {
            match company {
                Company::Hogs => {
                    machine::pin(*cpu)?;
                    started.push(start("hog")?);
                }
                Company::Passers => {
                    for _ in 0..PASSERS {
                        machine::keep_to(&cpus)?;
                        started.push(start("passer")?);
                    }
                }
            }
        }
        Ok(started)
    }

    /// Waits until somebody listens on this port of TCP's; nothing is sent there, since some servers serve one client only.
    ///
    /// # Errors
    /// `server` has ended, or takes too long.
    pub(super) fn wait_for_port(&self, server: &mut Process, port: u16) -> Result<()> {
        self.wait_until(server, || listens(port))
    }

    /// The same for a Unix socket.
    pub(super) fn wait_for_socket(&self, server: &mut Process, path: &Path) -> Result<()> {
        self.wait_until(server, || listens_at(path))
    }

    /// The same for whatever else tells that it serves.
    pub(super) fn wait_until(
        &self,
        server: &mut Process,
        listens: impl Fn() -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !listens() {
            let ended = server.ended()?;
            if ended || start.elapsed() > SILENCE_MAX {
                let what = if ended { "ended" } else { "does not listen" };
                return Err(Error::Protocol {
                    from: "a server",
                    what: format!("it {what}"),
                });
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// A place to note upgrades, not in use yet.
    pub(super) fn trace(&self) -> Result<Trace> {
        let count = self.traces.get();
        self.traces.set(count + 1);
        let path = self.folder().join(format!("upgrades-{count}"));
        fs::write(&path, "").map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Trace {
            path,
            is_written: true,
        })
    }

    /// One that stays empty: to add a line takes microseconds, which connections that last for some ten would be charged with.
    pub(super) fn no_trace(&self) -> Result<Trace> {
        Ok(Trace {
            is_written: false,
            ..self.trace()?
        })
    }
}

/// A file to which `libsovia.so` adds a line for each connection that it upgrades.
pub(super) struct Trace {
    path: PathBuf,
    is_written: bool,
}

impl Trace {
    pub(super) fn upgrades(&self) -> usize {
        fs::read_to_string(&self.path).map_or(0, |text| text.lines().count())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder that nobody else has.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_extension(name)
    }
}

/// For each CPU.
const PASSERS: usize = 2;

/// Whether there is a socket that listens on this port, of whatever address.
fn listens(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // A kernel without IPv6 has but one.
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let mut lines = text.lines().map(str::split_whitespace);
        if lines.any(|mut line| {
            line.nth(1).is_some_and(|local| local.ends_with(&wanted)) && line.nth(1) == Some(LISTEN)
        }) {
            return true;
        }
    }
    false
}

/// Whether a Unix socket listens there.
fn listens_at(path: &Path) -> bool {
    // Others may have names there that are no text.
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let end = format!(" {}", path.display());
    let mut lines = text.lines().filter(|line| line.ends_with(&end));
    lines.any(|line| line.split_whitespace().nth(3) == Some(ACCEPTS))
}

/// The kernel's number for the state.
const LISTEN: &str = "0A";
/// The flag of a Unix socket that listens, the only one that the kernel shows.
const ACCEPTS: &str = "00010000";
const LOOK_AGAIN: Duration = Duration::from_millis(5);
