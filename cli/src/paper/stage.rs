//! Where the programs of Table I and Figure 10 run: a CPU for each end, and a folder in memory that is gone at the end.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::way::Way;
use crate::error::Result;
use crate::folder::{Folder, clear_when_told_to_end};
use crate::machine::{self, Affinity};
use crate::process::{Process, until_our_end};
use crate::run::PRELOAD;
use crate::run::library::Library;
use crate::run::place::Place;
use crate::run::program::Program;

pub(super) struct Stage {
    /// Of the end that serves and the end that asks.
    cpus: [usize; 2],
    everywhere: Affinity,
    library: Library,
    folder: Folder,
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server = 0,
    Client = 1,
}

impl Stage {
    pub(super) fn new(cpus: [usize; 2]) -> Result<Self> {
        let library = Library::find().map_err(crate::run::Error::from)?;
        let folder = match Folder::in_memory("paper") {
            Some(folder) => folder,
            None => Folder::temporary("paper")?,
        };
        clear_when_told_to_end(vec![folder.path().to_owned()])?;
        Ok(Self {
            cpus,
            everywhere: Affinity::current()?,
            library,
            folder,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn cpu(&self, side: Side) -> usize {
        self.cpus[side as usize]
    }

    /// Starts one end, under sovia where `way` is the ring.
    pub(super) fn start(&self, command: &mut Command, side: Side, way: Way) -> Result<Process> {
        if way == Way::Ring {
            let others = std::env::var_os(PRELOAD);
            command.env(PRELOAD, self.library.before(others.as_deref()));
        }
        self.on(side, || Process::start(command))
    }

    /// Does something on the CPU of an end; processes that are started there stay there.
    pub(super) fn on<R>(&self, side: Side, act: impl FnOnce() -> Result<R>) -> Result<R> {
        machine::pin(self.cpu(side))?;
        let result = act();
        self.everywhere.restore()?;
        result
    }
}

/// A program that ends when we do.
pub(super) fn program(name: &str) -> Option<Command> {
    Some(until_our_end(&find(name)?, Signal::TERM))
}

/// Where a program is, also where only root looks for it.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let root = Path::new("/usr/sbin").join(name);
    [OsStr::new(name), root.as_os_str()]
        .into_iter()
        .find_map(|name| Program::find(name, &Place::ours()).ok())
        .map(|program| program.path().to_owned())
}

/// What is to be said of a part that needs programs, or files, which are not there: each with Debian's package of it.
pub(super) fn missing(part: &str, needs: &[(&str, &str)]) -> Option<String> {
    let is_there = |name: &str| match name.starts_with('/') {
        true => Path::new(name).exists(),
        false => find(name).is_some(),
    };
    let mut packages: Vec<_> = needs
        .iter()
        .filter(|(name, _)| !is_there(name))
        .map(|(_, package)| *package)
        .collect();
    packages.dedup();
    (!packages.is_empty()).then(|| {
        let packages = packages.join(" ");
        format!("{part}: not measured, for something is not installed: apt-get install {packages}.")
    })
}
