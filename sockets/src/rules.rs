//! What the user wants of connections, by program, peer and port: never, when possible or always to leave TCP, and how soon, with what buffers and waits.
//!
//! The rules come from a file that `sovia run` reads, as [`text`], which is also what `sovia explain` asks. They are looked at once for each
//! connection, when it is made, or when it would be upgraded if the peer was not known before.

use std::net::SocketAddr;
use std::sync::OnceLock;

use sys::sync::Ordering;
use sys::tcp;
use sys::wait::Limits;

use crate::conn::Conn;
use crate::reason::Reason;
use text::{Key, Keys, Program, Rules, Settings};

pub mod glob;
pub mod text;

/// What is wanted of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Upgrade {
    /// It stays on TCP.
    Never,
    /// It leaves TCP if both ends can.
    #[default]
    WhenPossible,
    /// The same, and the user is told if it cannot.
    Always,
}

impl Upgrade {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Never, Self::WhenPossible, Self::Always];

    /// As the file and the text have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::WhenPossible => "when-possible",
            Self::Always => "always",
        }
    }

    /// What has that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|upgrade| upgrade.name() == name)
    }
}

/// A connection that a rule wants upgraded is on TCP.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// This end.
    pub local: SocketAddr,
    /// The other one.
    pub peer: SocketAddr,
    /// Why.
    pub reason: Reason,
    /// The file with the rule, and the line.
    pub file: &'a str,
    /// From 1.
    pub line: u32,
}

/// What holds in this process.
#[derive(Debug)]
struct Active {
    program: Program<'static>,
    /// `None` if what was given cannot be understood.
    rules: Option<Rules<'static>>,
    /// Where no single connection is meant.
    settings: Settings,
    /// Of what something else may hold for some connections.
    of_some: Keys,
}

/// Has `text` hold for this process, which runs `program`; the first call counts. False if it is not understood: then every connection
/// stays on TCP, for it is not known which must.
pub fn install(text: &'static str, program: Program<'static>) -> bool {
    let rules = Rules::parse(text).ok();
    let settings = rules.map(|rules| rules.of_program(&program).settings);
    let of_some = rules.map(|rules| rules.of_some(&program));
    let _ = ACTIVE.set(Active {
        program,
        rules,
        settings: settings.unwrap_or_default(),
        of_some: of_some.unwrap_or_default(),
    });
    rules.is_some()
}

/// What holds where no single connection is meant, and for each of which the rules say nothing else.
pub(crate) fn settings() -> Settings {
    ACTIVE
        .get()
        .map_or_else(Settings::default, |active| active.settings)
}

/// `limits`, with the longest time to poll that the user wants where no single connection is meant.
pub(crate) fn limited(limits: Limits) -> Limits {
    settings().limited(limits)
}

/// Whether no connection is to leave TCP before it has exchanged more than a request and a short answer.
#[inline]
pub(crate) fn leave_time() -> bool {
    ACTIVE.get().is_none_or(|active| {
        let Settings { turns, bytes, .. } = active.settings;
        active.rules.is_some() && !active.is_early() && turns >= 4 && bytes >= 64 << 10
    })
}

/// Whether one connection may wait otherwise than another.
pub(crate) fn waits_differ() -> bool {
    ACTIVE
        .get()
        .is_some_and(|active| active.of_some.has(Key::Spin))
}

impl Settings {
    fn limited(&self, limits: Limits) -> Limits {
        match self.spin_ns {
            Some(longest_ns) => limits.at_most(longest_ns),
            None => limits,
        }
    }
}

impl Active {
    /// Whether what the rules say of a connection counts before it would leave TCP.
    fn is_early(&self) -> bool {
        [Key::Turns, Key::Bytes, Key::Spin]
            .into_iter()
            .any(|key| self.of_some.has(key))
    }
}

impl Conn {
    /// Has what the program's connections have, until the rules are asked for it. Where they may say something of its beginning they are asked after the
    /// first call that moves bytes.
    pub(crate) fn heed_program(&self) {
        let active = ACTIVE.get();
        let settings = active.map_or_else(Settings::default, |active| active.settings);
        self.heed_settings(&settings, active.is_some_and(|active| active.is_early()));
        self.heed_limits(&settings);
    }

    fn heed_limits(&self, settings: &Settings) {
        if waits_differ() {
            self.set_limits(|limits| settings.limited(limits));
        }
    }

    /// Decides what the rules say, if that can be decided by now; `None` if nothing keeps the connection on TCP.
    pub(crate) fn forbidden(&self, fd: std::os::fd::BorrowedFd<'_>) -> Option<Reason> {
        let active = ACTIVE.get()?;
        let Some(rules) = active.rules else {
            return Some(Reason::ConfiguredOff);
        };
        if rules.is_empty() {
            return None;
        }
        let mut rule = self.rule.load(Ordering::Relaxed);
        if rule == 0 {
            let (local, peer) = tcp::addresses(fd).ok()?;
            crate::stat::name(self.record(), [local, peer]);
            let port = if self.is_opener() {
                peer.port()
            } else {
                local.port()
            };
            let answer = rules.ask(&active.program, peer.ip(), port);
            let decision = answer.decision;
            self.heed_settings(&answer.settings, false);
            self.heed_limits(&answer.settings);
            rule = DECIDED | decision.upgrade as u32 | u32::from(decision.number) << 16;
            self.rule.store(rule, Ordering::Relaxed);
            crate::stat::mark(self.record(), decision.upgrade, decision.number);
        }
        (rule & UPGRADE == Upgrade::Never as u32).then_some(Reason::RuleNever)
    }

    /// Tells the user, once, of a connection that is to leave TCP always and does not.
    pub(crate) fn tell_if_wanted(&self, reason: Reason) {
        let rule = self.rule.load(Ordering::Relaxed);
        let wanted = rule & UPGRADE == Upgrade::Always as u32;
        // That it ends, or has ended, is no news.
        let ends = matches!(reason, Reason::GaveUp | Reason::NotConnected);
        if !wanted || rule & (DECIDED | TOLD) != DECIDED || ends {
            return;
        }
        self.rule.store(rule | TOLD, Ordering::Relaxed);
        let number = (rule >> 16) as u16;
        if let Some(rules) = ACTIVE.get().and_then(|active| active.rules)
            && let Some(host) = crate::host::host()
        {
            let (local, peer) = crate::stat::addresses(self.record());
            host.kept_on_tcp(&Kept {
                local,
                peer,
                reason,
                file: rules.file(),
                line: rules.line_of(number),
            });
        }
    }
}

/// In `Conn::rule`, beside an [`Upgrade`] and, in the upper half, the number of the rule.
const UPGRADE: u32 = 0xff;
const DECIDED: u32 = 1 << 8;
const TOLD: u32 = 1 << 9;

static ACTIVE: OnceLock<Active> = OnceLock::new();
