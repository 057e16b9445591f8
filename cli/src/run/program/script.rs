//! What interprets a script.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::place::Place;
use super::super::starter::{Followed, followed};
use super::{Error, Program, executable, open};

/// An interpreter, with `env` followed to the program that it looks up.
#[derive(Debug)]
pub(super) struct Interpreted {
    /// Its file, or its name where there is none.
    pub(super) path: PathBuf,
    pub(super) place: Place,
    /// Whether it is started without `LD_PRELOAD`.
    pub(super) loses_preload: bool,
    /// Whether it is started by its own name, and not by the kernel for the script: by the shell that found no `#!`, or by what `#!` starts.
    pub(super) by_its_name: bool,
    /// Why it would not be started.
    pub(super) error: Option<Error>,
}

impl Interpreted {
    /// Of what is run at `place`. What is neither a script nor ELF is run by the shell.
    pub(super) fn of(script: &Path, place: &Place) -> io::Result<Option<Self>> {
        let mut start = Vec::new();
        open(script)?.take(SHEBANG_MAX).read_to_end(&mut start)?;
        if start.starts_with(&object::elf::ELFMAG) {
            return Ok(None);
        }
        let line = start.strip_prefix(b"#!");
        let is_said = line.is_some();
        let line = line.unwrap_or_default();
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
        // The kernel gives all the rest as one word.
        let mut words = trimmed(line).splitn(2, |byte| BLANKS.contains(byte));
        let first = words.next().filter(|word| !word.is_empty());
        let first = OsStr::from_bytes(first.unwrap_or(SHELL));
        let rest = words.next().map(trimmed).map(OsStr::from_bytes);
        let command = [first].into_iter().chain(rest).map(OsStr::to_owned);
        let followed = followed(command, place.clone());
        let (path, error) = match file(first, place, &followed) {
            Ok(path) => (path, None),
            // One that is not there is told by its name.
            Err(error) => (followed.last.program.into(), Some(error)),
        };
        Ok(Some(Self {
            path,
            place: followed.last.place,
            loses_preload: followed.last.loses_preload,
            by_its_name: !is_said || !followed.starters.is_empty(),
            error,
        }))
    }
}

/// The file that `followed` comes down to, if all are there that start it.
fn file(first: &OsStr, place: &Place, followed: &Followed) -> Result<PathBuf, Error> {
    // The kernel asks no list of folders for the first.
    let interpreter = place.file(first);
    executable(first, &interpreter)?;
    for starter in followed.starters.iter().skip(1) {
        Program::find(&starter.program, &starter.place)?;
    }
    let last = &followed.last;
    let path = match followed.starters.is_empty() {
        true => interpreter,
        false => Program::find(&last.program, &last.place)?.file,
    };
    followed.accepted().map(|()| path)
}

/// A carriage return stays: to the kernel it is part of a name.
fn trimmed(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line
        .split_first()
        .filter(|(first, _)| BLANKS.contains(first))
    {
        line = rest.1;
    }
    while let Some(rest) = line.split_last().filter(|(last, _)| BLANKS.contains(last)) {
        line = rest.1;
    }
    line
}

const BLANKS: &[u8] = b" \t";
/// The kernel reads no more of a script to find its interpreter.
const SHEBANG_MAX: u64 = 256;
const SHELL: &[u8] = b"/bin/sh";
