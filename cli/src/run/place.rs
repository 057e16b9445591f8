use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What decides which files a process means by names: its folder, and two variables of its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Empty for ours; a path without a slash in front is below that.
    pub(super) folder: PathBuf,
    path: Option<OsString>,
    library_path: Option<OsString>,
    /// What the dynamic linker was told in place of `LD_LIBRARY_PATH`, for one program.
    pub(super) told_linker: Option<OsString>,
}

impl Place {
    /// This process's own.
    pub(crate) fn ours() -> Self {
        Self {
            path: env::var_os(PATH),
            library_path: env::var_os(LIBRARY_PATH),
            ..Self::default()
        }
    }

    /// The file that a process there means.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// The folders where `execvp` looks.
    pub(super) fn programs(&self) -> impl Iterator<Item = PathBuf> {
        let path = self
            .path
            .as_deref()
            .unwrap_or_else(|| OsStr::new(PATH_DEFAULT));
        // An empty entry is the current folder.
        let folders = env::split_paths(path).map(|folder| self.file(".").join(folder));
        folders.collect::<Vec<_>>().into_iter()
    }

    /// The list of folders where the dynamic linker is to look for libraries.
    pub(crate) fn libraries(&self) -> &OsStr {
        let told = self.told_linker.as_deref();
        told.or(self.library_path.as_deref()).unwrap_or_default()
    }

    /// Changes a variable of the environment, as far as it matters here.
    pub(super) fn set(&mut self, name: &[u8], value: Option<&OsStr>) {
        let variable = match name {
            name if name == PATH.as_bytes() => &mut self.path,
            name if name == LIBRARY_PATH.as_bytes() => &mut self.library_path,
            _ => return,
        };
        *variable = value.map(OsStr::to_owned);
    }

    /// Takes all variables away.
    pub(super) fn empty(&mut self) {
        self.path = None;
        self.library_path = None;
    }
}

const PATH: &str = "PATH";
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// The C library's where the variable is not set.
const PATH_DEFAULT: &str = "/bin:/usr/bin";
