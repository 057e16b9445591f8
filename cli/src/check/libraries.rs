//! Where the dynamic linker will find the libraries that a program names (ld.so(8)), without running it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::slice;

use super::folders::{Words, folders};
use super::image::Image;
use crate::run::place::Place;

/// A program and all that is loaded with it.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The program first.
    pub(super) images: Vec<Image>,
    /// Names that nothing was found for.
    pub(super) missing: Vec<Missing>,
}

/// A library that was not found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) name: String,
    /// A folder where it may be, if the linker can make something of what we cannot.
    pub(super) unknown: Option<PathBuf>,
}

impl Loaded {
    /// Follows `program`'s libraries, and theirs, by the `search` that is for it.
    pub(super) fn with(program: Image, search: &Search) -> Self {
        let mut images = vec![program];
        // Whose need each was loaded for; the program is nobody's.
        let mut askers = vec![None];
        let mut missing = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = 0;
        while let Some(image) = images.get(next) {
            let needed = image.needed.clone();
            let folders = Folders::of(next, &images, &askers);
            for name in needed {
                let is_loaded = |image: &Image| image.name.as_ref() == Some(&name);
                if seen.len() >= LIBRARIES_MAX
                    || images.iter().skip(1).any(is_loaded)
                    || !seen.insert(name.clone())
                {
                    continue;
                }
                let Some(path) = search.find(&name, &folders) else {
                    missing.push(Missing {
                        name: name.display().to_string(),
                        unknown: search.unknown(&folders).cloned(),
                    });
                    continue;
                };
                // One that cannot be read is there, and the linker will judge it.
                if let Ok(mut library) = Image::read(&path) {
                    search.expand(&mut library, &folder_of(path));
                    images.push(library);
                    askers.push(Some(next));
                }
            }
            next += 1;
        }
        Self { images, missing }
    }
}

/// The folders that stand in the files themselves, for the libraries of one of them.
#[derive(Debug, Default)]
pub(super) struct Folders {
    /// Before `LD_LIBRARY_PATH`.
    rpath: Vec<PathBuf>,
    /// Behind it.
    runpath: Vec<PathBuf>,
}

impl Folders {
    /// The program's.
    pub(super) fn of_program(program: &Image) -> Self {
        Self::of(0, slice::from_ref(program), &[None])
    }

    /// `DT_RPATH` is for all that is loaded on behalf of the file that has it, but for files with a `DT_RUNPATH`.
    fn of(index: usize, images: &[Image], askers: &[Option<usize>]) -> Self {
        let mut rpath = Vec::new();
        if let Some(runpath) = images.get(index).and_then(|image| image.runpath.clone()) {
            return Self { rpath, runpath };
        }
        let mut at = Some(index);
        while let Some(index) = at {
            rpath.extend(
                images
                    .get(index)
                    .iter()
                    .flat_map(|image| image.rpath.clone()),
            );
            at = askers.get(index).copied().flatten();
        }
        Self {
            rpath,
            runpath: Vec::new(),
        }
    }
}

/// Where the linker looks, whatever the file.
#[derive(Debug)]
pub(super) struct Search {
    cache: Cache,
    /// `LD_LIBRARY_PATH`, or what the linker is told in its place.
    told: Vec<PathBuf>,
    /// Where relative names are looked for.
    place: Place,
    lib: PathBuf,
}

impl Search {
    /// For `program`, in whose folders the linker's words are replaced, where it is started at `place`.
    pub(super) fn of(program: &mut Image, place: &Place) -> Self {
        let cache = Cache::read();
        let mut search = Self {
            told: Vec::new(),
            place: place.clone(),
            lib: lib(&cache),
            cache,
        };
        // The kernel says which file it is; of a library the linker knows only where it found it.
        let real = fs::canonicalize(&program.path);
        let origin = folder_of(real.unwrap_or_else(|_| program.path.clone()));
        search.expand(program, &origin);
        let told = place.libraries().as_bytes().split(|&byte| byte == b';');
        let words = Words {
            origin: &origin,
            lib: &search.lib,
        };
        search.told = told
            .flat_map(folders)
            .map(|folder| words.expand(&folder))
            .collect();
        search
    }

    fn expand(&self, image: &mut Image, origin: &Path) {
        let words = Words {
            origin,
            lib: &self.lib,
        };
        let runpath = image.runpath.iter_mut().flatten();
        for path in runpath.chain(&mut image.rpath).chain(&mut image.needed) {
            *path = words.expand(path);
        }
    }

