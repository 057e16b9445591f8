//! What can be said of a connection.

use std::fmt;

use sys::stream::Size;

use super::{Malformed, Upgrade, number};
use crate::lifetimes::Level;

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Whether it leaves TCP.
    Upgrade,
    /// After how many turns between sending and receiving.
    Turns,
    /// Or after how many bytes.
    Bytes,
    /// How long its waits poll.
    Spin,
    /// How much it holds.
    Ring,
}

impl Key {
    /// All of them, in the order in which the text has them.
    pub const ALL: [Self; 5] = [
        Self::Upgrade,
        Self::Turns,
        Self::Bytes,
        Self::Spin,
        Self::Ring,
    ];

    /// As the file has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Turns => "after-turns",
            Self::Bytes => "after-bytes",
            Self::Spin => "spin-us",
            Self::Ring => "buffer-bytes",
        }
    }
}

/// Some keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys(u8);

impl Keys {
    /// Whether `key` is one.
    #[must_use]
    pub fn has(self, key: Key) -> bool {
        self.0 & 1 << key as u8 != 0
    }

    /// Whether all of `others` are.
    #[must_use]
    pub fn holds(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    fn with(self, key: Key, is_in: bool) -> Self {
        Self(self.0 | u8::from(is_in) << key as u8)
    }
}

/// What is said, in a rule or for all connections: `None` where nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// What is wanted.
    pub upgrade: Option<Upgrade>,
    /// From 1.
    pub turns: Option<u32>,
    /// From 1.
    pub bytes: Option<u64>,
    /// Nanoseconds; 0 sleeps at once.
    pub spin_ns: Option<u32>,
    /// The longest.
    pub ring: Option<Size>,
}

impl Words {
    /// Takes the words that `text` begins with; what follows them.
    pub(super) fn parse(mut text: &str) -> Result<(Self, &str), Malformed> {
        let mut words = Self::default();
        while !text.is_empty() {
            let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
            let Some(more) = Self::of(word)? else {
                break;
            };
            if words.keys().holds(more.keys()) {
                return Err(Malformed);
            }
            words = words.or(&more);
            text = rest;
        }
        Ok((words, text))
    }

    /// One word; `None` if it is of another kind.
    fn of(word: &str) -> Result<Option<Self>, Malformed> {
        let mut words = Self::default();
        match word.split_once('=') {
            None => words.upgrade = Some(Upgrade::find(word).ok_or(Malformed)?),
            Some(("turns", value)) => words.turns = Some(number(value)?),
            Some(("bytes", value)) => words.bytes = Some(number(value)?),
            Some(("spin", value)) => words.spin_ns = Some(number(value)?),
            Some(("ring", value)) => {
                words.ring = Some(Size::new(number(value)?).ok_or(Malformed)?);
            }
            Some(_) => return Ok(None),
        }
        let never = words.turns == Some(0) || words.bytes == Some(0);
        (!never).then_some(Some(words)).ok_or(Malformed)
    }

    /// Of what something is said.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::default()
            .with(Key::Upgrade, self.upgrade.is_some())
            .with(Key::Turns, self.turns.is_some())
            .with(Key::Bytes, self.bytes.is_some())
            .with(Key::Spin, self.spin_ns.is_some())
            .with(Key::Ring, self.ring.is_some())
    }

    /// These, and of what nothing is said what the `others` say.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        Self {
            upgrade: self.upgrade.or(others.upgrade),
            turns: self.turns.or(others.turns),
            bytes: self.bytes.or(others.bytes),
            spin_ns: self.spin_ns.or(others.spin_ns),
            ring: self.ring.or(others.ring),
        }
    }
}

/// As the text has them, each behind a space.
impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            upgrade,
            turns,
            bytes,
            spin_ns,
            ring,
        } = self;
        if let Some(upgrade) = upgrade {
            write!(f, " {}", upgrade.name())?;
        }
        if let Some(turns) = turns {
            write!(f, " turns={turns}")?;
        }
        if let Some(bytes) = bytes {
            write!(f, " bytes={bytes}")?;
        }
        if let Some(spin_ns) = spin_ns {
            write!(f, " spin={spin_ns}")?;
        }
        if let Some(ring) = ring {
            write!(f, " ring={}", ring.bytes())?;
        }
        Ok(())
    }
}

/// How a connection is, beside whether it leaves TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// After so many changes between sending and receiving a connection is not a short one.
    pub turns: u32,
    /// Or after so many bytes.
    pub bytes: u64,
    /// Nothing is said of either: that is where nothing has been [learned](crate::lifetimes).
    pub learns: bool,
    /// The longest time that a wait polls before it sleeps.
    pub spin_ns: Option<u32>,
    /// The longest rings that a connection has.
    pub ring: Size,
}

impl Settings {
    /// What `words` say, and else the defaults.
    pub(super) fn of(words: &Words) -> Self {
        let usual = Self::default();
        Self {
            turns: words.turns.unwrap_or(usual.turns),
            bytes: words.bytes.unwrap_or(usual.bytes),
            learns: words.turns.is_none() && words.bytes.is_none(),
            spin_ns: words.spin_ns,
            ring: words.ring.unwrap_or(usual.ring),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let Level { turns, bytes } = Level::USUAL;
        Self {
            turns,
            bytes,
            learns: true,
            spin_ns: None,
            ring: Size::DEFAULT,
        }
    }
}
