//! In which states a connection can be: Figure 8 of the paper.

use std::fmt;

use super::immediate::Kind;

/// Where a connection is. The names are TCP's, whose diagram the paper's resembles; NORMAL is the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection, or none any more.
    Closed,
    /// Waiting for one.
    Listen,
    /// Both directions.
    Normal,
    /// We have closed: FIN is out.
    FinWait1,
    /// And the peer knows; it may still send.
    FinWait2,
    /// Both have closed at once; the peer's FINACK is still to come.
    Closing,
    /// The peer has closed; we may still send.
    CloseWait,
    /// And so have we; the peer's FINACK is still to come.
    LastAck,
}

/// What moves a connection on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The application listens.
    Listen,
    /// The application's request was accepted.
    Connect,
    /// A request came and was accepted: for the connection that it makes.
    Accept,
    /// The application closes, or ends its direction.
    Close,
    /// The peer's FIN.
    Fin,
    /// The peer's FINACK.
    FinAck,
    /// The VI broke, or was given up.
    Lost,
}

impl State {
    const ALL: [Self; 8] = [
        Self::Closed,
        Self::Listen,
        Self::Normal,
        Self::FinWait1,
        Self::FinWait2,
        Self::Closing,
        Self::CloseWait,
        Self::LastAck,
    ];

    /// Whether DATA may be sent.
    #[must_use]
    #[inline]
    pub fn sends(self) -> bool {
        matches!(self, Self::Normal | Self::CloseWait)
    }

    /// Whether DATA may come.
    #[must_use]
    #[inline]
    pub fn receives(self) -> bool {
        matches!(self, Self::Normal | Self::FinWait1 | Self::FinWait2)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::Normal => "NORMAL",
            Self::FinWait1 => "FIN_WAIT_1",
            Self::FinWait2 => "FIN_WAIT_2",
            Self::Closing => "CLOSING",
            Self::CloseWait => "CLOSE_WAIT",
            Self::LastAck => "LAST_ACK",
        })
    }
}

impl Trigger {
    const ALL: [Self; 7] = [
        Self::Listen,
        Self::Connect,
        Self::Accept,
        Self::Close,
        Self::Fin,
        Self::FinAck,
        Self::Lost,
    ];
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Listen => "appl: listen()",
            Self::Connect => "appl: connect()",
            Self::Accept => "request",
            Self::Close => "appl: close()",
            Self::Fin => "recv: FIN",
            Self::FinAck => "recv: FINACK",
            Self::Lost => "lost",
        })
    }
}

/// Where `trigger` leads from `state`, and what is sent with it; `None` where it means nothing.
#[must_use]
pub fn transition(state: State, trigger: Trigger) -> Option<(State, Option<Kind>)> {
    TRANSITIONS
        .iter()
        .find(|(from, on, _, _)| *from == state && *on == trigger)
        .map(|(_, _, to, sends)| (*to, *sends))
}

/// Every state with every trigger, one line a pair that leads somewhere, for people to read.
#[must_use]
pub fn transitions() -> String {
    let mut lines = String::new();
    for state in State::ALL {
        for trigger in Trigger::ALL {
            if let Some((next, sends)) = transition(state, trigger) {
                let sends = sends.map_or_else(String::new, |kind| format!("{kind:?}"));
                let line = format!("{state:<10} {trigger:<15} {next:<10} {sends}");
                lines.push_str(line.trim_end());
                lines.push('\n');
            }
        }
    }
    lines
}

const TRANSITIONS: &[(State, Trigger, State, Option<Kind>)] = &[
    (State::Closed, Trigger::Listen, State::Listen, None),
    (
        State::Closed,
        Trigger::Connect,
        State::Normal,
        Some(Kind::Wakeup),
    ),
    (
        State::Listen,
        Trigger::Accept,
        State::Normal,
        Some(Kind::Wakeup),
    ),
    (State::Listen, Trigger::Close, State::Closed, None),
    (
        State::Normal,
        Trigger::Close,
        State::FinWait1,
        Some(Kind::Fin),
    ),
    (
        State::Normal,
        Trigger::Fin,
        State::CloseWait,
        Some(Kind::FinAck),
    ),
    (State::Normal, Trigger::Lost, State::Closed, None),
    (
        State::FinWait1,
        Trigger::Fin,
        State::Closing,
        Some(Kind::FinAck),
    ),
    (State::FinWait1, Trigger::FinAck, State::FinWait2, None),
    (State::FinWait1, Trigger::Lost, State::Closed, None),
    (
        State::FinWait2,
        Trigger::Fin,
        State::Closed,
        Some(Kind::FinAck),
    ),
    (State::FinWait2, Trigger::Lost, State::Closed, None),
    (State::Closing, Trigger::FinAck, State::Closed, None),
    (State::Closing, Trigger::Lost, State::Closed, None),
    (
        State::CloseWait,
        Trigger::Close,
        State::LastAck,
        Some(Kind::Fin),
    ),
    (State::CloseWait, Trigger::Lost, State::Closed, None),
    (State::LastAck, Trigger::FinAck, State::Closed, None),
    (State::LastAck, Trigger::Lost, State::Closed, None),
];
