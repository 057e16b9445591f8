//! Folders of our own that are gone at the end.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{self, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::{Context, Error, Result};
use crate::output::complain;
use crate::process::end_all;
use crate::signals::heeded;

/// A folder that nobody else has made, or can have known the name of. It is removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Where files for a while belong.
    pub(crate) fn temporary(purpose: &str) -> Result<Self> {
        Self::new(&env::temp_dir(), purpose)
    }

    /// In memory; `None` where there is no room for files by the hundred megabytes, or nothing may be made.
    pub(crate) fn in_memory(purpose: &str) -> Option<Self> {
        let room = rustix::fs::statvfs(SHARED_MEMORY).ok()?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let folder = || Self::new(Path::new(SHARED_MEMORY), purpose).ok();
        (free >= ROOM).then(folder).flatten()
    }

    fn new(parent: &Path, purpose: &str) -> Result<Self> {
        let refused = |at: &Path, source| Error::File {
            path: at.display().to_string(),
            source,
        };
        // Programs are started in folders of their own.
        let parent = path::absolute(parent).map_err(|source| refused(parent, source))?;
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty()).context("getrandom")?;
        let random = u64::from_ne_bytes(random);
        let folder = parent.join(format!(
            "sovia-{purpose}-{}-{random:016x}",
            std::process::id()
        ));
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder
            .create(&folder)
            .map_err(|source| refused(&folder, source))?;
        Ok(Self(folder))
    }

    /// Lets others pass through it, to what is theirs within, whatever the umask.
    pub(crate) fn let_pass(&self) -> Result<()> {
        fs::set_permissions(&self.0, Permissions::from_mode(0o711)).context("chmod")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                complain(format_args!("{}: {error}", self.0.display()));
            }
            _ => {}
        }
    }
}

/// Removes the folders when somebody ends us, too, once the programs that work in them have ended.
pub(crate) fn clear_when_told_to_end(folders: Vec<PathBuf>) -> Result<()> {
    // A handler is gone in a program that we start. Signals that are blocked, to be waited for, would stay blocked there for ever.
    let signals = heeded(&[SIGHUP, SIGINT, SIGTERM, SIGXFSZ]);
    let mut signals = Signals::new(signals).context("sigaction")?;
    thread::Builder::new()
        .name("end".to_owned())
        .spawn(move || {
            // A file that must not become so long is an error of the call that writes it.
            let Some(signal) = signals.forever().find(|&signal| signal != SIGXFSZ) else {
                return;
            };
            end_all(ENDING_MAX);
            let start = Instant::now();
            // Others may be at it still; what is there no more need not be removed.
            while folders.iter().any(|folder| folder.exists()) && start.elapsed() < CLEARING_MAX {
                for folder in &folders {
                    let _ = fs::remove_dir_all(folder);
                }
            }
            // As a shell says it.
            std::process::exit(128 + signal);
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

const SHARED_MEMORY: &str = "/dev/shm";
const ROOM: u64 = 1 << 30;
/// As long as a server is given that is stopped in order.
const ENDING_MAX: Duration = Duration::from_secs(5);
const CLEARING_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_has_it() {
        let parent = Folder::temporary("folders").expect("a folder");
        let folders = [(); 2].map(|()| Folder::new(parent.path(), "test").expect("a folder"));
        let [first, second] = &folders;
        assert_ne!(first.path(), second.path());
        let mode = |folder: &Folder| {
            let metadata = fs::metadata(folder.path()).expect("it is there");
            metadata.permissions().mode() & 0o777
        };
        assert_eq!(mode(first), 0o700);
        first.let_pass().expect("it is ours");
        assert_eq!(mode(first), 0o711);
        drop(folders);
        let left = fs::read_dir(parent.path()).expect("it is there").count();
        assert_eq!(left, 0);
    }
}
