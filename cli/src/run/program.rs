use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::{getegid, geteuid};

use super::starter::{Followed, followed};
use elf::{inside, linker_of};

mod elf;

/// A program file, found as `execvp` finds it.
#[derive(Debug)]
pub(crate) struct Program(PathBuf);

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
    /// Looks for `name` in `PATH`, or takes it as a path if there is a slash in it.
    pub(crate) fn find(name: &OsStr) -> Result<Self, Error> {
        if name.as_bytes().contains(&b'/') {
            return match Candidate::at(Path::new(name)) {
                Candidate::Absent => Err(Error::Absent(name.to_owned())),
                Candidate::Forbidden => Err(Error::Forbidden(name.to_owned())),
                Candidate::Program => Ok(Self(name.into())),
            };
        }
        let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let mut error = Error::Absent(name.to_owned());
        for folder in env::split_paths(&path).filter(|_| !name.is_empty()) {
            // An empty entry is the current folder.
            let file = Path::new(".").join(folder).join(name);
            match Candidate::at(&file) {
                Candidate::Absent => {}
                Candidate::Forbidden => error = Error::Forbidden(name.to_owned()),
                Candidate::Program => return Ok(Self(file)),
            }
        }
        Err(error)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// As rules know it: what was asked to be run, and what runs then.
    ///
    /// # Errors
    /// The kernel's about the current folder.
    pub(crate) fn names(&self) -> io::Result<(PathBuf, PathBuf)> {
        let invoked = std::path::absolute(&self.0)?;
        let executable = self.interpreter().unwrap_or_else(|| self.0.clone());
        let executable = executable.canonicalize().unwrap_or(executable);
        Ok((invoked, executable))
    }

    /// What runs it, if it is a script: the shell if the script does not say, as execvp(3) has it.
    pub(crate) fn interpreter(&self) -> Option<PathBuf> {
        self.interpreted().map(|followed| followed.program.into())
    }

    fn interpreted(&self) -> Option<Followed> {
        let mut found: Option<Followed> = None;
        // A script's interpreter may be a script.
        for _ in 0..SCRIPTS_MAX {
            let file = found.as_ref().map(|found| Path::new(&found.program));
            let Ok(Some(mut next)) = shebang(file.unwrap_or(&self.0)) else {
                break;
            };
            next.loses_preload |= found.is_some_and(|found| found.loses_preload);
            found = Some(next);
        }
        found
    }

    /// # Errors
    /// The kernel would not find the interpreter, or may not execute it.
    pub(crate) fn check_interpreter(&self) -> Result<(), Error> {
        let interpreter = self.interpreter();
        if let Some(interpreter) = &interpreter
            && Self::find(interpreter.as_os_str()).is_ok()
            && matches!(shebang(interpreter), Ok(Some(_)))
        {
            return Err(Error::Interpreters(self.0.clone()));
        }
        let file = interpreter.as_deref().unwrap_or(&self.0);
        // Another processor's file may have an emulator, which knows its own places.
        let linker = match open(file).and_then(inside) {
            Ok(Some(Obstacle::Damaged | Obstacle::Foreign)) => None,
            _ => linker_of(file),
        };
        for path in interpreter.iter().cloned().chain(linker) {
            Self::find(path.as_os_str()).map_err(|inner| Error::Interpreter {
                program: self.0.clone(),
                inner: inner.into(),
            })?;
        }
        Ok(())
    }

    /// What keeps it from being accelerated. A file that cannot be read has no obstacle that we know of.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        match self.interpreted() {
            Some(followed) => {
                let interpreter = PathBuf::from(followed.program);
                let own = Self(interpreter.clone()).own_obstacle().ok().flatten();
                let stripped = followed.loses_preload.then_some(Obstacle::Stripped);
                let obstacle = own.or(stripped)?;
                Some(Obstacle::Interpreter(interpreter, Box::new(obstacle)))
            }
            None => self.own_obstacle().ok()?,
        }
    }

    fn own_obstacle(&self) -> io::Result<Option<Obstacle>> {
        Ok(match privileged(&self.0)? {
            Some(obstacle) => Some(obstacle),
            None => inside(open(&self.0)?)?,
        })
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

/// The interpreter of a script, with `env` followed to the program that it looks up. What is neither a script nor ELF is run by the shell.
fn shebang(path: &Path) -> io::Result<Option<Followed>> {
    let mut start = Vec::new();
    open(path)?.take(SHEBANG_MAX).read_to_end(&mut start)?;
    if start.starts_with(&object::elf::ELFMAG) {
        return Ok(None);
    }
    let line = start.strip_prefix(b"#!").unwrap_or_default();
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
    // The kernel gives all the rest as one word.
    let mut words = trimmed(line).splitn(2, |byte| BLANKS.contains(byte));
    let interpreter = words.next().filter(|word| !word.is_empty());
    let interpreter = OsStr::from_bytes(interpreter.unwrap_or(SHELL)).to_owned();
    let rest = words.next().map(trimmed);
    let command = [interpreter.clone()]
        .into_iter()
        .chain(rest.map(|word| OsStr::from_bytes(word).to_owned()));
    let mut followed = followed(command);
    // One that is not there is told by its name.
    if followed.program != interpreter
        && let Ok(found) = Program::find(&followed.program)
    {
        followed.program = found.0.into();
    }
    Ok(Some(followed))
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

/// In such a program the dynamic linker ignores `LD_PRELOAD` (ld.so(8), secure-execution mode).
fn privileged(path: &Path) -> io::Result<Option<Obstacle>> {
    let about = fs::metadata(path)?;
    let setuid = about.mode() & SETUID != 0 && about.uid() != geteuid().as_raw();
    let setgid = about.mode() & SETGID != 0 && about.gid() != getegid().as_raw();
    if setuid || setgid {
        return Ok(Some(Obstacle::Setuid));
    }
    let gains = !geteuid().is_root()
        && rustix::fs::getxattr(path, "security.capability", &mut [0u8; 64]).is_ok();
    Ok(gains.then_some(Obstacle::Capabilities))
}

const BLANKS: &[u8] = b" \t";
/// The kernel reads no more of a script to find its interpreter.
const SHEBANG_MAX: u64 = 256;
/// Interpreters of interpreters; the kernel allows five in all.
const SCRIPTS_MAX: usize = 5;
const SHELL: &[u8] = b"/bin/sh";
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

#[cfg(test)]
mod tests;
