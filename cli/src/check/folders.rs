//! Lists of folders as the dynamic linker reads them (ld.so(8)).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The folders of a list; an empty one is the current folder, an empty list none.
pub(super) fn folders(list: &[u8]) -> Vec<PathBuf> {
    let whole = Some(list).filter(|list| !list.is_empty());
    let parts = whole
        .into_iter()
        .flat_map(|list| list.split(|&byte| byte == b':'));
    parts
        .map(|folder| match folder.is_empty() {
            true => ".".into(),
            false => OsStr::from_bytes(folder).into(),
        })
        .collect()
}

/// What the linker puts in place of a word behind a dollar.
#[derive(Debug)]
pub(super) struct Words<'a> {
    /// The folder of the file that says it.
    pub(super) origin: &'a Path,
    /// Where libraries are below `/` and `/usr`.
    pub(super) lib: &'a Path,
}

impl Words<'_> {
    /// A path without them. What is no word of the linker's stays as it is.
    pub(super) fn expand(&self, path: &Path) -> PathBuf {
        let mut rest = path.as_os_str().as_bytes();
        let mut whole = Vec::new();
        while let Some((&first, behind)) = rest.split_first() {
            match self.word(rest) {
                Some((value, len)) => {
                    whole.extend_from_slice(value.as_bytes());
                    rest = rest.get(len..).unwrap_or_default();
                }
                None => {
                    whole.push(first);
                    rest = behind;
                }
            }
        }
        OsString::from_vec(whole).into()
    }

    /// The value of the word that `text` begins with, and the length of the word.
    fn word(&self, text: &[u8]) -> Option<(&OsStr, usize)> {
        let behind = text.strip_prefix(b"$")?;
        let words = [
            (&b"ORIGIN"[..], self.origin.as_os_str()),
            (b"LIB", self.lib.as_os_str()),
            (b"PLATFORM", OsStr::new(std::env::consts::ARCH)),
        ];
        words.into_iter().find_map(|(name, value)| {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            if let Some(inner) = behind.strip_prefix(b"{") {
                let rest = inner.strip_prefix(name)?;
                return rest.starts_with(b"}").then_some((value, name.len() + 3));
            }
            let rest = behind.strip_prefix(name)?;
            (!rest.first().is_some_and(is_part)).then_some((value, name.len() + 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_linkers() {
        let words = Words {
            origin: Path::new("/opt/x/bin"),
            lib: Path::new("lib64"),
        };
        let arch = std::env::consts::ARCH;
        for (path, expanded) in [
            ("/usr/lib", "/usr/lib"),
            ("$ORIGIN/../lib", "/opt/x/bin/../lib"),
            (
                "${ORIGIN}/${LIB}/$PLATFORM",
                &format!("/opt/x/bin/lib64/{arch}"),
            ),
            ("/opt/$LIB:", "/opt/lib64:"),
            (
                "/opt/$LIBS/$ORIGIN2/${LIB/$$",
                "/opt/$LIBS/$ORIGIN2/${LIB/$$",
            ),
        ] {
            assert_eq!(words.expand(Path::new(path)), Path::new(expanded));
        }
    }

    #[test]
    fn an_empty_folder_is_the_current_one() {
        assert_eq!(folders(b""), [""; 0].map(PathBuf::from));
        assert_eq!(folders(b"/a::b"), ["/a", ".", "b"].map(PathBuf::from));
    }
}