    /// Where the linker finds what a file with these folders asks for.
    pub(super) fn find(&self, name: &Path, folders: &Folders) -> Option<PathBuf> {
        if name.as_os_str().as_bytes().contains(&b'/') {
            return Some(self.place.file(name)).filter(|path| path.is_file());
        }
        let cached = || self.cache.0.get(name.as_os_str()).cloned();
        let inside =
            |folder: &Path| Some(self.place.file(folder).join(name)).filter(|path| path.is_file());
        self.said(folders)
            .find_map(|folder| inside(folder))
            .or_else(|| cached().filter(|path| path.is_file()))
            .or_else(|| DEFAULTS.iter().find_map(|folder| inside(Path::new(folder))))
    }

    /// A folder with a word that we do not know.
    fn unknown<'a>(&'a self, folders: &'a Folders) -> Option<&'a PathBuf> {
        let mut said = self.said(folders);
        said.find(|folder| folder.as_os_str().as_bytes().contains(&b'$'))
    }

    fn said<'a>(&'a self, folders: &'a Folders) -> impl Iterator<Item = &'a PathBuf> {
        let Folders { rpath, runpath } = folders;
        rpath.iter().chain(&self.told).chain(runpath)
    }
}

fn folder_of(file: PathBuf) -> PathBuf {
    let mut folder = absolute(&file).unwrap_or(file);
    folder.pop();
    folder
}

/// What `$LIB` is to the linker, which was built with its C library: `lib64`, `lib/x86_64-linux-gnu` or the like.
fn lib(cache: &Cache) -> PathBuf {
    let libc = cache.0.get(OsStr::new("libc.so.6")).map(PathBuf::as_path);
    let folder = libc
        .and_then(Path::parent)
        .unwrap_or_else(|| Path::new("/lib64"));
    let below = folder
        .strip_prefix("/usr")
        .or_else(|_| folder.strip_prefix("/"));
    below.unwrap_or(folder).into()
}

/// `/etc/ld.so.cache`: from names to files.
#[derive(Debug, Default)]
struct Cache(BTreeMap<OsString, PathBuf>);

impl Cache {
    fn read() -> Self {
        fs::read("/etc/ld.so.cache")
            .ok()
            .and_then(|bytes| Self::parse(&bytes))
            .unwrap_or_default()
    }

    /// The format that glibc has written since 2.2, by itself or behind the older one: a head, entries, and strings that they point to.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let start = bytes
            .windows(MAGIC.len())
            .position(|window| window == MAGIC)?;
        let bytes = bytes.get(start..)?;
        let word = |at: usize| {
            let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let string = |at: u32| {
            let text = bytes.get(at as usize..)?;
            Some(OsStr::from_bytes(text.split(|&byte| byte == 0).next()?))
        };
        let mut found = BTreeMap::new();
        for index in 0..(word(MAGIC.len())? as usize).min(bytes.len() / ENTRY) {
            let at = HEAD + index * ENTRY;
            let (flags, key, value) = (word(at)?, word(at + 4)?, word(at + 8)?);
            if flags == FLAGS {
                let (key, value) = (string(key)?, string(value)?);
                // The first is the one for the best processor that the linker accepts here.
                found.entry(key.into()).or_insert_with(|| value.into());
            }
        }
        Some(Self(found))
    }
}

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEAD: usize = 48;
const ENTRY: usize = 24;
/// A library of glibc for this processor.
#[cfg(target_arch = "x86_64")]
const FLAGS: u32 = 0x0303;
#[cfg(target_arch = "aarch64")]
const FLAGS: u32 = 0x0a03;

/// Where the linker looks last; the first two are Debian's.
const DEFAULTS: [&str; 6] = [
    #[cfg(target_arch = "x86_64")]
    "/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/lib/aarch64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

const LIBRARIES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_of_this_host_is_found() {
        let search = Search::of(&mut Image::default(), &Place::ours());
        let find = |name| search.find(Path::new(name), &Folders::default());
        assert!(find("libc.so.6").is_some_and(|path| path.is_file()));
        assert_eq!(find("libno-such.so.9"), None);
    }

    #[test]
    fn this_test_needs_the_c_library_and_nothing_is_missing() {
        let own = Image::read(&std::env::current_exe().expect("a path"));
        let mut own = own.expect("an ELF file");
        let search = Search::of(&mut own, &Place::ours());
        let loaded = Loaded::with(own, &search);
        assert_eq!(loaded.missing, []);
        assert!(loaded.images.iter().any(Image::is_c_library));
    }

    #[test]
    fn a_cut_or_scrambled_cache_is_no_harm() {
        let whole = fs::read("/etc/ld.so.cache").unwrap_or_default();
        for len in (0..whole.len().min(4096)).step_by(7) {
            Cache::parse(&whole[..len]);
        }
        let mut head = [MAGIC, &[0xff; 100]].concat();
        assert!(Cache::parse(&head).is_none_or(|cache| cache.0.is_empty()));
        head.truncate(MAGIC.len() + 2);
        assert!(Cache::parse(&head).is_none());
    }
}
