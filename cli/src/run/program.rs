use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfs, StatVfsMountFlags, access, statvfs};
use rustix::process::{getegid, geteuid};
use rustix::thread::no_new_privs;

use super::place::Place;
use elf::{inside, linker_of};
use script::Interpreted;

mod elf;
mod script;

/// A program file, found as `execvp` finds it.
#[derive(Debug)]
pub(crate) struct Program {
    file: PathBuf,
    /// Where it is started.
    place: Place,
}

/// There is no program to run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{}: no such program", named(.0))]
    Absent(OsString),
    #[error("{}: may not be executed", named(.0))]
    Forbidden(OsString),
    /// Of a script, or the dynamic linker of a program.
    #[error("{}: its interpreter {inner}", program.display())]
    Interpreter { program: PathBuf, inner: Box<Self> },
    /// What one that starts others takes for an option, and has none such.
    #[error("{}: '{}' is one word, and it has no such option (behind -S it would be split)", program.display(), word.display())]
    Refused { program: OsString, word: OsString },
    /// The kernel goes no further.
    #[error("{}: its interpreter is a script whose interpreter is a script, and so on", .0.display())]
    Interpreters(PathBuf),
}

/// A name of nothing is seen as one.
fn named(name: &OsStr) -> String {
    match name.is_empty() {
        true => "''".to_owned(),
        false => name.display().to_string(),
    }
}

impl Error {
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            Self::Interpreter { inner, .. } => inner.is_absent(),
            error => matches!(error, Self::Absent(_)),
        }
    }
}

/// Why the dynamic linker will not put `libsovia.so` in front of a program, or why that would be of no use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It gains capabilities from its file.
    Capabilities,
    /// No kernel can make sense of its headers.
    Damaged,
    /// It is for another processor.
    Foreign,
    /// Its calls go to the kernel without a C library between: the Go runtime's do.
    Go,
    /// It is for this processor's 32-bit mode.
    Narrow,
    /// Its C library is not GNU's; this is the dynamic linker it asks for.
    OtherLibrary(PathBuf),
    /// It runs with the rights of another user or group.
    Setuid,
    /// It has no dynamic linker.
    Static,
    /// What starts it takes `LD_PRELOAD` away.
    Stripped,
    /// It is a script, and what interprets it has the obstacle.
    Interpreter(PathBuf, Box<Self>),
}

impl Obstacle {
    /// Whether it would not even start: musl's dynamic linker gives up where it cannot load what is preloaded.
    pub(crate) fn refuses_to_start(&self) -> bool {
        match self {
            Self::Interpreter(_, obstacle) => obstacle.refuses_to_start(),
            obstacle => matches!(obstacle, Self::OtherLibrary(_)),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capabilities => f.write_str("its file has capabilities, so nothing is preloaded"),
            Self::Damaged => f.write_str("its file is damaged"),
            Self::Foreign => f.write_str("it is for another processor than libsovia.so"),
            Self::Go => f.write_str("it is a Go program, which calls the kernel directly"),
            Self::Narrow => f.write_str("it has 32 bits, and libsovia.so 64"),
            Self::OtherLibrary(linker) => write!(
                f,
                "its C library is not GNU's (its dynamic linker is {})",
                linker.display()
            ),
            Self::Setuid => f.write_str("it is setuid or setgid, so nothing is preloaded"),
            Self::Static => f.write_str("it is statically linked"),
            Self::Stripped => {
                f.write_str("env starts it without the LD_PRELOAD by which libsovia.so is loaded")
            }
            Self::Interpreter(path, obstacle) => {
                write!(f, "its interpreter is {}, and {obstacle}", path.display())
            }
        }
    }
}

