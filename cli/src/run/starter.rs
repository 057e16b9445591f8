//! Programs that only become another one, or start it, as `env` does: which one that is.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use self::list::{CHDIR, LIBRARY_PATH, LINKERS, STARTERS, UNSET};
use self::option::{Wanted, empties, is_unsplit, wanted};
use super::place::Place;
use super::program::Error;
use super::{PRELOAD, library};

mod list;
mod option;

/// How such a program reads its words: options, words of its own, and then the program.
struct Starter {
    name: &'static str,
    /// Options whose value is the next word, unless it is part of theirs.
    valued: &'static [(u8, &'static str)],
    /// Words before the program that are no options.
    words: usize,
    /// Whether `NAME=VALUE` comes before the program, and `-S` has words in one.
    is_env: bool,
}

/// How something is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) program: OsString,
    /// From where.
    pub(crate) place: Place,
    /// Whether what was in `LD_PRELOAD` has been taken from it on the way.
    pub(crate) loses_preload: bool,
}

/// What a command line comes down to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) last: Start,
    /// What starts it, from the first; each is started by the one before it.
    pub(crate) starters: Vec<Start>,
    /// A word that the last takes for an option that it does not have, so that it starts nothing.
    refused: Option<OsString>,
}

impl Followed {
    /// # Errors
    /// The last one would start nothing.
    pub(crate) fn accepted(&self) -> Result<(), Error> {
        let word = self.refused.clone();
        word.map_or(Ok(()), |word| {
            let program = self.last.program.clone();
            Err(Error::Refused { program, word })
        })
    }
}

/// The program that the words of `command` come down to, where they are said at `place`.
pub(crate) fn followed(command: impl IntoIterator<Item = OsString>, place: Place) -> Followed {
    let mut words: VecDeque<_> = command.into_iter().collect();
    let mut starters = Vec::new();
    let mut refused = None;
    let mut last = Start {
        program: OsString::new(),
        place,
        loses_preload: false,
    };
    for _ in 0..DEPTH_MAX {
        let Some(starter) = words.front().and_then(|first| Starter::named(first)) else {
            break;
        };
        let mut next = last.clone();
        match starter.behind(words.clone(), &mut next) {
            Ok(rest) if !rest.is_empty() => {
                last.program = words.pop_front().unwrap_or_default();
                starters.push(last);
                (words, last) = (rest, next);
            }
            Ok(_) => break,
            Err(word) => {
                refused = Some(word);
                break;
            }
        }
    }
    last.program = words.pop_front().unwrap_or_default();
    Followed {
        last,
        starters,
        refused,
    }
}

/// Whether that is the C library's dynamic linker, which loads a program in its own place.
pub(crate) fn is_linker(program: &OsStr) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| LINKERS.iter().any(|linker| name == *linker))
}

impl Starter {
    const fn plain(
        name: &'static str,
        valued: &'static [(u8, &'static str)],
        words: usize,
    ) -> Self {
        Self {
            name,
            valued,
            words,
            is_env: false,
        }
    }

    fn named(program: &OsStr) -> Option<&'static Self> {
        let name = Path::new(program).file_name()?;
        STARTERS.iter().find(|starter| name == starter.name)
    }

    /// What is left of its command line behind its own words. What they change is changed in `then`.
    fn behind(
        &self,
        mut words: VecDeque<OsString>,
        then: &mut Start,
    ) -> Result<VecDeque<OsString>, OsString> {
        words.pop_front();
        then.place.told_linker = None;
        let mut folder = None;
        while let Some(word) = words.pop_front_if(|word| word.as_bytes().starts_with(b"-")) {
            if word == "--" {
                break;
            }
            if self.is_env && is_unsplit(word.as_bytes()) {
                return Err(word);
            }
            if self.is_env && empties(word.as_bytes()) {
                then.loses_preload = true;
                then.place.empty();
            }
            let (wanted, value) = wanted(self, word.as_bytes());
            let value = value.map(OsStr::from_bytes).map(OsStr::to_owned);
            let mut value = || value.clone().or_else(|| words.pop_front());
            match wanted {
                Wanted::Nothing => {}
                Wanted::Value(option) => match (value(), option) {
                    (Some(name), UNSET) => then.set(name.as_bytes(), None),
                    (Some(path), CHDIR) => folder = Some(path),
                    (list, LIBRARY_PATH) => then.place.told_linker = list,
                    _ => {}
                },
                Wanted::Words => {
                    let value = value().unwrap_or_default();
                    let inner = value.as_bytes().split(u8::is_ascii_whitespace);
                    let inner = inner.filter(|word| !word.is_empty());
                    for word in inner.rev() {
                        words.push_front(OsString::from_vec(word.to_vec()));
                    }
                }
            }
        }
        words.drain(..self.words.min(words.len()));
        while self.is_env
            && let Some(word) = words.pop_front_if(|word| word.as_bytes().contains(&b'='))
        {
            let mut parts = word.as_bytes().splitn(2, |&byte| byte == b'=');
            let (name, value) = (parts.next().unwrap_or_default(), parts.next());
            then.set(name, value.map(OsStr::from_bytes));
        }
        // Of several the last counts.
        if let Some(folder) = folder {
            then.place.folder.push(folder);
        }
        Ok(words)
    }
}

impl Start {
    /// Sets a variable, or takes it away.
    fn set(&mut self, name: &[u8], value: Option<&OsStr>) {
        if name == PRELOAD.as_bytes() {
            self.loses_preload = !value.is_some_and(|list| library::is_in(list.as_bytes()));
        }
        self.place.set(name, value);
    }
}

/// One may start another; `env -S` may start itself.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests;
