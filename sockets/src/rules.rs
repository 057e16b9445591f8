//! What the user wants of connections: by program, peer and port, never, when possible or always to leave TCP.
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
use text::{Program, Rules, Settings};

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
    settings: Settings,
}

/// Has `text` hold for this process, which runs `program`; the first call counts. False if it is not understood: then every connection
/// stays on TCP, for it is not known which must.
pub fn install(text: &'static str, program: Program<'static>) -> bool {
    let rules = Rules::parse(text).ok();
    let settings = rules.map(|rules| rules.settings()).unwrap_or_default();
    let _ = ACTIVE.set(Active {
        program,
        rules,
        settings,
    });
    rules.is_some()
}

/// What is set for all connections.
pub(crate) fn settings() -> Settings {
    ACTIVE
        .get()
        .map_or_else(Settings::default, |active| active.settings)
}

/// `limits`, with the longest time to poll that the user wants.
pub(crate) fn limited(limits: Limits) -> Limits {
    match settings().spin_ns {
        Some(longest_ns) => limits.at_most(longest_ns),
        None => limits,
    }
}

impl Conn {
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
            let decision = rules.decide(&active.program, peer.ip(), port);
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