impl Program {
    /// Looks for `name` in the `PATH` of `place`, or takes it as a path if there is a slash in it.
    pub(crate) fn find(name: &OsStr, place: &Place) -> Result<Self, Error> {
        let at = |file| Self {
            file,
            place: place.clone(),
        };
        if name.as_bytes().contains(&b'/') {
            let file = place.file(name);
            return executable(name, &file).map(|()| at(file));
        }
        let mut error = Error::Absent(name.to_owned());
        for folder in place.programs().filter(|_| !name.is_empty()) {
            let file = folder.join(name);
            match Candidate::at(&file) {
                Candidate::Absent => {}
                Candidate::Forbidden => error = Error::Forbidden(name.to_owned()),
                Candidate::Program => return Ok(at(file)),
            }
        }
        Err(error)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// As rules know it: what was asked to be run, and what runs then. A script is asked for where the kernel starts its interpreter; of one whose interpreter
    /// is looked up by `env`, that one alone is known to the process.
    ///
    /// # Errors
    /// The kernel's about the current folder.
    pub(crate) fn names(&self) -> io::Result<(PathBuf, PathBuf)> {
        let interpreted = self.interpreted();
        let asked = match &interpreted {
            Some(interpreted) if interpreted.by_its_name => &interpreted.path,
            _ => &self.file,
        };
        let invoked = std::path::absolute(asked)?;
        let executable = interpreted.map_or_else(|| self.file.clone(), |found| found.path);
        let executable = executable.canonicalize().unwrap_or(executable);
        Ok((invoked, executable))
    }

    /// The file that runs, and where: if it is a script what interprets it, the shell if the script does not say, as execvp(3) has it.
    pub(crate) fn runs(&self) -> (PathBuf, Place) {
        match self.interpreted() {
            Some(interpreted) => (interpreted.path, interpreted.place),
            None => (self.file.clone(), self.place.clone()),
        }
    }

    fn interpreted(&self) -> Option<Interpreted> {
        let mut found: Option<Interpreted> = None;
        // A script's interpreter may be a script.
        for _ in 0..SCRIPTS_MAX {
            let (file, place) = match &found {
                Some(Interpreted { error: Some(_), .. }) => break,
                Some(found) => (&found.path, &found.place),
                None => (&self.file, &self.place),
            };
            let Ok(Some(mut next)) = Interpreted::of(file, place) else {
                break;
            };
            next.loses_preload |= found.as_ref().is_some_and(|found| found.loses_preload);
            next.by_its_name |= found.is_some_and(|found| found.by_its_name);
            found = Some(next);
        }
        found
    }

    /// # Errors
    /// The kernel would not find the interpreter, or may not execute it, or that would not start what it is to.
    pub(crate) fn check_interpreter(&self) -> Result<(), Error> {
        let wrong = |inner: Error| Error::Interpreter {
            program: self.file.clone(),
            inner: inner.into(),
        };
        let (file, place) = match self.interpreted() {
            Some(Interpreted {
                error: Some(error), ..
            }) => return Err(wrong(error)),
            Some(found) if matches!(Interpreted::of(&found.path, &found.place), Ok(Some(_))) => {
                return Err(Error::Interpreters(self.file.clone()));
            }
            Some(found) => (found.path, found.place),
            None => (self.file.clone(), self.place.clone()),
        };
        // Another processor's file may have an emulator, which knows its own places.
        let linker = match open(&file).and_then(inside) {
            Ok(Some(Obstacle::Damaged | Obstacle::Foreign)) => None,
            _ => linker_of(&file),
        };
        match linker {
            Some(linker) => Self::find(linker.as_os_str(), &place)
                .map(drop)
                .map_err(wrong),
            None => Ok(()),
        }
    }

    /// What keeps it from being accelerated. A file that cannot be read has no obstacle that we know of.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        let Some(interpreted) = self.interpreted() else {
            return obstacle_of(&self.file).ok()?;
        };
        let own = obstacle_of(&interpreted.path).ok().flatten();
        let stripped = interpreted.loses_preload.then_some(Obstacle::Stripped);
        let obstacle = own.or(stripped)?;
        Some(Obstacle::Interpreter(interpreted.path, Box::new(obstacle)))
    }
}

/// Of a file by itself.
fn obstacle_of(file: &Path) -> io::Result<Option<Obstacle>> {
    Ok(match privileged(file)? {
        Some(obstacle) => Some(obstacle),
        None => inside(open(file)?)?,
    })
}

/// Whether `file` may be executed; the error tells it by `name`.
fn executable(name: &OsStr, file: &Path) -> Result<(), Error> {
    match Candidate::at(file) {
        Candidate::Absent => Err(Error::Absent(name.to_owned())),
        Candidate::Forbidden => Err(Error::Forbidden(name.to_owned())),
        Candidate::Program => Ok(()),
    }
}

enum Candidate {
    Absent,
    Forbidden,
    Program,
}

impl Candidate {
    fn at(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(about) if about.is_file() && access(path, Access::EXEC_OK).is_ok() => Self::Program,
            Ok(_) => Self::Forbidden,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::Forbidden,
            Err(_) => Self::Absent,
        }
    }
}

/// A script may name anything, a pipe too, which to open would be waited for; the kernel runs files only.
fn open(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// In such a program the dynamic linker ignores `LD_PRELOAD` (ld.so(8), secure-execution mode).
fn privileged(path: &Path) -> io::Result<Option<Obstacle>> {
    let about = fs::metadata(path)?;
    if gives_nothing(path) {
        return Ok(None);
    }
    let has = |bits| about.mode() & bits == bits;
    let setuid = has(SETUID) && about.uid() != geteuid().as_raw();
    let setgid = has(SETGID) && about.gid() != getegid().as_raw();
    if setuid || setgid {
        return Ok(Some(Obstacle::Setuid));
    }
    let gains = !geteuid().is_root()
        && rustix::fs::getxattr(path, "security.capability", &mut [0u8; 64]).is_ok();
    Ok(gains.then_some(Obstacle::Capabilities))
}

/// Whether the kernel gives nobody another's rights there, or not to us.
fn gives_nothing(path: &Path) -> bool {
    let is_nosuid = |vfs: StatVfs| vfs.f_flag.contains(StatVfsMountFlags::NOSUID);
    statvfs(path).is_ok_and(is_nosuid) || no_new_privs().unwrap_or(false)
}

/// Interpreters of interpreters; the kernel allows five in all.
const SCRIPTS_MAX: usize = 5;
const SETUID: u32 = 0o4000;
/// Without the group's right to execute it the bit is for locks.
const SETGID: u32 = 0o2010;

#[cfg(test)]
mod tests;
