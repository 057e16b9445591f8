use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::error::{Context, Error, Result};
use crate::machine::{self, Affinity};
use crate::netpipe::plan::Placement;
use crate::process::Process;
use crate::run::PRELOAD;
use crate::run::library::Library;

/// Which of the two ends run under sovia.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ends {
    /// Kernel TCP, which the others are compared with.
    Neither,
    Both,
    Server,
    Client,
}

impl Ends {
    pub(super) fn has(self, end: End) -> bool {
        match self {
            Self::Neither => false,
            Self::Both => true,
            Self::Server => end == End::Server,
            Self::Client => end == End::Client,
        }
    }

    /// Adds to an error which way it happened.
    pub(super) fn blamed(self) -> impl FnOnce(Error) -> Error {
        move |error| Error::Under {
            ends: self,
            source: Box::new(error),
        }
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Neither => "neither end",
            Self::Both => "both ends",
            Self::Server => "the server",
            Self::Client => "the client",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Server,
    Client,
}

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
        Ok(Self {
            cpus,
            everywhere,
            library,
            folder,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts one end, under sovia if `ends` says so; `trace` is where its upgrades are noted.
    pub(super) fn start(
        &self,
        command: &mut Command,
        end: End,
        ends: Ends,
        cpus: Cpus,
        trace: &Trace,
    ) -> Result<Process> {
        // Figures for kernel TCP are without any library, and a program under sovia has ours and what the caller wants.
        if ends.has(end) {
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

    /// Starts a process on each CPU that does nothing but compute.
    pub(super) fn start_hogs(&self) -> Result<Vec<Process>> {
        let mut cpus = self.cpus.to_vec();
        cpus.dedup();
        let mut hogs = Vec::new();
        for cpu in cpus {
            machine::pin(cpu)?;
            let hog = Process::start(crate::process::myself().args([crate::plain::COMMAND, "hog"]));
            self.everywhere.restore()?;
            hogs.push(hog?);
        }
        Ok(hogs)
    }

    /// A place to note upgrades, not in use yet.
    pub(super) fn trace(&self) -> Result<Trace> {
        let count = fs::read_dir(&self.folder).context("read_dir")?.count();
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
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("sovia: {}: {error}", self.folder.display());
        }
    }
}

/// A file to which `libsovia.so` adds a line for each connection that it upgrades.
pub(super) struct Trace(PathBuf);

impl Trace {
    pub(super) fn upgrades(&self) -> usize {
        fs::read_to_string(&self.0).map_or(0, |text| text.lines().count())
    }
}

const TRACE: &str = "SOVIA_TRACE_UPGRADE";
