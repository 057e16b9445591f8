//! What may stand in the file.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use sockets::packet::Variant;
use sockets::rules::text::{Key, Network, Words};
use toml::Spanned;

mod shape;
mod words;

use shape::{ConnectionTable, OneOrMore, Port, RuleTable, Tables};

/// What the file says, checked.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) rules: Vec<Rule>,
    /// Of all connections.
    pub(super) words: Words,
    pub(super) packet: Option<String>,
    pub(super) nic: Option<String>,
    pub(super) iwarp: Option<String>,
}

/// One `[[rule]]`. An empty list is no condition.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) line: usize,
    pub(super) words: Words,
    pub(super) programs: Vec<String>,
    pub(super) peers: Vec<String>,
    pub(super) ports: Vec<(u16, u16)>,
}

/// What is wrong, and where: a byte of the text.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Contents {
    pub(super) fn parse(text: &str) -> Result<Self, Mistake> {
        let tables: Tables = toml::from_str(text).map_err(|error| Mistake {
            at: error.span().map_or(0, |span| span.start),
            message: error.message().to_owned(),
        })?;
        let Tables {
            rule,
            connection,
            packet,
            iwarp,
        } = tables;
        let rules: Vec<_> = rule
            .into_iter()
            .map(|rule| Rule::checked(rule, text))
            .collect::<Result<_, _>>()?;
        let contents = Self {
            words: connection.checked()?,
            packet: said(packet.variant, |words| {
                Variant::parse(words).map(drop).map_err(|_| {
                    "no variant of SOVIA's packets; words are handler, single, flowctrl, dacks, combine, poll, block, copy, register, windowless"
                })
            })?,
            nic: said(packet.nic, |nic| match nic {
                "shm" | "iwarp" => Ok(()),
                _ => Err("no NIC that packets go over; they are shm and iwarp"),
            })?,
            iwarp: said(iwarp.address, |address| {
                let whole = address.parse::<SocketAddrV4>().is_ok();
                let host = address.parse::<Ipv4Addr>().is_ok();
                let port = address
                    .strip_prefix(':')
                    .is_some_and(|port| port.parse::<u16>().is_ok());
                (whole || host || port)
                    .then_some(())
                    .ok_or("no IPv4 address with or without a port, nor a port as :7471")
            })?,
            rules: Vec::new(),
        };
        Ok(Self {
            rules: all_reachable(rules, text)?,
            ..contents
        })
    }
}

/// What a rule without conditions says nobody asks those behind it.
fn all_reachable(rules: Vec<Rule>, text: &str) -> Result<Vec<Rule>, Mistake> {
    let mut decided = Vec::new();
    for rule in &rules {
        let keys = rule.words.keys();
        let told = decided.iter().find(|(key, _)| keys.has(*key));
        if let Some((key, by)) = told {
            return Err(Mistake {
                at: start_of_line(text, rule.line),
                message: format!(
                    "this rule is never asked for {}, for the rule in line {by} fits every connection",
                    key.name()
                ),
            });
        }
        if rule.fits_always() {
            let said = Key::ALL.into_iter().filter(|key| keys.has(*key));
            decided.extend(said.map(|key| (key, rule.line)));
        }
    }
    if let Some(rule) = rules.get(RULES_MAX) {
        return Err(Mistake {
            at: start_of_line(text, rule.line),
            message: format!("more than {RULES_MAX} rules"),
        });
    }
    Ok(rules)
}

impl Rule {
    fn checked(table: Spanned<RuleTable>, text: &str) -> Result<Self, Mistake> {
        let line = text
            .get(..table.span().start)
            .map_or(1, |before| before.matches('\n').count() + 1);
        let RuleTable {
            program,
            peer,
            port,
            upgrade,
            after_turns,
            after_bytes,
            spin_us,
            buffer_bytes,
        } = table.into_inner();
        let words = ConnectionTable {
            after_turns,
            after_bytes,
            spin_us,
            buffer_bytes,
        };
        let words = Words {
            upgrade: upgrade.map(|word| word.0),
            ..words.checked()?
        };
        if words == Words::default() {
            return Err(Mistake {
                at: start_of_line(text, line),
                message: "this rule says nothing: it has neither upgrade, after-turns, after-bytes, spin-us nor buffer-bytes".to_owned(),
            });
        }
        let peers = each(peer, |peer: String| match Network::parse(&peer) {
            None => Err(format!(
                "{peer}: no address, nor a network as 10.0.0.0/8 or fe80::/10"
            )),
            Some(network) if network.is_too_exact() => {
                Err(format!("{peer}: the address has bits beyond the prefix"))
            }
            Some(_) => Ok(peer),
        })?;
        Ok(Self {
            line,
            words,
            programs: each(program, |name: String| {
                let speakable = |byte: u8| byte.is_ascii_graphic() && byte != b';';
                if name.is_empty() || name.len() > NAME_MAX {
                    Err(format!("a name has 1 to {NAME_MAX} characters"))
                } else if !name.bytes().all(speakable) {
                    Err(format!(
                        "{name}: spaces, semicolons and what is not ASCII cannot be named here; write ? for each byte of them"
                    ))
                } else {
                    Ok(name)
                }
            })?,
            peers,
            ports: each(port, |port: Port| port.range())?,
        })
    }

    fn fits_always(&self) -> bool {
        self.programs.is_empty() && self.peers.is_empty() && self.ports.is_empty()
    }
}

/// Each value as `check` has it.
fn each<T, U>(
    values: Option<Spanned<OneOrMore<T>>>,
    check: impl Fn(T) -> Result<U, String>,
) -> Result<Vec<U>, Mistake> {
    let Some(values) = values else {
        return Ok(Vec::new());
    };
    let whole = values.span();
    let OneOrMore(values) = values.into_inner();
    values
        .into_iter()
        .map(|(span, value)| {
            check(value).map_err(|message| mistake(span.as_ref().unwrap_or(&whole), message))
        })
        .collect()
}

fn said(
    value: Option<Spanned<String>>,
    check: impl FnOnce(&str) -> Result<(), &'static str>,
) -> Result<Option<String>, Mistake> {
    let Some(value) = value else {
        return Ok(None);
    };
    match check(value.get_ref()) {
        Ok(()) => Ok(Some(value.into_inner())),
        Err(message) => Err(mistake(&value.span(), message.to_owned())),
    }
}

fn mistake(span: &Range<usize>, message: String) -> Mistake {
    Mistake {
        at: span.start,
        message,
    }
}

fn start_of_line(text: &str, line: usize) -> usize {
    text.split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum()
}

const RULES_MAX: usize = 1000;
const NAME_MAX: usize = 1000;
