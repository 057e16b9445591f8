use sockets::reason::Reason;

/// What is to be expected of a program, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Its connections within this host will go through shared memory.
    Accelerated,
    /// It works; some connections may stay on TCP, or go back to it.
    Partly,
    /// It works, over TCP.
    Tcp,
    /// It cannot be run.
    CannotRun,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Accelerated => "accelerated",
            Self::Partly => "works, slower",
            Self::Tcp => "stays on TCP",
            Self::CannotRun => "cannot run",
        }
    }
}

/// Something that decides, or that one should know.
#[derive(Debug)]
pub(super) struct Finding {
    /// What would be expected if there were nothing else.
    pub(super) verdict: Verdict,
    /// A word for scripts.
    pub(super) key: &'static str,
    /// What `sovia stat` will show, at this end or at the peers'.
    pub(super) reason: Option<Reason>,
    /// A sentence.
    pub(super) text: String,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, key: &'static str, text: impl Into<String>) -> Self {
        Self {
            verdict,
            key,
            reason: None,
            text: text.into(),
        }
    }

    pub(super) fn note(key: &'static str, text: impl Into<String>) -> Self {
        Self::new(Verdict::Accelerated, key, text)
    }

    pub(super) fn because(self, reason: Reason) -> Self {
        Self {
            reason: Some(reason),
            ..self
        }
    }
}
