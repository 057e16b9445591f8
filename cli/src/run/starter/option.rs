//! Options as getopt_long(3) reads them.

use super::Starter;

/// By an option.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    Nothing,
    /// Of the option with this long name.
    Value(&'static str),
    /// More of the command line.
    Words,
}

/// What an option of `starter` wants, and what of that is part of its word.
pub(super) fn wanted<'a>(starter: &Starter, option: &'a [u8]) -> (Wanted, Option<&'a [u8]>) {
    if let Some(long) = option.strip_prefix(b"--") {
        let mut parts = long.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default();
        return (long_one(starter, name), parts.next());
    }
    for (at, &letter) in option.iter().enumerate().skip(1) {
        let valued = starter.valued.iter().find(|&&(short, _)| short == letter);
        let wanted = match valued {
            Some((_, name)) => Wanted::Value(name),
            None if starter.is_env && letter == b'S' => Wanted::Words,
            None => continue,
        };
        let rest = option.get(at + 1..).unwrap_or_default();
        return (wanted, (!rest.is_empty()).then_some(rest));
    }
    (Wanted::Nothing, None)
}

/// A name may be cut where no other begins so: then the program starts nothing, and what is said here does not matter.
fn long_one(starter: &Starter, name: &[u8]) -> Wanted {
    let is_meant = |short: u8, long: &str| match short {
        // The linker does not use getopt_long(3).
        NO_SHORT => long.as_bytes() == name,
        _ => !name.is_empty() && long.as_bytes().starts_with(name),
    };
    let meant = |&&(short, long): &&(u8, &'static str)| is_meant(short, long);
    match starter.valued.iter().find(meant) {
        Some((_, long)) => Wanted::Value(long),
        None if starter.is_env && is_meant(b'S', "split-string") => Wanted::Words,
        None => Wanted::Nothing,
    }
}

/// Whether an option of `env` has the program start without its variables.
pub(super) fn empties(option: &[u8]) -> bool {
    match option.strip_prefix(b"--") {
        // What begins so is whole enough for getopt_long(3).
        Some(long) => long.starts_with(b"ignore-e") && b"ignore-environment".starts_with(long),
        None => option == b"-" || alone(option).any(|letter| letter == b'i'),
    }
}

/// Whether `env` has no such option, for there is a blank where one is named: the kernel gives all that stands behind an interpreter as one word.
pub(super) fn is_unsplit(option: &[u8]) -> bool {
    match option.strip_prefix(b"--") {
        Some(long) => {
            let mut name = long.iter().take_while(|&&byte| byte != b'=');
            name.any(u8::is_ascii_whitespace)
        }
        None => alone(option).any(|letter| letter.is_ascii_whitespace()),
    }
}

/// The letters of a word of `env`'s before one whose value the rest is.
fn alone(option: &[u8]) -> impl Iterator<Item = u8> {
    let letters = option.iter().copied().skip(1);
    letters.take_while(|letter| !b"uCaS".contains(letter))
}

/// In place of a letter.
pub(super) const NO_SHORT: u8 = 0;
