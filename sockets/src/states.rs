//! The states of a connection, and of each direction of one with rings: which there are, and what leads from one to another.
//!
//! One row is one transition. A [connection] takes its steps through its table: what has no row does not happen. The directions
//! of one with rings lie in memory that its processes share, so what [`sender`] and [`receiver`] are is read from there; the tests of
//! [`flow`](crate::flow) look each change up, and each call that changes nothing. `docs/sockets.md` shows the three.

use crate::reason::Reason;

pub mod connection;
pub mod receiver;
pub mod sender;

#[cfg(all(test, not(loom)))]
mod page;
#[cfg(all(test, not(loom)))]
pub(crate) mod visits;

/// A transition.
#[derive(Debug)]
pub struct Row<S: 'static, E: 'static> {
    /// The state before.
    pub from: S,
    /// What happens.
    pub on: E,
    /// In which case, if the same may lead elsewhere.
    pub when: &'static str,
    /// The state after.
    pub to: S,
    /// What goes with it.
    pub done: &'static str,
    /// Why the bytes are on TCP from then on: one of these.
    pub reasons: &'static [Reason],
}

/// Writes a table with a line a row: what happens, in which case if there are several, the state before and after, what is done, and the reasons.
macro_rules! table {
    ($state:ident $event:ident $($on:ident $($when:literal)?: $from:ident => $to:ident, $done:literal $([$($reason:ident)+])?;)+) => {
        &[$($crate::states::Row {
            from: $state::$from,
            on: $event::$on,
            when: concat!($($when)?),
            to: $state::$to,
            done: $done,
            reasons: &[$($($crate::reason::Reason::$reason),+)?],
        }),+]
    };
}
use table;

/// Declares states or events, each with the word that documents have for it.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident $word:literal)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for documents.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it means.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}
use words;
