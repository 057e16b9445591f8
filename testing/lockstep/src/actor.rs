//! The program that the processes of a session run, and what it is run with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::world::Environment;

/// Compiles the actor into `folder`.
///
/// # Errors
/// There is no `cc`, or it refuses the source.
pub fn compile(folder: &Path) -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("actor");
    let mut files: Vec<PathBuf> = fs::read_dir(source)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    let program = folder.join("actor");
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
        ])
        .arg(&program)
        .args(&files)
        .output()?;
    if output.status.success() {
        Ok(program)
    } else {
        let messages = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!(
            "cc refuses the actor:\n{messages}"
        )))
    }
}

/// Where a connection leaves TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// After its first turn.
    AtOnce,
    /// Where it does by itself.
    Usual,
}

/// The environment of an actor under sovia.
///
/// A line for each connection that leaves TCP goes to the file `trace`.
pub fn under_sovia(library: &Path, pace: Pace, trace: &Path) -> Environment {
    let mut environment: Vec<(&str, OsString)> = vec![
        ("LD_PRELOAD", library.into()),
        ("SOVIA_TRACE_UPGRADE", trace.into()),
    ];
    if pace == Pace::AtOnce {
        environment.push(("SOVIA_RULES", AT_ONCE.into()));
    }
    environment
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect()
}

/// As `sovia run` writes `after-turns = 1`, `after-bytes = 1`.
const AT_ONCE: &str = "2 /lockstep turns=1 bytes=1";
