//! Rules in the form in which they go through the environment to `libsovia.so`.
//!
//! ```text
//! 1 /etc/sovia/sovia.toml turns=8 spin=20000 ring=65536;12 never p=redis-* a=10.0.0.0/8 s=6379;15 always s=8000-8999
//! ```
//!
//! Segments between semicolons, words between spaces. First the version of the form, the file, and settings; then the rules in the order
//! in which they are tried: the line in the file, what is wanted, and what must be so. Several words of one kind are alternatives, kinds are
//! not. It is read where it stands: nothing is allocated.

use std::net::{IpAddr, Ipv6Addr};

use sys::stream::Size;

use super::{Upgrade, glob};

/// Rules that are well-formed.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    file: &'a str,
    settings: Settings,
    /// What follows the first semicolon.
    rules: &'a str,
}

/// The paths by which a program may be named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Program<'a> {
    /// Its executable file: for a script that of the interpreter.
    pub executable: &'a [u8],
    /// What was asked to be run: for a script the script.
    pub invoked: &'a [u8],
}

/// What is set for all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// After so many changes between sending and receiving a connection is not a short one.
    pub turns: u32,
    /// Or after so many bytes.
    pub bytes: u64,
    /// The longest time that a wait polls before it sleeps.
    pub spin_ns: Option<u32>,
    /// The longest rings that a connection has.
    pub ring: Size,
}

/// What the rules say of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What is wanted.
    pub upgrade: Upgrade,
    /// The rule that says so, from 1; 0 if none does.
    pub number: u16,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// Where it begins in the file, from 1.
    pub line: u32,
    /// What it wants.
    pub upgrade: Upgrade,
    words: &'a str,
}

/// Something that a rule asks for and that is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The program is another.
    Program,
    /// The other end has another address.
    Peer,
    /// The server's port is another.
    Port,
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
        let mut words = head.split(' ');
        if words.next() != Some(VERSION) {
            return Err(Malformed);
        }
        let file = words.next().ok_or(Malformed)?;
        let mut settings = Settings::default();
        for word in words {
            let (key, value) = word.split_once('=').ok_or(Malformed)?;
            match key {
                "turns" => settings.turns = number(value)?,
                "bytes" => settings.bytes = number(value)?,
                "spin" => settings.spin_ns = Some(number(value)?),
                "ring" => settings.ring = Size::new(number(value)?).ok_or(Malformed)?,
                _ => return Err(Malformed),
            }
        }
        let rules = Self {
            file,
            settings,
            rules,
        };
        let mut count = 0u16;
        for segment in rules.segments() {
            count = count.checked_add(1).ok_or(Malformed)?;
            for word in Rule::parse(segment)?.words() {
                Test::parse(word)?;
            }
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

    /// What is set for all connections.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// All, with their numbers, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Rule<'a>)> {
        (1..).zip(
            self.segments()
                .filter_map(|segment| Rule::parse(segment).ok()),
        )
    }

    /// What the first rule that fits says of a connection of `program` whose other end is at `peer`, and whose server has `port`.
    #[must_use]
    pub fn decide(&self, program: &Program<'_>, peer: IpAddr, port: u16) -> Decision {
        self.iter()
            .find(|(_, rule)| rule.misfit(program, peer, port).is_none())
            .map_or_else(Decision::default, |(number, rule)| Decision {
                upgrade: rule.upgrade,
                number,
            })
    }

    /// The line of a rule; 0 if there is none of that number.
    #[must_use]
    pub fn line_of(&self, number: u16) -> u32 {
        self.iter()
            .find(|(of, _)| *of == number)
            .map_or(0, |(_, rule)| rule.line)
    }

    fn segments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.rules.split(';').filter(|segment| !segment.is_empty())
    }
}

