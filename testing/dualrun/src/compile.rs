//! From C to programs, by `cc`, into the target folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ends::End;
use crate::program::{Program, folder};

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// As most programs under development are.
    Plain,
    /// As distributions do: optimised, with the checked aliases (`__recv_chk`) and those of large files (`fcntl64`).
    Fortified,
    /// Without a dynamic linker, so that nothing can be preloaded.
    Static,
}

impl Build {
    /// The build in which `subject` shows a behaviour.
    ///
    /// The two builds are spread over the two ends rather than multiplied by them: the client shows the behaviour in a plain
    /// program, the server in a fortified one.
    pub fn of(subject: End) -> Self {
        match subject {
            End::Client => Self::Plain,
            End::Server => Self::Fortified,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Fortified => "fortified",
            Self::Static => "static",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["-O1"],
            Self::Fortified => &["-O2", "-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64"],
            Self::Static => &["-O1", "-static"],
        }
    }
}

/// What a program's TCP sockets of IPv4 are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// What the program asks for.
    Tcp,
    /// Sockets of type `SOCK_VIA`, which `programs/via.c` asks for in the program's place.
    Via,
}

impl Sockets {
    /// What is compiled and linked besides.
    fn arguments(self) -> Vec<OsString> {
        match self {
            Self::Tcp => Vec::new(),
            Self::Via => vec![
                "-Wl,--wrap=socket,--wrap=getsockopt".into(),
                folder().join("via.c").into(),
            ],
        }
    }
}

/// Why there is no program to run.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The source has an error or a warning.
    #[error("cc refuses {path}:\n{messages}")]
    Refused {
        /// Of the source.
        path: PathBuf,
        /// What the compiler says.
        messages: String,
    },
    /// A file cannot be read or written, or there is no `cc`.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// The program, compiled if source, headers or flags changed. Safe to call from several processes at once.
///
/// # Errors
/// See [`CompileError`].
pub fn compile(
    program: &Program,
    build: Build,
    sockets: Sockets,
    target: &Path,
) -> Result<PathBuf, CompileError> {
    let failed = |what: &Path| {
        let what = what.display().to_string();
        move |source| CompileError::Io { what, source }
    };
    let output = target.join("dualrun").join(&program.path);
    let output = match sockets {
        Sockets::Tcp => output.join(build.name()),
        Sockets::Via => output.join(format!("{}-via", build.name())),
    };
    let place = output.parent().unwrap_or(target);
    fs::create_dir_all(place).map_err(failed(place))?;
    let lock = output.with_extension("lock");
    let lock = File::create(&lock).map_err(failed(&lock))?;
    lock.lock().map_err(failed(&output))?;

    let key = key(program, build, sockets).map_err(failed(&program.source()))?;
    let key_file = output.with_extension("key");
    if output.exists() && fs::read_to_string(&key_file).is_ok_and(|known| known == key) {
        return Ok(output);
    }
    // A program that runs cannot be overwritten, but it can be replaced.
    let fresh = output.with_extension("new");
    let cc = Command::new("cc")
        .args([
            "-std=gnu11",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
        ])
        .args(build.flags())
        .arg("-I")
        .arg(folder())
        .arg("-o")
        .args([&fresh, &program.source()])
        .args(sockets.arguments())
        .arg("-lrt")
        .output()
        .map_err(failed(Path::new("cc")))?;
    if !cc.status.success() {
        return Err(CompileError::Refused {
            path: program.source(),
            messages: String::from_utf8_lossy(&cc.stderr).into_owned(),
        });
    }
    fs::rename(&fresh, &output).map_err(failed(&output))?;
    fs::write(&key_file, key).map_err(failed(&key_file))?;
    Ok(output)
}

/// Changes with whatever goes into the program.
fn key(program: &Program, build: Build, sockets: Sockets) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    // Some know by `__FILE__` where their source is.
    program.source().hash(&mut hasher);
    fs::read(program.source())?.hash(&mut hasher);
    build.flags().hash(&mut hasher);
    sockets.arguments().hash(&mut hasher);
    let mut headers: Vec<PathBuf> = fs::read_dir(folder())?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<_>>()?;
    headers.retain(|path| path.is_file());
    headers.sort();
    for header in headers {
        fs::read(header)?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}
