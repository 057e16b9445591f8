use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Says now, and not after minutes of measuring, that files cannot be written, or that two are one. It leaves none that was not there.
pub(crate) fn check_all_writable<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let mut made = Vec::new();
    let checked = check_each(paths, &mut made);
    for path in made {
        // It is empty, and of two mistakes the first is told.
        let _ = fs::remove_file(path);
    }
    checked
}

/// Of an option that takes files only.
pub(crate) fn check_is_file(option: &str, path: Option<&PathBuf>) -> Result<()> {
    match path {
        Some(path) if path.as_os_str() == STDOUT => Err(Error::Misuse(format!(
            "{option} takes a file; only --json - is for standard output"
        ))),
        _ => Ok(()),
    }
}

/// Writes a file whole, or leaves what it was.
pub(crate) fn write_whole(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    replace(path, bytes.as_ref()).map_err(unwritable(path))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = match path.canonicalize() {
        Ok(file) if file.is_file() => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => path.into(),
        // A device or a pipe has nothing to be left.
        _ => return fs::write(path, bytes),
    };
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let mut beside = file.with_file_name(name);
    let new_file = |at: &Path| OpenOptions::new().write(true).create_new(true).open(at);
    let mut new = new_file(&beside);
    // The file's own name may be as long as a name can be.
    if matches!(&new, Err(error) if error.kind() == io::ErrorKind::InvalidFilename) {
        beside.set_file_name(format!(".sovia.{}", std::process::id()));
        new = new_file(&beside);
    }
    let mut new = match new {
        Ok(new) => new,
        // It may be written all the same.
        Err(_) if file.exists() => return fs::write(path, bytes),
        Err(error) => return Err(error),
    };
    let replaced = new.write_all(bytes).and_then(|()| {
        if let Ok(old) = fs::metadata(&file) {
            // Only root can give it to whose it was.
            let _ = fchown(&new, Some(old.uid()), Some(old.gid()));
            new.set_permissions(old.permissions())?;
        }
        fs::rename(&beside, &file)
    });
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}

/// Of what was said and written the error that is to be told; another one is told here.
pub(crate) fn worse(first: Result<()>, second: Result<()>) -> Result<()> {
    match (first, second) {
        (first, Ok(())) => first,
        (Err(first), Err(second)) if !first.is_enough() => {
            complain(&second);
            Err(first)
        }
        (_, second) => second,
    }
}

/// What was not there before is in `made`.
fn check_each<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    made: &mut Vec<PathBuf>,
) -> Result<()> {
    let mut files = Vec::new();
    for path in paths {
        let was_there = path.exists();
        check_writable(path)?;
        // What is no file, /dev/null for instance, takes everything.
        let Some(file) = path.canonicalize().ok().filter(|file| file.is_file()) else {
            continue;
        };
        if !was_there {
            made.push(file.clone());
        }
        if files.contains(&file) {
            return Err(Error::Misuse(format!(
                "{}: named twice, for different things",
                path.display()
            )));
        }
        files.push(file);
    }
    Ok(())
}

/// The same of one.
fn check_writable(path: &Path) -> Result<()> {
    if path.as_os_str() == STDOUT {
        return Ok(());
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map(drop)
        .map_err(unwritable(path))
}

pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File {
        path: path.display().to_string(),
        source,
    }
}

/// Says what is wrong on standard error, where somebody may read it or not.
pub(crate) fn complain(what: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "sovia: {}", visible(&what.to_string()));
}

/// Text as a terminal may be told it: a name may hold anything, and a file say whose it is.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push(character),
            character if character.is_control() => shown.extend(character.escape_default()),
            character => shown.push(character),
        }
    }
    shown
}

/// In place of a file.
pub(crate) const STDOUT: &str = "-";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_refused_leaves_nothing() {
        let at =
            |name| std::env::temp_dir().join(format!("sovia-output-{}-{name}", std::process::id()));
        let [old, new] = ["old", "new"].map(at);
        fs::write(&old, "kept").expect("a file");
        let nowhere = at("nowhere").join("file");
        for paths in [[&new, &new], [&new, &nowhere], [&old, &old]] {
            assert!(check_all_writable(paths).is_err(), "{paths:?}");
            assert!(!new.exists(), "{paths:?}");
        }
        // Whoever ends us while we measure finds no file that is empty.
        check_all_writable([&old, &new]).expect("they are ours");
        assert!(!new.exists());
        assert_eq!(fs::read(&old).expect("it is there"), b"kept");
        fs::remove_file(&old).expect("it is ours");
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let folder = crate::folder::Folder::temporary("whole").expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        write_whole(&file, "first").expect("room");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).expect("it is ours");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        write_whole(&link, "second").expect("room");
        assert_eq!(fs::read(&file).expect("it is there"), b"second");
        let mode = fs::metadata(&file).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o604);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 2);
        let longest = folder.path().join("n".repeat(255));
        for text in ["first", "second"] {
            write_whole(&longest, text).expect("room");
            assert_eq!(fs::read(&longest).expect("it is there"), text.as_bytes());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 3);
        assert!(write_whole(Path::new("/dev/full"), "bytes").is_err());
    }

    #[test]
    fn what_moves_the_cursor_is_shown_instead() {
        let shown = visible("/bin/sh\r: \u{1b}[31m\u{9b}é\nno such program");
        assert_eq!(shown, "/bin/sh\\r: \\u{1b}[31m\\u{9b}é\nno such program");
    }
}
