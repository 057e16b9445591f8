use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::output::unwritable;

/// What a server says. Nobody wants to see it, unless the server ends before its time.
pub(in crate::bench) struct Log(PathBuf);

impl Log {
    /// Nobody else has `path`.
    pub(in crate::bench) fn new(path: PathBuf) -> Result<Self> {
        let log = Self(path);
        log.end().map(|_| log)
    }

    /// Where one of the server's outputs goes.
    pub(in crate::bench) fn end(&self) -> Result<File> {
        let opened = OpenOptions::new().append(true).create(true).open(&self.0);
        opened.map_err(unwritable(&self.0))
    }

    pub(in crate::bench) fn has(&self, words: &str) -> bool {
        fs::read(&self.0).is_ok_and(|said| String::from_utf8_lossy(&said).contains(words))
    }

    /// An error, and the last of what the server said before.
    pub(in crate::bench) fn blame(&self, error: Error) -> Error {
        let said = fs::read(&self.0).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let mut lines: Vec<_> = said.lines().rev().take(LINES).collect();
        lines.reverse();
        match (error, &lines[..]) {
            (Error::Protocol { from, what }, [_, ..]) => Error::Protocol {
                from,
                what: format!("{what}; it said: {}", lines.join(" / ")),
            },
            (error, _) => error,
        }
    }
}

const LINES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_it_said_is_told() {
        let path = std::env::temp_dir().join(format!("sovia-log-{}", std::process::id()));
        let log = Log::new(path.clone()).expect("a file");
        let ended = || Error::Protocol {
            from: "a server",
            what: "it ended".to_owned(),
        };
        let silent = log.blame(ended()).to_string();
        fs::write(&path, "1\n2\n3\n4\n").expect("it is there");
        let told = log.blame(ended()).to_string();
        fs::remove_file(&path).expect("it is ours");
        assert_eq!(silent, "unexpected answer from a server: it ended");
        assert_eq!(told, format!("{silent}; it said: 2 / 3 / 4"));
    }
}
