//! Where the dynamic linker will find the libraries that a program names (ld.so(8)), without running it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::image::Image;

/// A program and all that is loaded with it.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The program first.
    pub(super) images: Vec<Image>,
    /// Names that nothing was found for.
    pub(super) missing: Vec<String>,
}

impl Loaded {
    /// Follows `program`'s libraries, and theirs.
    pub(super) fn with(program: Image) -> Self {
        let cache = Cache::read();
        let mut images = vec![program];
        let mut missing = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = 0;
        while let Some(image) = images.get(next) {
            next += 1;
            let names: VecDeque<_> = image.needed.clone().into();
            let folders = image.folders.clone();
            for name in names {
                if seen.len() >= LIBRARIES_MAX || !seen.insert(name.clone()) {
                    continue;
                }
                match find(&name, &folders, &cache).map(|path| Image::read(&path)) {
                    Some(Ok(library)) => images.push(library),
                    // There, and the linker will judge it.
                    Some(Err(_)) => {}
                    None => missing.push(name.display().to_string()),
                }
            }
        }
        Self { images, missing }
    }
}

fn find(name: &Path, folders: &[PathBuf], cache: &Cache) -> Option<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return name.is_file().then(|| name.into());
    }
    let told = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let told: Vec<_> = env::split_paths(&told)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    let inside = |folder: &Path| Some(folder.join(name)).filter(|path| path.is_file());
    folders
        .iter()
        .chain(&told)
        .find_map(|folder| inside(folder))
        .or_else(|| cache.0.get(name.as_os_str()).cloned())
        .or_else(|| DEFAULTS.iter().find_map(|folder| inside(Path::new(folder))))
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
        let found = find(Path::new("libc.so.6"), &[], &Cache::read());
        assert!(found.is_some_and(|path| path.is_file()));
        assert_eq!(
            find(Path::new("libno-such.so.9"), &[], &Cache::read()),
            None
        );
    }

    #[test]
    fn this_test_needs_the_c_library_and_nothing_is_missing() {
        let own = Image::read(&env::current_exe().expect("a path")).expect("an ELF file");
        let loaded = Loaded::with(own);
        assert_eq!(loaded.missing, [""; 0]);
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
