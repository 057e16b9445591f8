//! Programs that only become another one, or start it, as `env` does: which one that is.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

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

/// The program that the words of `command` come down to.
pub(crate) fn followed(command: impl IntoIterator<Item = OsString>) -> OsString {
    let mut words: VecDeque<_> = command.into_iter().collect();
    for _ in 0..DEPTH_MAX {
        let rest = words
            .front()
            .and_then(|first| Starter::named(first))
            .map(|starter| starter.behind(words.clone()));
        match rest {
            Some(rest) if !rest.is_empty() => words = rest,
            _ => break,
        }
    }
    words.pop_front().unwrap_or_default()
}

impl Starter {
    fn named(program: &OsStr) -> Option<&'static Self> {
        let name = Path::new(program).file_name()?;
        STARTERS.iter().find(|starter| name == starter.name)
    }

    /// What is left of its command line behind its own words.
    fn behind(&self, mut words: VecDeque<OsString>) -> VecDeque<OsString> {
        words.pop_front();
        while let Some(word) = words.pop_front_if(|word| word.as_bytes().starts_with(b"-")) {
            match self.value(word.as_bytes()) {
                _ if word == "--" => break,
                (Wanted::Nothing, _) => {}
                (Wanted::Value, None) => drop(words.pop_front()),
                (Wanted::Value, Some(_)) => {}
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
            && words
                .pop_front_if(|word| word.as_bytes().contains(&b'='))
                .is_some()
        {}
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

/// By an option.
enum Wanted {
    Nothing,
    /// Of which nothing matters here.
    Value,
    /// More of the command line.
    Words,
}

const STARTERS: [Starter; 5] = [
    Starter {
        name: "env",
        valued: &[(b'u', "unset"), (b'C', "chdir"), (b'a', "argv0")],
        words: 0,
        is_env: true,
    },
    Starter {
        name: "nice",
        valued: &[(b'n', "adjustment")],
        words: 0,
        is_env: false,
    },
    Starter {
        name: "nohup",
        valued: &[],
        words: 0,
        is_env: false,
    },
    Starter {
        name: "setsid",
        valued: &[],
        words: 0,
        is_env: false,
    },
    Starter {
        name: "timeout",
        valued: &[(b'k', "kill-after"), (b's', "signal")],
        // How long.
        words: 1,
        is_env: false,
    },
];

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
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(followed(words), program, "{line}");
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
            assert_eq!(followed(words), expected, "{word}");
        }
    }
}
