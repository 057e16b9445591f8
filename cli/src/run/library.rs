use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// `libsovia.so`, found.
#[derive(Debug)]
pub(crate) struct Library(PathBuf);

/// There is no library to preload.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{OVERRIDE} names {}, which is not there", .0.display())]
    Misnamed(PathBuf),
    #[error("{OVERRIDE} names {}, which is no shared library", .0.display())]
    Other(PathBuf),
    #[error("{} is no shared library", .0.display())]
    Broken(PathBuf),
    #[error("{NAME} is missing. Looked for it at:{}\n{OVERRIDE} can name another place", list(.0))]
    Missing(Vec<PathBuf>),
    #[error("{}: the dynamic linker takes no path with a space, a colon or a dollar sign", .0.display())]
    Unspeakable(PathBuf),
}

impl Library {
    /// Looks where `SOVIA_PRELOAD` says, or at the places where a build or an installation puts it.
    pub(crate) fn find() -> Result<Self, Error> {
        if let Some(named) = env::var_os(OVERRIDE).filter(|named| !named.is_empty()) {
            let named = PathBuf::from(named);
            return match named.canonicalize() {
                Ok(path) if is_shared_library(&path) => Self::checked(path),
                Ok(_) => Err(Error::Other(named)),
                Err(_) => Err(Error::Misnamed(named)),
            };
        }
        let executable = env::current_exe()
            .ok()
            .or_else(|| start::path()?.canonicalize().ok())
            .unwrap_or_default();
        let folder = executable.parent().unwrap_or_else(|| Path::new("/"));
        let places: Vec<_> = PLACES.iter().map(|place| folder.join(place)).collect();
        let found = places.iter().filter_map(|place| place.canonicalize().ok());
        let found: Vec<_> = found.filter(|path| path.is_file()).collect();
        let (good, broken): (Vec<_>, _) =
            found.into_iter().partition(|path| is_shared_library(path));
        match (good.into_iter().next(), broken.into_iter().next()) {
            (Some(path), _) => Self::checked(path),
            (None, Some(path)) => Err(Error::Broken(path)),
            (None, None) => Err(Error::Missing(places)),
        }
    }

    fn checked(path: PathBuf) -> Result<Self, Error> {
        let separator = |byte: &u8| matches!(byte, b':' | b' ' | b'\t' | b'\n' | b'$');
        if path.as_os_str().as_bytes().iter().any(separator) {
            Err(Error::Unspeakable(path))
        } else {
            Ok(Self(path))
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The value of `LD_PRELOAD` that loads this one before what it held. Once is enough.
    pub(crate) fn before(&self, others: Option<&OsStr>) -> OsString {
        let mut list = self.0.clone().into_os_string();
        let others = others.map_or(&[][..], OsStrExt::as_bytes);
        for name in names(others).filter(|name| *name != self.0.as_os_str().as_bytes()) {
            list.push(":");
            list.push(OsStr::from_bytes(name));
        }
        list
    }
}

/// The dynamic linker says of what is none that it ignores it, and starts the program without.
fn is_shared_library(path: &Path) -> bool {
    // A pipe would be waited for.
    if !path.is_file() {
        return false;
    }
    let mut start = [0; 18];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // One that may not be read is the dynamic linker's to complain of.
    let denied = matches!(&read, Err(error) if error.kind() == ErrorKind::PermissionDenied);
    let [.., low, high] = start;
    let is_dynamic = object::elf::FileType(u16::from_le_bytes([low, high])) == object::elf::ET_DYN;
    denied || (start.starts_with(&object::elf::ELFMAG) && is_dynamic)
}

/// Whether a list as that of `LD_PRELOAD` has a `libsovia.so` in it.
pub(crate) fn is_in(list: &[u8]) -> bool {
    names(list).any(is_ours)
}

/// The same list without it; `None` if nothing is left.
pub(crate) fn without(list: &OsStr) -> Option<OsString> {
    let others: Vec<_> = names(list.as_bytes())
        .filter(|name| !is_ours(name))
        .collect();
    (!others.is_empty()).then(|| OsString::from_vec(others.join(&b':')))
}

fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b':' | b' '))
        .filter(|name| !name.is_empty())
}

/// By its name, or that of the file to which it leads.
fn is_ours(name: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(name));
    path.ends_with(NAME) || path.canonicalize().is_ok_and(|path| path.ends_with(NAME))
}

fn list(places: &[PathBuf]) -> impl fmt::Display {
    places
        .iter()
        .map(|place| format!("\n  {}", place.display()))
        .collect::<String>()
}

const NAME: &str = "libsovia.so";
const OVERRIDE: &str = "SOVIA_PRELOAD";

/// Relative to the folder of the program. In a build folder of cargo `deps` is first: what lies beside the program there may be older.
const PLACES: [&str; 4] = [
    "deps/libsovia.so",
    "libsovia.so",
    "../lib/sovia/libsovia.so",
    "../lib/libsovia.so",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn before(others: &str) -> String {
        let library = Library::checked("/opt/libsovia.so".into()).expect("a plain path");
        let list = library.before(Some(OsStr::new(others)));
        list.into_string().expect("UTF-8")
    }

    #[test]
    fn what_was_preloaded_stays() {
        assert_eq!(before(""), "/opt/libsovia.so");
        assert_eq!(
            before("libjemalloc.so.2 /x/y.so"),
            "/opt/libsovia.so:libjemalloc.so.2:/x/y.so"
        );
    }

    #[test]
    fn others_stay_where_it_is_taken_out() {
        let without = |list: &str| without(OsStr::new(list));
        assert_eq!(without("/opt/libsovia.so"), None);
        assert_eq!(
            without("a.so:/opt/libsovia.so b.so"),
            Some(OsString::from("a.so:b.so"))
        );
    }

    #[test]
    fn it_is_preloaded_once() {
        assert_eq!(
            before("a.so:/opt/libsovia.so:b.so"),
            "/opt/libsovia.so:a.so:b.so"
        );
    }

    #[test]
    fn a_path_that_cannot_be_said_is_refused() {
        for path in ["/a b/libsovia.so", "/a:b/libsovia.so", "/$LIB/libsovia.so"] {
            assert!(
                matches!(
                    Library::checked(path.into()),
                    Err(Error::Unspeakable(at)) if at == Path::new(path)
                ),
                "{path}"
            );
        }
    }
}
