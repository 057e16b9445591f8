//! The user's configuration: one file, found, read, checked, and handed to `libsovia.so` through the environment.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sockets::rules::text;

use file::{Contents, Mistake, Rule};

mod file;
#[cfg(test)]
mod tests;

/// A configuration that has no mistake.
#[derive(Debug)]
pub(crate) struct Config {
    path: PathBuf,
    contents: Contents,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{}: {source}", path.display())]
    Unread { path: PathBuf, source: io::Error },
    /// Line and column are counted from 1, columns in bytes.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Wrong {
        path: PathBuf,
        line: usize,
        column: usize,
        message: String,
    },
}

impl Config {
    /// Reads the file `named`, or that of `SOVIA_CONFIG`, or the first of the usual places that there is; `None` if there is none, or the name is empty.
    ///
    /// # Errors
    /// A named file is not there, one cannot be read, or has a mistake.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, Error> {
        let variable = env::var_os(VARIABLE).map(PathBuf::from);
        if let Some(named) = named.map(PathBuf::from).or(variable) {
            return match named.as_os_str().is_empty() {
                true => Ok(None),
                false => Self::read(named).map(Some),
            };
        }
        for path in usual_places() {
            match Self::read(path) {
                Err(Error::Unread { path, source }) if is_absent(&path, &source) => {}
                result => return result.map(Some),
            }
        }
        Ok(None)
    }

    fn read(path: PathBuf) -> Result<Self, Error> {
        match bytes_of(&path) {
            Ok(bytes) => Self::parse(path, &bytes),
            Err(source) => Err(Error::Unread { path, source }),
        }
    }

    fn parse(path: PathBuf, bytes: &[u8]) -> Result<Self, Error> {
        let chunk = bytes.utf8_chunks().next();
        let text = chunk.as_ref().map_or("", |chunk| chunk.valid());
        let contents = match text.len() == bytes.len() {
            true => Contents::parse(text),
            false => Err(Mistake {
                at: text.len(),
                message: "a byte that is not UTF-8".to_owned(),
            }),
        };
        match contents {
            Ok(contents) => Self { path, contents }.fitting(),
            Err(mistake) => {
                let before = text.get(..mistake.at).unwrap_or(text);
                let line_start = before.rfind('\n').map_or(0, |at| at + 1);
                Err(Error::Wrong {
                    path,
                    line: before.matches('\n').count() + 1,
                    column: before.len() - line_start + 1,
                    message: mistake.message,
                })
            }
        }
    }

    /// Refuses one that no program could be started with.
    fn fitting(self) -> Result<Self, Error> {
        let text = self.text();
        // Beside it the name, an equals sign, and a zero at the end.
        let room = VARIABLE_MAX - RULES.len() - 2;
        if text.len() <= room {
            return Ok(self);
        }
        let fitting = text.as_bytes().iter().take(room);
        let begun = fitting.filter(|&&byte| byte == b';').count();
        let rule = self.contents.rules.get(begun.saturating_sub(1));
        Err(Error::Wrong {
            path: self.path,
            line: rule.map_or(1, |rule| rule.line),
            column: 1,
            message: format!(
                "with this rule all rules take more than the {room} bytes that Linux allows in a variable of the environment; as they are handed on they take {}",
                text.len()
            ),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn rule_count(&self) -> usize {
        self.contents.rules.len()
    }

    /// What it says besides rules, in the order of [`VARIABLES`].
    fn values(&self) -> [Option<OsString>; 2] {
        let Contents {
            packet, nic, iwarp, ..
        } = &self.contents;
        let over = nic.as_ref().map(|nic| format!("nic={nic}"));
        let words: Vec<_> = packet.iter().chain(&over).map(String::as_str).collect();
        let words = (!words.is_empty()).then(|| words.join(","));
        [words, iwarp.clone()].map(|value| value.map(OsString::from))
    }

    /// The form of [`sockets::rules::text`].
    pub(crate) fn text(&self) -> String {
        // Whoever is told of it may be in another folder.
        let path = std::path::absolute(&self.path);
        let path = path.as_ref().unwrap_or(&self.path).to_string_lossy();
        let path = path.replace([' ', ';'], "?");
        let mut text = format!("{} {path}", text::VERSION);
        let mut say = |part: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = text.write_fmt(part);
        };
        say(format_args!("{}", self.contents.words));
        for rule in &self.contents.rules {
            let Rule {
                line,
                words,
                programs,
                peers,
                ports,
            } = rule;
            say(format_args!(";{line}{words}"));
            for program in programs {
                say(format_args!(" p={program}"));
            }
            for peer in peers {
                say(format_args!(" a={peer}"));
            }
            for (first, last) in ports {
                say(format_args!(" s={first}-{last}"));
            }
        }
        text
    }
}

/// For a program that is run with this configuration: variables with their values, and those that it is to be without.
///
/// Of what is set already the user's own counts more, but for the rules, which are this file's. What another file said, as an outer `sovia run` marks it,
/// does not count.
pub(crate) fn environment(config: Option<&Config>) -> Vec<(&'static str, Option<OsString>)> {
    environment_in(config, |name| env::var_os(name))
}

fn environment_in(
    config: Option<&Config>,
    set: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, Option<OsString>)> {
    let mut variables = vec![(RULES, config.map(|config| config.text().into()))];
    let values = config.map(Config::values).unwrap_or_default();
    for ((name, mark), value) in VARIABLES.into_iter().zip(values) {
        let now = set(name);
        if now.is_some() && now != set(mark) {
            variables.push((mark, None));
        } else {
            variables.extend([(name, value.clone()), (mark, value)]);
        }
    }
    variables
}

/// A file may be a device that never ends. A pipe without a name, as a shell's `<(…)` is, has somebody who writes; one with a name need not.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let is_pipe = fs::metadata(path)?.file_type().is_fifo();
    if is_pipe && path.canonicalize().is_ok() {
        return Err(io::Error::other(
            "a named pipe, to which nobody may ever write",
        ));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(LEN_MAX + 1);
    match file.read_to_end(&mut bytes) {
        _ if file.limit() == 0 => Err(io::Error::other("larger than 1 MiB")),
        read => read.map(|_| bytes),
    }
}

fn usual_places() -> Vec<PathBuf> {
    let folder = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
    };
    let own = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    let own = own.map(|folder| folder.join("sovia/sovia.toml"));
    own.into_iter().chain([PathBuf::from(SYSTEM)]).collect()
}

/// Another user's folders, as `HOME` names them after a change of user, are as good as none. What the administrator says behind a folder that one may not
/// enter is meant for this user, too.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => true,
        io::ErrorKind::PermissionDenied => path != Path::new(SYSTEM) && fs::metadata(path).is_err(),
        _ => false,
    }
}

const LEN_MAX: u64 = 1 << 20;
/// The kernel's MAX_ARG_STRLEN where pages are smallest.
const VARIABLE_MAX: usize = 32 * 4096;
const VARIABLE: &str = "SOVIA_CONFIG";
const SYSTEM: &str = "/etc/sovia/sovia.toml";
/// What `libsovia.so` reads at its start.
pub(crate) const RULES: &str = "SOVIA_RULES";
/// Each with the mark that holds the same value if it is a file's.
const VARIABLES: [(&str, &str); 2] = [
    ("SOVIA_PACKET", "SOVIA_FILE_PACKET"),
    (iwarp::VARIABLE, "SOVIA_FILE_IWARP"),
];