impl<'a> Rule<'a> {
    fn parse(segment: &'a str) -> Result<Self, Malformed> {
        let (line, rest) = segment.split_once(' ').ok_or(Malformed)?;
        let (upgrade, words) = rest.split_once(' ').unwrap_or((rest, ""));
        Ok(Self {
            line: number(line)?,
            upgrade: Upgrade::find(upgrade).ok_or(Malformed)?,
            words,
        })
    }

    /// Whether it fits all connections of the programs that it fits.
    #[must_use]
    pub fn is_of_program_only(&self) -> bool {
        self.words()
            .filter_map(|word| Test::parse(word).ok())
            .all(|test| matches!(test, Test::Program(_)))
    }

    /// What keeps it from deciding over a connection; `None` if it decides.
    #[must_use]
    pub fn misfit(&self, program: &Program<'_>, peer: IpAddr, port: u16) -> Option<Misfit> {
        // Asked for, and fulfilled by one of the alternatives.
        let (mut asked, mut fulfilled) = ([false; 3], [false; 3]);
        for test in self.words().filter_map(|word| Test::parse(word).ok()) {
            let (kind, fits) = match test {
                Test::Program(pattern) => (0, program.fits(pattern)),
                Test::Peer(network) => (1, network.holds(peer)),
                Test::Port(first, last) => (2, (first..=last).contains(&port)),
            };
            asked[kind] = true;
            fulfilled[kind] |= fits;
        }
        let kinds = [Misfit::Program, Misfit::Peer, Misfit::Port];
        kinds
            .into_iter()
            .zip(asked.into_iter().zip(fulfilled))
            .find_map(|(misfit, (asked, fulfilled))| (asked && !fulfilled).then_some(misfit))
    }

    fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.words.split(' ').filter(|word| !word.is_empty())
    }
}

impl Program<'_> {
    /// A pattern with a slash is for the whole path, one without for the last part of it.
    fn fits(&self, pattern: &str) -> bool {
        [self.executable, self.invoked].into_iter().any(|path| {
            let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
            let name = if pattern.contains('/') { path } else { last };
            glob::fits(pattern.as_bytes(), name)
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            turns: 8,
            bytes: 128 << 10,
            spin_ns: None,
            ring: Size::DEFAULT,
        }
    }
}

/// One word of a rule.
#[derive(Clone, Copy, Debug)]
enum Test<'a> {
    Program(&'a str),
    Peer(Network),
    Port(u16, u16),
}

impl<'a> Test<'a> {
    fn parse(word: &'a str) -> Result<Self, Malformed> {
        match word.split_once('=') {
            Some(("p", pattern)) if !pattern.is_empty() => Ok(Self::Program(pattern)),
            Some(("a", network)) => Network::parse(network).map(Self::Peer).ok_or(Malformed),
            Some(("s", ports)) => {
                let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
                Ok(Self::Port(number(first)?, number(last)?))
            }
            _ => Err(Malformed),
        }
    }
}

/// Addresses that begin alike: `10.0.0.0/8`, `::1`. An IPv4 address is the same as its mapped form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: u128,
    /// Bits that count, of 128.
    len: u32,
}

impl Network {
    /// `None` if it is no address, or has no such prefix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let (most, offset) = match address {
            IpAddr::V4(_) => (32, 96),
            IpAddr::V6(_) => (128, 0),
        };
        let len = len.unwrap_or(most);
        (len <= most).then(|| Self {
            first: bits(address),
            len: len + offset,
        })
    }

    /// Whether the address has bits beyond the prefix, so that it is rather a host's.
    #[must_use]
    pub fn is_too_exact(&self) -> bool {
        self.first & !self.mask() != 0
    }

    /// Whether `address` begins like it.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        (bits(address) ^ self.first) & self.mask() == 0
    }

    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - self.len).unwrap_or(0)
    }
}

fn bits(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.to_bits()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Malformed> {
    text.parse().map_err(|_| Malformed)
}

/// Of the form.
pub const VERSION: &str = "1";

#[cfg(test)]
mod tests;
