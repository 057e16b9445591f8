//! Which connections are shown: a small language after that of `ss`.
//!
//! ```text
//! or    = and { ("or" | "||" | "|") and }
//! and   = not { ["and" | "&&" | "&"] not }
//! not   = ("not" | "!") not | "(" or ")" | test
//! test  = field [operator] value
//! ```

use std::fmt;
use std::net::IpAddr;

use sockets::reason::Reason;
use sockets::rules::glob;
use sockets::rules::text::Network;

use super::row::{Process, Row};
use parser::Parser;

mod parser;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    All,
    Test(Test),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    field: Field,
    operator: Operator,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    DestinationPort,
    Destination,
    Descriptor,
    Origin,
    Path,
    Pid,
    Program,
    Reason,
    Received,
    Rule,
    Sent,
    SourcePort,
    Source,
    State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Word(String),
    Network(Network),
}

/// Why a text is no filter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    text: String,
    /// In bytes, from 0.
    at: usize,
    message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, at, message } = self;
        let column = text.get(..*at).map_or(0, |before| before.chars().count());
        writeln!(f, "filter, column {}: {message}", column + 1)?;
        write!(f, "  {text}\n  {:column$}^", "")
    }
}

impl Filter {
    /// Nothing is a filter that lets everything through.
    pub(super) fn parse(text: &str) -> Result<Self, Mistake> {
        Parser::new(text).whole()
    }

    pub(super) fn fits(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Test(test) => test.fits(row),
            Self::Not(inner) => !inner.fits(row),
            Self::And(left, right) => left.fits(row) && right.fits(row),
            Self::Or(left, right) => left.fits(row) || right.fits(row),
        }
    }

    /// Whether it tells processes apart and no more, so that it says of all connections of one the same at any time.
    pub(super) fn is_of_processes(&self) -> bool {
        match self {
            Self::All => true,
            Self::Test(test) => matches!(test.field, Field::Pid | Field::Program),
            Self::Not(inner) => inner.is_of_processes(),
            Self::And(left, right) | Self::Or(left, right) => {
                left.is_of_processes() && right.is_of_processes()
            }
        }
    }

    /// The same for a process, which may have no connection now. Nothing that is of a connection fits.
    pub(super) fn fits_process(&self, process: &Process) -> bool {
        match self {
            Self::All => true,
            Self::Test(test) => test.fits_process(process),
            Self::Not(inner) => !inner.fits_process(process),
            Self::And(left, right) => left.fits_process(process) && right.fits_process(process),
            Self::Or(left, right) => left.fits_process(process) || right.fits_process(process),
        }
    }
}

impl Test {
    fn fits_number(&self, n: u64) -> bool {
        match self.value {
            Value::Number(value) => self.operator.holds(n.cmp(&value)),
            _ => false,
        }
    }

    fn fits_word(&self, text: &str) -> bool {
        match &self.value {
            Value::Word(pattern) => {
                glob::fits(pattern.as_bytes(), text.as_bytes())
                    == (self.operator == Operator::Equal)
            }
            _ => false,
        }
    }

    fn fits_process(&self, process: &Process) -> bool {
        match self.field {
            Field::Pid => self.fits_number(process.pid.into()),
            Field::Program => self.fits_word(&process.program),
            _ => false,
        }
    }

    fn fits(&self, row: &Row) -> bool {
        let number = |n: u64| self.fits_number(n);
        let word = |text: &str| self.fits_word(text);
        let address = |address: IpAddr| match self.value {
            Value::Network(network) => network.holds(address) == (self.operator == Operator::Equal),
            _ => false,
        };
        match self.field {
            Field::DestinationPort => number(row.peer.port().into()),
            Field::Destination => address(row.peer.ip()),
            Field::Descriptor => row.fd.is_some_and(|fd| number(fd.into())),
            Field::Origin => word(row.origin),
            Field::Path => word(&row.path),
            Field::Pid => number(row.pid.into()),
            Field::Program => word(&row.program),
            Field::Reason => match (&self.value, &row.reason) {
                (Value::Word(_), reason) => word(reason.as_ref().map_or("", |reason| reason.name)),
                (_, reason) => number(
                    reason
                        .as_ref()
                        .map_or(NO_REASON, |reason| reason.number)
                        .into(),
                ),
            },
            Field::Received => number(row.bytes_received),
            Field::Rule => word(row.rule.as_ref().map_or("none", |rule| rule.upgrade)),
            Field::Sent => number(row.bytes_sent),
            Field::SourcePort => number(row.local.port().into()),
            Field::Source => address(row.local.ip()),
            Field::State => word(row.state),
        }
    }
}

