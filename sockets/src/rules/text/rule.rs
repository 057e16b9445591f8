//! One rule: of which connections it is, and what it says of them.

use std::net::IpAddr;

use super::{Malformed, Network, Words, glob, number};

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// Where it begins in the file, from 1.
    pub line: u32,
    /// What it says: one word at least.
    pub words: Words,
    tests: &'a str,
}

/// The paths by which a program may be named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Program<'a> {
    /// Its executable file: for a script that of the interpreter.
    pub executable: &'a [u8],
    /// What was asked to be run: for a script the script.
    pub invoked: &'a [u8],
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

impl<'a> Rule<'a> {
    /// Reads all of it but the tests.
    pub(super) fn parse(segment: &'a str) -> Result<Self, Malformed> {
        let (line, rest) = segment.split_once(' ').ok_or(Malformed)?;
        let (words, tests) = Words::parse(rest)?;
        if words == Words::default() {
            return Err(Malformed);
        }
        Ok(Self {
            line: number(line)?,
            words,
            tests,
        })
    }

    /// Whether all tests can be made.
    pub(super) fn check(&self) -> Result<(), Malformed> {
        self.each().try_for_each(|test| Test::parse(test).map(drop))
    }

    /// Whether it fits all connections of the programs that it fits.
    #[must_use]
    pub fn is_of_program_only(&self) -> bool {
        self.tests().all(|test| matches!(test, Test::Program(_)))
    }

    /// Whether it may fit a connection of `program`.
    #[must_use]
    pub fn is_for(&self, program: &Program<'_>) -> bool {
        // Asked for, and fulfilled by one of the alternatives.
        let (mut asked, mut fulfilled) = (false, false);
        for test in self.tests() {
            if let Test::Program(pattern) = test {
                asked = true;
                fulfilled |= program.fits(pattern);
            }
        }
        fulfilled || !asked
    }

    /// What keeps it from deciding over a connection; `None` if it decides.
    #[must_use]
    pub fn misfit(&self, program: &Program<'_>, peer: IpAddr, port: u16) -> Option<Misfit> {
        if !self.is_for(program) {
            return Some(Misfit::Program);
        }
        let (mut asked, mut fulfilled) = ([false; 2], [false; 2]);
        for test in self.tests() {
            let (kind, fits) = match test {
                Test::Program(_) => continue,
                Test::Peer(network) => (0, network.holds(peer)),
                Test::Port(first, last) => (1, (first..=last).contains(&port)),
            };
            asked[kind] = true;
            fulfilled[kind] |= fits;
        }
        let kinds = [Misfit::Peer, Misfit::Port];
        kinds
            .into_iter()
            .zip(asked.into_iter().zip(fulfilled))
            .find_map(|(misfit, (asked, fulfilled))| (asked && !fulfilled).then_some(misfit))
    }

    fn tests(&self) -> impl Iterator<Item = Test<'a>> + use<'a> {
        self.each().filter_map(|test| Test::parse(test).ok())
    }

    fn each(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.tests.split(' ').filter(|test| !test.is_empty())
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

/// Something that must be so.
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
