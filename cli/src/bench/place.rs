use std::cell::Cell;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::line::Company;
use super::pair::SILENCE_MAX;
use super::way::{End, Way};
use crate::alone::TRACE;
use crate::error::{Context, Error, Result};
use crate::machine::{self, Affinity};
use crate::netpipe::plan::Placement;
use crate::output::complain;
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
    folder: PathBuf,
    /// The same in memory, where there is room.
    memory: PathBuf,
    traces: Cell<usize>,
}

impl Place {
    pub(super) fn new() -> Result<Self> {
        let cpus = machine::cpus(Placement::Two).or_else(|_| machine::cpus(Placement::One))?;
        let everywhere = Affinity::current()?;
        let library = Library::find().map_err(crate::run::Error::from)?;
        let folder = env::temp_dir().join(format!("sovia-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|source| Error::File {
            path: folder.display().to_string(),
            source,
        })?;
        let memory = if has_room(SHARED_MEMORY) {
            Path::new(SHARED_MEMORY).join(folder.file_name().unwrap_or_default())
        } else {
            folder.clone()
        };
        fs::create_dir_all(&memory).map_err(|source| Error::File {
            path: memory.display().to_string(),
            source,
        })?;
        clear_when_told_to_end([folder.clone(), memory.clone()])?;
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
        &self.folder
    }

    /// A folder in memory that nobody else has, or on disk where there is no memory for files.
    pub(super) fn memory(&self, trace: &Trace) -> Result<PathBuf> {
        let name = trace.0.file_name().unwrap_or_default();
        let folder = self.memory.join(name).with_extension("memory");
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
            command
                .env(PRELOAD, self.library.before(others.as_deref()))
                .env(TRACE, &trace.0);
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
        Self::wait_for(server, || listens(port))
    }

    /// The same for a Unix socket.
    pub(super) fn wait_for_socket(&self, server: &mut Process, path: &Path) -> Result<()> {
        Self::wait_for(server, || listens_at(path))
    }

    fn wait_for(server: &mut Process, listens: impl Fn() -> bool) -> Result<()> {
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
        let path = self.folder.join(format!("upgrades-{count}"));
        fs::write(&path, "").map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Trace(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for folder in [&self.folder, &self.memory] {
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    complain(format_args!("{}: {error}", folder.display()));
                }
                _ => {}
            }
        }
    }
}

/// A file to which `libsovia.so` adds a line for each connection that it upgrades.
pub(super) struct Trace(PathBuf);

impl Trace {
    pub(super) fn upgrades(&self) -> usize {
        fs::read_to_string(&self.0).map_or(0, |text| text.lines().count())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A file or folder that nobody else has.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.0.with_extension(name)
    }
}

/// Removes the folders when somebody ends us, too. Programs that we have started are asked to end by the kernel then
/// (`until_our_end`).
pub(crate) fn clear_when_told_to_end<const N: usize>(folders: [PathBuf; N]) -> Result<()> {
    // A handler is gone in a program that we start. Signals that are blocked, to be waited for, would stay blocked there for ever.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("sigaction")?;
    thread::Builder::new()
        .name("end".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let start = Instant::now();
                // Others may be at it still; what is there no more need not be removed.
                while folders.iter().any(|folder| folder.exists()) && start.elapsed() < CLEARING_MAX
                {
                    for folder in &folders {
                        let _ = fs::remove_dir_all(folder);
                    }
                }
                // As a shell says it.
                std::process::exit(128 + signal);
            }
        })
        .context("starting a thread")
        .map(drop)
}

/// Makes a folder within one that is [cleared](clear_when_told_to_end), unless it is there already; but not that one anew, once it has been.
pub(crate) fn make_within(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Error::File {
            path: folder.display().to_string(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Whether files by the hundred megabytes fit there.
fn has_room(folder: &str) -> bool {
    rustix::fs::statvfs(folder)
        .is_ok_and(|room| room.f_bavail.saturating_mul(room.f_frsize) >= ROOM)
}

/// For each CPU.
const PASSERS: usize = 2;

const SHARED_MEMORY: &str = "/dev/shm";
const ROOM: u64 = 1 << 30;

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

const CLEARING_MAX: Duration = Duration::from_secs(1);
/// The kernel's number for the state.
const LISTEN: &str = "0A";
/// The flag of a Unix socket that listens, the only one that the kernel shows.
const ACCEPTS: &str = "00010000";
const LOOK_AGAIN: Duration = Duration::from_millis(5);