impl Field {
    fn find(name: &str) -> Option<Self> {
        FIELDS
            .into_iter()
            .find(|(of, _)| *of == name)
            .map(|(_, field)| field)
    }

    /// The value that `text` is for this field.
    fn value(self, text: &str) -> Result<Value, String> {
        match self {
            Self::DestinationPort | Self::SourcePort => text
                .strip_prefix(':')
                .unwrap_or(text)
                .parse::<u16>()
                .map(|port| Value::Number(port.into()))
                .map_err(|_| format!("{text} is no port")),
            Self::Destination | Self::Source => match Network::parse(text) {
                None => Err(format!("{text} is no address, nor a network as 10.0.0.0/8")),
                Some(network) if network.is_too_exact() => {
                    Err(format!("{text}: the address has bits beyond the prefix"))
                }
                Some(network) => Ok(Value::Network(network)),
            },
            Self::Descriptor | Self::Pid => text
                .parse::<u32>()
                .map(|n| Value::Number(n.into()))
                .map_err(|_| format!("{text} is no number")),
            Self::Received | Self::Sent => bytes(text)
                .ok_or_else(|| format!("{text} is no number of bytes, as 512 or 64K or 2M")),
            Self::Reason => match text.parse::<u16>() {
                Ok(number) if number == NO_REASON || Reason::find(number).is_some() => {
                    Ok(Value::Number(number.into()))
                }
                Err(_) if is_known(text, Reason::ALL.iter().map(|reason| reason.name())) => {
                    Ok(Value::Word(text.to_owned()))
                }
                _ => Err(format!(
                    "{text} is no reason: sovia stat --reasons lists them"
                )),
            },
            Self::Path if WAYS.contains(&text) => Ok(Value::Word(format!("*/{text}"))),
            Self::Path if NICS.contains(&text) => Ok(Value::Word(format!("{text}/*"))),
            Self::Path => one_of(text, &PATHS),
            Self::State => one_of(text, &["young", "meeting", "mapped", "tcp", "via"]),
            Self::Origin => one_of(text, &["connected", "accepted", "inherited"]),
            Self::Rule => one_of(text, &["none", "never", "when-possible", "always"]),
            Self::Program => Ok(Value::Word(text.to_owned())),
        }
    }

    /// Whether there is more and less of it.
    fn is_ordered(self) -> bool {
        matches!(
            self,
            Self::DestinationPort
                | Self::SourcePort
                | Self::Descriptor
                | Self::Pid
                | Self::Received
                | Self::Sent
        )
    }
}

impl Operator {
    fn find(text: &str) -> Option<Self> {
        Some(match text {
            "=" | "==" | "eq" => Self::Equal,
            "!=" | "ne" | "neq" => Self::Unequal,
            "<" | "lt" => Self::Less,
            "<=" | "le" | "leq" => Self::LessOrEqual,
            ">" | "gt" => Self::Greater,
            ">=" | "ge" | "geq" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

fn one_of(text: &str, words: &[&str]) -> Result<Value, String> {
    match is_known(text, words.iter().copied()) {
        true => Ok(Value::Word(text.to_owned())),
        false => Err(format!("{text} is none of {}", words.join(", "))),
    }
}

fn is_known<'a>(pattern: &str, mut words: impl Iterator<Item = &'a str>) -> bool {
    words.any(|word| glob::fits(pattern.as_bytes(), word.as_bytes()))
}

fn bytes(text: &str) -> Option<Value> {
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'K' | 'k') => (text.get(..at)?, 10),
        (at, 'M' | 'm') => (text.get(..at)?, 20),
        (at, 'G' | 'g') => (text.get(..at)?, 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift).map(Value::Number)
}

const FIELDS: [(&str, Field); 14] = [
    ("sport", Field::SourcePort),
    ("dport", Field::DestinationPort),
    ("src", Field::Source),
    ("dst", Field::Destination),
    ("state", Field::State),
    ("path", Field::Path),
    ("reason", Field::Reason),
    ("pid", Field::Pid),
    ("program", Field::Program),
    ("fd", Field::Descriptor),
    ("origin", Field::Origin),
    ("rule", Field::Rule),
    ("sent", Field::Sent),
    ("received", Field::Received),
];

/// Of what is not on TCP.
const PATHS: [&str; 6] = [
    "shm/ring",
    "tcp",
    "shm/packet",
    "iwarp/packet",
    "shm/extended",
    "iwarp/extended",
];
/// The halves of those.
const NICS: [&str; 2] = ["shm", "iwarp"];
const WAYS: [&str; 3] = ["ring", "packet", "extended"];
/// What is on shared memory has this.
const NO_REASON: u16 = 0;

#[cfg(test)]
mod tests;
