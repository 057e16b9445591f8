use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Says now, and not after minutes of measuring, that files cannot be written, or that two are one.
pub(crate) fn check_all_writable<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let mut made = Vec::new();
    let checked = check_each(paths, &mut made);
    if checked.is_err() {
        for path in made {
            // It is empty, and of two mistakes the first is told.
            let _ = fs::remove_file(path);
        }
    }
    checked
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
pub(crate) fn check_writable(path: &Path) -> Result<()> {
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
        assert_eq!(fs::read(&old).expect("it is there"), b"kept");
        fs::remove_file(&old).expect("it is ours");
    }

    #[test]
    fn what_moves_the_cursor_is_shown_instead() {
        let shown = visible("/bin/sh\r: \u{1b}[31m\u{9b}é\nno such program");
        assert_eq!(shown, "/bin/sh\\r: \\u{1b}[31m\\u{9b}é\nno such program");
    }
}
