//! In which states a stream can be.

use std::fmt;

/// How a stream lives and ends, from full operation on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Responder: nothing may be sent before the initiator's first FPDU (RFC 5044 7.1.2 rule 4).
    Silent,
    /// As that, and the user has closed.
    SilentClosing,
    /// Both directions.
    Open,
    /// The user has closed: what is queued still goes.
    Closing,
    /// All of it has gone, and FIN behind it; the peer may still send.
    HalfClosed,
    /// A Terminate is on its way, and nothing behind it; whatever comes is thrown away.
    Terminating,
    /// It or the peer's has gone over, FIN as well; whatever comes is thrown away until the peer's
    /// FIN, since closing over unread octets would reset the connection and take the Terminate
    /// along.
    Draining,
    /// TCP is to be closed.
    Closed,
}

/// What moves a stream on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A good FPDU has come.
    Fpdu,
    /// The user closes.
    Close,
    /// Nothing waits to be written, answered or asked.
    Drained,
    /// The peer did something wrong, or something failed here.
    Violation,
    /// The peer's Terminate has come.
    Terminate,
    /// The peer's FIN, behind whole FPDUs.
    Fin,
    /// The connection is lost: RST, or FIN within an FPDU.
    Lost,
    /// The time for an orderly end is up.
    Timeout,
}

/// What goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// All works and receives end.
    Flush,
    /// A Terminate is queued, in place of whatever had not begun to be written.
    SendTerminate,
    /// The time for an orderly end begins.
    StartTimer,
    /// FIN.
    ShutdownWrite,
    /// The end of TCP.
    Close,
}

impl State {
    const ALL: [Self; 8] = [
        Self::Silent,
        Self::SilentClosing,
        Self::Open,
        Self::Closing,
        Self::HalfClosed,
        Self::Terminating,
        Self::Draining,
        Self::Closed,
    ];

    /// Whether messages are taken in.
    #[must_use]
    pub fn receives(self) -> bool {
        matches!(
            self,
            Self::Silent | Self::SilentClosing | Self::Open | Self::Closing | Self::HalfClosed
        )
    }

    /// Whether messages are sent.
    #[must_use]
    pub fn sends(self) -> bool {
        matches!(self, Self::Open | Self::Closing)
    }

    /// Whether octets may still be written.
    #[must_use]
    pub fn writes(self) -> bool {
        self.sends() || self == Self::Terminating
    }

    /// Whether users may post.
    #[must_use]
    pub fn accepts(self) -> bool {
        matches!(self, Self::Silent | Self::Open)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Silent => "SILENT",
            Self::SilentClosing => "SILENT-CLOSING",
            Self::Open => "OPEN",
            Self::Closing => "CLOSING",
            Self::HalfClosed => "HALF-CLOSED",
            Self::Terminating => "TERMINATING",
            Self::Draining => "DRAINING",
            Self::Closed => "CLOSED",
        })
    }
}

impl Trigger {
    const ALL: [Self; 8] = [
        Self::Fpdu,
        Self::Close,
        Self::Drained,
        Self::Violation,
        Self::Terminate,
        Self::Fin,
        Self::Lost,
        Self::Timeout,
    ];
}

/// Where `trigger` leads from `state`, and what goes with it; `None` where it means nothing.
#[must_use]
pub fn transition(state: State, trigger: Trigger) -> Option<(State, &'static [Effect])> {
    TRANSITIONS
        .iter()
        .find(|(from, on, _, _)| *from == state && *on == trigger)
        .map(|(_, _, to, effects)| (*to, *effects))
}

/// Every state with every trigger, one line a pair that leads somewhere, for people to read.
#[must_use]
pub fn transitions() -> String {
    let mut lines = String::new();
    for state in State::ALL {
        for trigger in Trigger::ALL {
            if let Some((next, effects)) = transition(state, trigger) {
                let names: Vec<_> = effects.iter().map(|effect| format!("{effect:?}")).collect();
                let trigger = format!("{trigger:?}");
                let line = format!("{state:<14} {trigger:<9} {next:<14} {}", names.join(" "));
                lines.push_str(line.trim_end());
                lines.push('\n');
            }
        }
    }
    lines
}

const END: &[Effect] = &[Effect::Flush, Effect::Close];
const TELL: &[Effect] = &[Effect::Flush, Effect::SendTerminate, Effect::StartTimer];
const TOLD: &[Effect] = &[Effect::Flush, Effect::ShutdownWrite, Effect::StartTimer];
const FINISH: &[Effect] = &[Effect::ShutdownWrite, Effect::StartTimer];

const TRANSITIONS: &[(State, Trigger, State, &[Effect])] = &[
    (State::Silent, Trigger::Fpdu, State::Open, &[]),
    (State::Silent, Trigger::Close, State::SilentClosing, &[]),
    // Before the first good FPDU not even a Terminate may be sent.
    (State::Silent, Trigger::Violation, State::Closed, END),
    (State::Silent, Trigger::Fin, State::Closed, END),
    (State::Silent, Trigger::Lost, State::Closed, END),
    (State::SilentClosing, Trigger::Fpdu, State::Closing, &[]),
    (
        State::SilentClosing,
        Trigger::Drained,
        State::HalfClosed,
        FINISH,
    ),
    (State::SilentClosing, Trigger::Violation, State::Closed, END),
    (State::SilentClosing, Trigger::Fin, State::Closed, END),
    (State::SilentClosing, Trigger::Lost, State::Closed, END),
    (State::Open, Trigger::Close, State::Closing, &[]),
    (State::Open, Trigger::Violation, State::Terminating, TELL),
    (State::Open, Trigger::Terminate, State::Draining, TOLD),
    (State::Open, Trigger::Fin, State::Closed, END),
    (State::Open, Trigger::Lost, State::Closed, END),
    (State::Closing, Trigger::Drained, State::HalfClosed, FINISH),
    (State::Closing, Trigger::Violation, State::Terminating, TELL),
    (State::Closing, Trigger::Terminate, State::Draining, TOLD),
    (State::Closing, Trigger::Fin, State::Closed, END),
    (State::Closing, Trigger::Lost, State::Closed, END),
    // What could be said has been: FIN is out.
    (State::HalfClosed, Trigger::Violation, State::Closed, END),
    (State::HalfClosed, Trigger::Terminate, State::Closed, END),
    (State::HalfClosed, Trigger::Fin, State::Closed, END),
    (State::HalfClosed, Trigger::Lost, State::Closed, END),
    (State::HalfClosed, Trigger::Timeout, State::Closed, END),
    (
        State::Terminating,
        Trigger::Drained,
        State::Draining,
        FINISH,
    ),
    (State::Terminating, Trigger::Lost, State::Closed, END),
    (State::Terminating, Trigger::Timeout, State::Closed, END),
    (State::Draining, Trigger::Fin, State::Closed, END),
    (State::Draining, Trigger::Lost, State::Closed, END),
    (State::Draining, Trigger::Timeout, State::Closed, END),
];
