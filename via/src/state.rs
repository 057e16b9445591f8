//! The state machine of a VI.

use std::fmt;

/// Where a VI is in its life (`VIP_VI_STATE`, same numbers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ViState {
    /// Not connected.
    Idle = 0,
    /// Connected to another VI.
    Connected = 1,
    /// A connection request is under way.
    ConnectPending = 2,
    /// The connection broke; only a disconnect leads on.
    Error = 3,
}

/// What can happen to a VI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViEvent {
    /// `VipConnectRequest` or `VipConnectPeerRequest` was issued.
    Request,
    /// The remote side accepted, or the peer matched.
    Established,
    /// `VipConnectAccept` succeeded.
    Accept,
    /// The request ended without a connection.
    RequestFailed,
    /// `VipDisconnect`.
    Disconnect,
    /// The peer disconnected or died, or an error broke the connection.
    Lost,
}

impl ViState {
    /// All states, in VIPL's order.
    pub const ALL: [Self; 4] = [
        Self::Idle,
        Self::Connected,
        Self::ConnectPending,
        Self::Error,
    ];

    /// The state after `event`, or `None` where the event is not possible.
    #[must_use]
    pub fn after(self, event: ViEvent) -> Option<Self> {
        use ViEvent as E;
        match (self, event) {
            (Self::Idle, E::Request) => Some(Self::ConnectPending),
            (Self::Idle, E::Accept) | (Self::ConnectPending, E::Established) => {
                Some(Self::Connected)
            }
            (Self::ConnectPending, E::RequestFailed) => Some(Self::Idle),
            (Self::Connected, E::Lost) => Some(Self::Error),
            (_, E::Disconnect) => Some(Self::Idle),
            _ => None,
        }
    }
}

impl fmt::Display for ViState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Connected => "Connected",
            Self::ConnectPending => "ConnectPending",
            Self::Error => "Error",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [ViEvent; 6] = [
        ViEvent::Request,
        ViEvent::Established,
        ViEvent::Accept,
        ViEvent::RequestFailed,
        ViEvent::Disconnect,
        ViEvent::Lost,
    ];

    #[test]
    fn every_state_and_event() {
        let table: Vec<String> = ViState::ALL
            .iter()
            .map(|state| {
                let row: Vec<String> = EVENTS
                    .iter()
                    .map(|&event| {
                        state
                            .after(event)
                            .map_or_else(|| "-".to_owned(), |s| s.to_string())
                    })
                    .collect();
                format!("{state}: {}", row.join(" "))
            })
            .collect();
        assert_eq!(
            table,
            [
                "Idle: ConnectPending - Connected - Idle -",
                "Connected: - - - - Idle Error",
                "ConnectPending: - Connected - Idle Idle -",
                "Error: - - - - Idle -",
            ]
        );
    }
}
