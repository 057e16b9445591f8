//! Programs that only become another one, or start it, as `env` does: which one that is.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use self::list::{LINKERS, STARTERS};
use super::{PRELOAD, library};

mod list;

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

/// What a command line comes down to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) program: OsString,
    /// What starts it, from the first; each is started by the one before it.
    pub(crate) starters: Vec<OsString>,
    /// Whether what was in `LD_PRELOAD` is taken from it on the way.
    pub(crate) loses_preload: bool,
}

/// The program that the words of `command` come down to.
pub(crate) fn followed(command: impl IntoIterator<Item = OsString>) -> Followed {
    let mut words: VecDeque<_> = command.into_iter().collect();
    let mut starters = Vec::new();
    let mut loses_preload = false;
    for _ in 0..DEPTH_MAX {
        let mut loses_here = loses_preload;
        let rest = words
            .front()
            .and_then(|first| Starter::named(first))
            .map(|starter| starter.behind(words.clone(), &mut loses_here));
        match rest {
            Some(rest) if !rest.is_empty() => {
                starters.extend(words.pop_front());
                (words, loses_preload) = (rest, loses_here);
            }
            _ => break,
        }
    }
    Followed {
        program: words.pop_front().unwrap_or_default(),
        starters,
        loses_preload,
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

    /// What is left of its command line behind its own words.
    fn behind(
        &self,
        mut words: VecDeque<OsString>,
        loses_preload: &mut bool,
    ) -> VecDeque<OsString> {
        words.pop_front();
        while let Some(word) = words.pop_front_if(|word| word.as_bytes().starts_with(b"-")) {
            *loses_preload |= self.is_env && empties(word.as_bytes());
            match self.value(word.as_bytes()) {
                _ if word == "--" => break,
                (Wanted::Nothing, _) => {}
                (Wanted::Value, value) => {
                    let value = value.map(OsStr::from_bytes).map(OsStr::to_owned);
                    let value = value.or_else(|| words.pop_front());
                    // Of env's options no other has this for its value.
                    *loses_preload |= self.is_env && value.is_some_and(|name| name == PRELOAD);
                }
                (Wanted::Words, value) => {
                    let value = value.map(OsStr::from_bytes).map(OsStr::to_owned);
                    let value = value.or_else(|| words.pop_front()).unwrap_or_default();
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
            let preload = word.as_bytes().strip_prefix(PRELOAD.as_bytes());
            if let Some(list) = preload.and_then(|rest| rest.strip_prefix(b"=")) {
                *loses_preload = !library::is_in(list);
            }
        }
        words
    }

    /// What an option wants, and what of that is part of its word, as getopt_long(3) reads it.
    fn value<'a>(&self, option: &'a [u8]) -> (Wanted, Option<&'a [u8]>) {
        if let Some(long) = option.strip_prefix(b"--") {
            let mut parts = long.splitn(2, |&byte| byte == b'=');
            let name = parts.next().unwrap_or_default();
            let wanted = match self.valued.iter().any(|(_, long)| long.as_bytes() == name) {
                true => Wanted::Value,
                false if self.is_env && name == b"split-string" => Wanted::Words,
                false => Wanted::Nothing,
            };
            return (wanted, parts.next());
        }
        for (at, &letter) in option.iter().enumerate().skip(1) {
            let wanted = match self.valued.iter().any(|&(short, _)| short == letter) {
                true => Wanted::Value,
                false if self.is_env && letter == b'S' => Wanted::Words,
                false => continue,
            };
            let rest = option.get(at + 1..).unwrap_or_default();
            return (wanted, (!rest.is_empty()).then_some(rest));
        }
        (Wanted::Nothing, None)
    }
}

/// Whether an option of `env` has the program start without its variables.
fn empties(option: &[u8]) -> bool {
    match option.strip_prefix(b"--") {
        // What begins so is whole enough for getopt_long(3).
        Some(long) => long.starts_with(b"ignore-e") && b"ignore-environment".starts_with(long),
        None => {
            // What follows one of these is its value.
            let letters = option.iter().skip(1);
            let mut letters = letters.take_while(|letter| !b"uCaS".contains(letter));
            option == b"-" || letters.any(|&letter| letter == b'i')
        }
    }
}

/// By an option.
enum Wanted {
    Nothing,
    /// Of which nothing matters here.
    Value,
    /// More of the command line.
    Words,
}

/// One may start another; `env -S` may start itself.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starters_are_followed() {
        for (line, program) in [
            ("redis-server --port 1", "redis-server"),
            ("env A=1 B=2 server x", "server"),
            ("/usr/bin/env -i nohup setsid -w server", "server"),
            ("env", "env"),
            ("env A=1", "env"),
            ("env -u VAR server", "server"),
            ("env -iu VAR server", "server"),
            ("env -uVAR -C / A=1 server -u x", "server"),
            ("env --unset VAR --chdir=/ -- server", "server"),
            ("env - server", "server"),
            ("nice -n 19 server", "server"),
            ("nice -19 server", "server"),
            ("timeout -k 5 --signal=INT 7 env A=1 server", "server"),
            ("timeout 5", "timeout"),
            ("taskset 03 server -b 1024", "server"),
            ("taskset -c 0,2 env A=1 server", "server"),
            ("taskset --cpu-list 0 server", "server"),
            ("taskset -p 700", "taskset"),
            ("chrt -r 50 nice server", "server"),
            (
                "chrt -d --sched-runtime 5000 -D 10000 -P 10000 0 server",
                "server",
            ),
            ("ionice -c3 -n 7 server", "server"),
            ("stdbuf -oL --error=0 server", "server"),
            ("/usr/bin/time -f %e -o log server", "server"),
            ("numactl -N 0 --membind=0 -l server -m 1", "server"),
            (
                "/lib64/ld-linux-x86-64.so.2 --library-path /lib --argv0 x ./server",
                "./server",
            ),
            ("/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(followed(words).program, program, "{line}");
        }
        for (word, program) in [
            ("-S -u X python3", "python3"),
            ("-iS  A=1 python3 -u", "python3"),
            ("--split-string=python3", "python3"),
            ("-Senv", "env"),
            // Without -S the rest of the line is one word.
            ("python3 -u", "python3 -u"),
        ] {
            let words = ["/usr/bin/env", word, "script"].map(OsString::from);
            let expected = if program == "env" { "script" } else { program };
            assert_eq!(followed(words).program, expected, "{word}");
        }
    }

    #[test]
    fn what_takes_the_library_away_is_noticed() {
        for (line, loses) in [
            ("server -i", false),
            ("env server -i", false),
            ("env A=i -i server", false),
            ("env -i server", true),
            ("env - server", true),
            ("env -vi A=1 nohup server", true),
            ("env --ignore-environment server", true),
            ("env --ignore-env server", true),
            ("env --ignore-signal=INT server", false),
            ("env -ui server", false),
            ("env -u i server", false),
            ("env -u LD_PRELOAD server", true),
            ("env -uLD_PRELOAD server", true),
            ("env --unset=LD_PRELOAD server", true),
            ("env -u LD_PRELOADS server", false),
            ("nice -n 5 env LD_PRELOAD= server", true),
            ("env LD_PRELOAD=/lib/libjemalloc.so server", true),
            ("env LD_PRELOADS= server", false),
            (
                "env -i LD_PRELOAD=/lib/other.so:/x/libsovia.so server",
                false,
            ),
            ("env -i env LD_PRELOAD=/x/libsovia.so server", false),
            ("env -S-i server", true),
            // Then it is env that runs.
            ("env -i", false),
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(followed(words).loses_preload, loses, "{line}");
        }
    }
}
