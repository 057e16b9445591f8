//! How a connection is to be, beside whether it leaves TCP, and who says so.

use std::fmt;

use serde::Serialize;
use sockets::lifetimes::Level;
use sockets::rules::Upgrade;
use sockets::rules::text::{Answer, Key, Rules};

/// One key.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    key: &'static str,
    /// `None` if waits are as they are without a word about them.
    value: Option<u64>,
    /// `rule`, `connection` for that table of the file, or `default`.
    from: &'static str,
    /// The rule's.
    line: Option<u32>,
    /// Between which bounds it is, where earlier connections have been learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    learned: Option<[u64; 2]>,
}

impl Setting {
    /// All that means something for a connection of which `answer` is said: one that stays on TCP is waited for, and no more.
    pub(super) fn all(rules: Option<&Rules<'_>>, answer: &Answer) -> Vec<Self> {
        let stays = answer.decision.upgrade == Upgrade::Never;
        [Key::Turns, Key::Bytes, Key::Spin, Key::Ring]
            .into_iter()
            .filter(|key| !stays || *key == Key::Spin)
            .map(|key| Self::of(key, rules, answer))
            .collect()
    }

    /// The wait for several connections, where it is another than that for one.
    pub(super) fn several(
        rules: Option<&Rules<'_>>,
        one: &Answer,
        several: &Answer,
    ) -> Option<Self> {
        (one.settings.spin_ns != several.settings.spin_ns)
            .then(|| Self::of(Key::Spin, rules, several))
    }

    fn of(key: Key, rules: Option<&Rules<'_>>, answer: &Answer) -> Self {
        let settings = &answer.settings;
        let value = match key {
            Key::Upgrade => None,
            Key::Turns => Some(settings.turns.into()),
            Key::Bytes => Some(settings.bytes),
            Key::Spin => settings.spin_ns.map(|ns| u64::from(ns) / 1000),
            Key::Ring => Some(settings.ring.bytes() as u64),
        };
        let (soon, late) = (Level::SOON, Level::LATE);
        let learned = match key {
            Key::Turns => Some([soon.turns.into(), late.turns.into()]),
            Key::Bytes => Some([soon.bytes, late.bytes]),
            Key::Upgrade | Key::Spin | Key::Ring => None,
        };
        let number = answer.number(key);
        let line = rules
            .map(|rules| rules.line_of(number))
            .filter(|_| number > 0);
        let from = match rules {
            _ if line.is_some() => "rule",
            Some(rules) if rules.words().keys().has(key) => "connection",
            _ => "default",
        };
        Self {
            key: key.name(),
            value,
            learned: learned.filter(|_| settings.learns),
            from,
            line,
        }
    }

    /// A line of the answer.
    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &str,
        file: Option<&str>,
    ) -> fmt::Result {
        let file = file.unwrap_or_default();
        write!(f, "{label:9}")?;
        match (self.line, self.from) {
            (Some(line), _) => write!(f, "{file}:{line}")?,
            (None, "connection") => write!(f, "{file}, [connection]")?,
            (None, _) => write!(f, "by default")?,
        }
        match (self.value, self.learned) {
            (Some(value), None) => writeln!(f, ": {} = {value}", self.key),
            (Some(value), Some([least, most])) => writeln!(
                f,
                ": {} = {value}, or {least} to {most} as earlier ones to that port lasted",
                self.key
            ),
            (None, _) => writeln!(
                f,
                ": {} = 20, and up to 200 where sleeps end soon",
                self.key
            ),
        }
    }
}
