//! The file's tables, as TOML has them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sockets::rules::Upgrade;
use toml::Spanned;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tables {
    #[serde(deserialize_with = "rules")]
    pub(super) rule: Vec<Spanned<RuleTable>>,
    pub(super) connection: ConnectionTable,
    pub(super) packet: PacketTable,
    pub(super) iwarp: IwarpTable,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RuleTable {
    pub(super) program: Option<Spanned<OneOrMore<String>>>,
    pub(super) peer: Option<Spanned<OneOrMore<String>>>,
    pub(super) port: Option<Spanned<OneOrMore<Port>>>,
    pub(super) upgrade: Option<UpgradeWord>,
    pub(super) after_turns: Option<Spanned<Whole>>,
    pub(super) after_bytes: Option<Spanned<Whole>>,
    pub(super) spin_us: Option<Spanned<Whole>>,
    pub(super) buffer_bytes: Option<Spanned<Whole>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ConnectionTable {
    pub(super) after_turns: Option<Spanned<Whole>>,
    pub(super) after_bytes: Option<Spanned<Whole>>,
    pub(super) spin_us: Option<Spanned<Whole>>,
    pub(super) buffer_bytes: Option<Spanned<Whole>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PacketTable {
    pub(super) variant: Option<Spanned<String>>,
    pub(super) nic: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct IwarpTable {
    pub(super) address: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct UpgradeWord(pub(super) Upgrade);

impl<'de> Deserialize<'de> for UpgradeWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = UpgradeWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"never\", \"when-possible\" or \"always\"")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<UpgradeWord, E> {
                Ok(UpgradeWord(match word {
                    "never" => Upgrade::Never,
                    "when-possible" => Upgrade::WhenPossible,
                    "always" => Upgrade::Always,
                    _ => return Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                }))
            }
        }
        from.deserialize_any(Words)
    }
}

/// `6379` or `"8000-8999"`.
#[derive(Debug)]
pub(super) enum Port {
    Number(i64),
    Text(String),
}

impl Port {
    pub(super) fn range(self) -> Result<(u16, u16), String> {
        let no_port =
            |text: &dyn fmt::Display| format!("{text}: a port is a number from 1 to 65535");
        let one = |number: i64| u16::try_from(number).ok().filter(|&port| port > 0);
        let (first, last) = match &self {
            Self::Number(number) => {
                let port = one(*number).ok_or_else(|| no_port(number))?;
                (port, port)
            }
            Self::Text(text) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let port = |text: &str| text.trim().parse().ok().and_then(one);
                port(first)
                    .zip(port(last))
                    .ok_or_else(|| format!("{text}: neither a port nor a range as \"8000-8999\""))?
            }
        };
        if first > last {
            return Err(format!("{first}-{last}: the range ends before it begins"));
        }
        Ok((first, last))
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Ports;
        impl Visitor<'_> for Ports {
            type Value = Port;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port, or a range of ports as \"8000-8999\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Port, E> {
                Ok(Port::Number(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Port, E> {
                Ok(Port::Text(text.to_owned()))
            }
        }
        from.deserialize_any(Ports)
    }
}

/// As `Vec` is read, but for who writes `[rule]`.
fn rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Spanned<RuleTable>>, D::Error> {
    struct Rules;
    impl<'de> Visitor<'de> for Rules {
        type Value = Vec<Spanned<RuleTable>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("tables that begin with [[rule]] each")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut rules = Vec::new();
            while let Some(rule) = seq.next_element()? {
                rules.push(rule);
            }
            Ok(rules)
        }
    }
    from.deserialize_seq(Rules)
}

#[derive(Debug)]
pub(super) struct Whole(pub(super) i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Wholes;
        impl Visitor<'_> for Wholes {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }
        }
        from.deserialize_i64(Wholes)
    }
}

/// A value, or a list of them with the place of each. Where a single one stands is known by whoever has the whole.
#[derive(Debug)]
pub(super) struct OneOrMore<T>(pub(super) Vec<(Option<Range<usize>>, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Values<T> {
            type Value = OneOrMore<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or a list of values")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<OneOrMore<T>, E> {
                let value = T::deserialize(de::value::I64Deserializer::new(number))?;
                Ok(OneOrMore(vec![(None, value)]))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMore<T>, E> {
                let value = T::deserialize(de::value::StrDeserializer::new(text))?;
                Ok(OneOrMore(vec![(None, value)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMore<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element::<Spanned<T>>()? {
                    values.push((Some(value.span()), value.into_inner()));
                }
                if values.is_empty() {
                    return Err(de::Error::custom("an empty list fits nothing"));
                }
                Ok(OneOrMore(values))
            }
        }
        from.deserialize_any(Values(PhantomData))
    }
}
