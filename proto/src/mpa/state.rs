//! In which states a startup can be.

use std::fmt;

use super::startup::Kind;

/// Where a startup is (RFC 5044 section 7.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Initiator: the Request is on its way.
    WaitReply,
    /// Responder: no Request yet.
    WaitRequest,
    /// Responder: its user has the Request.
    Deciding,
    /// Initiator: full operation.
    Full,
    /// Responder: full operation, but nothing may be sent before an FPDU has come.
    FullNoTx,
    /// MPA has been left, TCP is open.
    Rejected,
    /// TCP is to be closed.
    Dead,
}

impl State {
    const ALL: [Self; 7] = [
        Self::WaitReply,
        Self::WaitRequest,
        Self::Deciding,
        Self::Full,
        Self::FullNoTx,
        Self::Rejected,
        Self::Dead,
    ];

    pub(super) fn awaited(self) -> Option<Kind> {
        match self {
            Self::WaitReply => Some(Kind::Reply),
            Self::WaitRequest => Some(Kind::Request),
            _ => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WaitReply => "WAIT_REP",
            Self::WaitRequest => "WAIT_REQ",
            Self::Deciding => "DECIDING",
            Self::Full => "FULL",
            Self::FullNoTx => "FULL_NO_TX",
            Self::Rejected => "REJECTED",
            Self::Dead => "DEAD",
        })
    }
}

/// What moves a startup on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A good Request.
    Request,
    /// A good Reply that accepts.
    Reply,
    /// A good Reply that refuses.
    Refusal,
    /// An improperly formatted frame, or the wrong one.
    Malformed,
    /// A Reply under which this end cannot work.
    Unusable,
    /// The user of this end accepts.
    Accept,
    /// The user of this end refuses.
    Reject,
    /// FIN or RST.
    Ended,
    /// The time limit.
    Timeout,
}

impl Trigger {
    const ALL: [Self; 9] = [
        Self::Request,
        Self::Reply,
        Self::Refusal,
        Self::Malformed,
        Self::Unusable,
        Self::Accept,
        Self::Reject,
        Self::Ended,
        Self::Timeout,
    ];
}

/// Where `trigger` leads from `state`; `None` where it means nothing.
#[must_use]
pub fn transition(state: State, trigger: Trigger) -> Option<State> {
    TRANSITIONS
        .iter()
        .find(|(from, on, _)| *from == state && *on == trigger)
        .map(|(_, _, to)| *to)
}

/// Every state with every trigger, one line a pair that leads somewhere, for people to read.
#[must_use]
pub fn transitions() -> String {
    let mut lines = String::new();
    for state in State::ALL {
        for trigger in Trigger::ALL {
            if let Some(next) = transition(state, trigger) {
                lines.push_str(&format!(
                    "{state:<10} {:<9} {next}\n",
                    format!("{trigger:?}")
                ));
            }
        }
    }
    lines
}

const TRANSITIONS: &[(State, Trigger, State)] = &[
    (State::WaitReply, Trigger::Reply, State::Full),
    (State::WaitReply, Trigger::Refusal, State::Rejected),
    (State::WaitReply, Trigger::Malformed, State::Dead),
    (State::WaitReply, Trigger::Unusable, State::Dead),
    (State::WaitReply, Trigger::Ended, State::Dead),
    (State::WaitReply, Trigger::Timeout, State::Dead),
    (State::WaitRequest, Trigger::Request, State::Deciding),
    (State::WaitRequest, Trigger::Malformed, State::Dead),
    (State::WaitRequest, Trigger::Ended, State::Dead),
    (State::WaitRequest, Trigger::Timeout, State::Dead),
    (State::Deciding, Trigger::Accept, State::FullNoTx),
    (State::Deciding, Trigger::Reject, State::Rejected),
    (State::Deciding, Trigger::Ended, State::Dead),
];
