//! Rules in the form in which they go through the environment to `libsovia.so`.
//!
//! ```text
//! 2 /etc/sovia/sovia.toml turns=8 ring=65536;12 never p=redis-* a=10.0.0.0/8 s=6379;15 spin=0 ring=131072 s=8000-8999
//! ```
//!
//! Segments between semicolons, words between spaces. First the version of the form, the file, and what is said of all connections; then the rules in
//! the order in which they are tried: the line in the file, what is said, and of which connections. Several tests of one kind are alternatives, kinds
//! are not. It is read where it stands: nothing is allocated.

use std::net::IpAddr;

use super::{Upgrade, glob};
pub use network::Network;
pub use rule::{Misfit, Program, Rule};
pub use words::{Key, Keys, Settings, Words};

mod network;
mod rule;
mod words;

/// Rules that are well-formed.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    file: &'a str,
    /// Of all connections.
    words: Words,
    /// Of what rules say something.
    keys: Keys,
    /// What follows the first semicolon.
    rules: &'a str,
}

/// What the rules say of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What is wanted.
    pub upgrade: Upgrade,
    /// The rule that says so, from 1; 0 if none does.
    pub number: u16,
}

/// All that holds for a connection, and who says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it leaves TCP.
    pub decision: Decision,
    /// How it is.
    pub settings: Settings,
    /// The rules that decide over each [`Key`]; 0 if none does.
    numbers: [u16; Key::ALL.len()],
}

/// It is not in this form, or in that of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rules that this version does not understand")]
pub struct Malformed;

impl<'a> Rules<'a> {
    /// Reads all of it once, so that nothing can be wrong with it later.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        let (head, rules) = text.split_once(';').unwrap_or((text, ""));
        let (version, head) = head.split_once(' ').ok_or(Malformed)?;
        if version != VERSION {
            return Err(Malformed);
        }
        let (file, words) = head.split_once(' ').unwrap_or((head, ""));
        let (words, rest) = Words::parse(words)?;
        if words.upgrade.is_some() || !rest.is_empty() {
            return Err(Malformed);
        }
        let mut rules = Self {
            file,
            words,
            keys: Keys::default(),
            rules,
        };
        let mut count = 0u16;
        for segment in rules.segments() {
            count = count.checked_add(1).ok_or(Malformed)?;
            let rule = Rule::parse(segment)?;
            rule.check()?;
            rules.keys = rules.keys.and(rule.words.keys());
        }
        Ok(rules)
    }

    /// The file that they come from.
    #[must_use]
    pub fn file(&self) -> &'a str {
        self.file
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What is said of all connections.
    #[must_use]
    pub fn words(&self) -> Words {
        self.words
    }

    /// All, with their numbers, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Rule<'a>)> {
        (1..).zip(
            self.segments()
                .filter_map(|segment| Rule::parse(segment).ok()),
        )
    }

    /// What holds for a connection of `program` whose other end is at `peer`, and whose server has `port`. Over each key the first rule decides that fits
    /// and says something of it.
    #[must_use]
    pub fn ask(&self, program: &Program<'_>, peer: IpAddr, port: u16) -> Answer {
        self.gather(|rule| rule.misfit(program, peer, port).is_none())
    }

    /// What holds for `program` where no single connection is meant, as in a wait for several of them: what rules without peer and port say.
    #[must_use]
    pub fn of_program(&self, program: &Program<'_>) -> Answer {
        self.gather(|rule| rule.is_of_program_only() && rule.is_for(program))
    }

    /// Of what something is said for some connections of `program` only.
    #[must_use]
    pub fn of_some(&self, program: &Program<'_>) -> Keys {
        self.iter()
            .filter(|(_, rule)| !rule.is_of_program_only() && rule.is_for(program))
            .fold(Keys::default(), |keys, (_, rule)| {
                keys.and(rule.words.keys())
            })
    }

    /// The line of a rule; 0 if there is none of that number.
    #[must_use]
    pub fn line_of(&self, number: u16) -> u32 {
        self.iter()
            .find(|(of, _)| *of == number)
            .map_or(0, |(_, rule)| rule.line)
    }

    fn gather(&self, fits: impl Fn(&Rule<'a>) -> bool) -> Answer {
        let mut words = Words::default();
        let mut numbers = [0; Key::ALL.len()];
        for (number, rule) in self.iter() {
            let before = words.keys();
            if before.holds(self.keys) {
                break;
            }
            if before.holds(rule.words.keys()) || !fits(&rule) {
                continue;
            }
            words = words.or(&rule.words);
            for (key, of) in Key::ALL.into_iter().zip(&mut numbers) {
                if words.keys().has(key) && !before.has(key) {
                    *of = number;
                }
            }
        }
        let [number, ..] = numbers;
        Answer {
            decision: Decision {
                upgrade: words.upgrade.unwrap_or_default(),
                number,
            },
            settings: Settings::of(&words.or(&self.words)),
            numbers,
        }
    }

    fn segments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.rules.split(';').filter(|segment| !segment.is_empty())
    }
}

impl Answer {
    /// The rule that decides over `key`, from 1; 0 if none does.
    #[must_use]
    pub fn number(&self, key: Key) -> u16 {
        let [upgrade, turns, bytes, spin, ring] = self.numbers;
        match key {
            Key::Upgrade => upgrade,
            Key::Turns => turns,
            Key::Bytes => bytes,
            Key::Spin => spin,
            Key::Ring => ring,
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Malformed> {
    text.parse().map_err(|_| Malformed)
}

/// Of the form.
pub const VERSION: &str = "2";

#[cfg(test)]
mod tests;
