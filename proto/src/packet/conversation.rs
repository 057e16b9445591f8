//! One end of a connection: what it may send, what it owes, and where the connection is.

use thiserror::Error;

use super::immediate::{Kind, Packet};
use super::settings::Settings;
use super::state::{State, Trigger, transition};
use super::wakeup::{BadWakeup, Wakeup};

/// One end of a connection.
///
/// Whoever moves messages tells it what came ([`Conversation::handle`]) and what has been posted again ([`Conversation::reposted`]),
/// and sends what [`Conversation::poll_transmit`] has, until `None`, after each of these. For DATA it asks [`Conversation::take_window`].
/// What it says to send never overruns the peer's descriptors, if the peer posts as [`Settings`] says.
#[derive(Debug)]
pub struct Conversation {
    ours: Settings,
    state: State,
    /// What the peer has room for; `None` before its WAKEUP.
    peer: Option<Settings>,
    /// *t* in force: no more ACKs than the peer's own *w* and *t* have descriptors for.
    threshold: u32,
    /// Packets that we may send.
    window: u32,
    /// Packets of the peer's whose descriptors are posted again, and which it does not know of: *d*.
    owed: u32,
    /// Packets that the peer may send, as far as it knows, plus those that came and are not owed yet: for checking it.
    unread: u32,
    wakeup_due: bool,
    finack_due: bool,
    fin_due: bool,
    /// The application takes no more data.
    deaf: bool,
    /// MOVE or MOVED, after which we send nothing more.
    said: Option<Kind>,
    said_due: bool,
    /// The peer's.
    heard: Option<Kind>,
}

/// What a packet means to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Bytes of the stream, which keep their descriptor until they have been read.
    Data,
    /// An urgent byte. Its descriptor can be posted again, of which the peer is told when the byte has been read.
    Urgent(u8),
    /// Nothing: its descriptor can be posted again.
    Control,
    /// Who the peer is.
    Wakeup(Wakeup),
    /// The end of the stream.
    End,
    /// Bytes for an application that has closed: the connection is to be broken, as TCP resets it.
    Unwanted,
    /// Nothing more comes in packets: the peer hands its end over, or has taken ours.
    Moved(Kind),
}

/// What no honest peer does. The connection is to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// More packets than there is room for.
    #[error("more packets than the window")]
    Window,
    /// More acknowledgements than packets.
    #[error("more acknowledgements than packets")]
    Acks,
    /// A packet that cannot come now.
    #[error("{0:?} in state {1}")]
    Order(Kind, State),
    /// A packet with too many bytes, or too few.
    #[error("{0:?} of {1} bytes")]
    Length(Kind, u32),
    /// A WAKEUP that is none.
    #[error(transparent)]
    Wakeup(#[from] BadWakeup),
}

impl Conversation {
    /// A connection that has just been made, with [`Settings::pre_posted`] descriptors posted.
    #[must_use]
    pub fn new(ours: Settings) -> Self {
        Self {
            ours,
            state: State::Normal,
            peer: None,
            threshold: ours.threshold.max(1),
            window: 0,
            owed: 0,
            unread: 0,
            wakeup_due: true,
            finack_due: false,
            fin_due: false,
            deaf: false,
            said: None,
            said_due: false,
            heard: None,
        }
    }

    /// Where the connection is.
    #[must_use]
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Our own settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.ours
    }

    /// Most bytes of a DATA packet of ours; 0 before the peer's WAKEUP.
    #[must_use]
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.peer.map_or(0, |peer| peer.mtu.min(self.ours.mtu))
    }

    /// DATA packets that may be sent now; without a window any number.
    #[must_use]
    #[inline]
    pub fn window(&self) -> u32 {
        match (self.sends(), self.is_counted()) {
            (false, _) => 0,
            (true, true) => self.window,
            (true, false) => u32::MAX,
        }
    }

    /// Whether DATA may follow.
    #[must_use]
    #[inline]
    pub fn sends(&self) -> bool {
        self.state.sends() && self.said.is_none()
    }

    /// Whether the peer counts what we send.
    #[inline]
    fn is_counted(&self) -> bool {
        self.peer.is_none_or(|peer| peer.has_window())
    }

    /// A DATA packet to send now, with what is owed; `None` when the window is closed or this direction is.
    #[inline]
    pub fn take_window(&mut self) -> Option<Packet> {
        if self.window() == 0 {
            return None;
        }
        self.window -= u32::from(self.is_counted());
        Some(self.with_owed(Kind::Data))
    }

    /// As [`Conversation::take_window`], of one urgent byte.
    pub fn take_window_for(&mut self, urgent: u8) -> Option<Packet> {
        let packet = self.take_window()?;
        Some(Packet {
            kind: Kind::Urgent,
            byte: urgent,
            ..packet
        })
    }

    /// A packet that [`Conversation::take_window`] gave could not be sent now, and nothing has been since.
    pub fn put_back(&mut self, packet: Packet) {
        self.window += u32::from(self.is_counted());
        self.owed += packet.acks;
    }

    /// Whether [`Conversation::poll_transmit`] has nothing but acknowledgements, which may wait for DATA to take them along.
    #[must_use]
    #[inline]
    pub fn may_defer(&self) -> bool {
        self.owed >= self.threshold && !self.is_due()
    }

    /// The next packet without data; a WAKEUP's payload is the caller's to add.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        if self.owed < self.threshold && !self.is_due() {
            return None;
        }
        if std::mem::take(&mut self.wakeup_due) {
            return Some(Packet {
                kind: Kind::Wakeup,
                acks: 0,
                byte: 0,
            });
        }
        if std::mem::take(&mut self.finack_due) {
            return Some(self.with_owed(Kind::FinAck));
        }
        if std::mem::take(&mut self.fin_due) {
            return Some(self.with_owed(Kind::Fin));
        }
        if let Some(said) = self.said.filter(|_| std::mem::take(&mut self.said_due)) {
            return Some(self.with_owed(said));
        }
        // A peer that has closed sends nothing more that would need room.
        let sends = self.state.receives() && self.heard.is_none();
        sends.then(|| self.with_owed(Kind::Ack))
    }

    /// Whether nothing more comes in packets, as the peer has said.
    #[must_use]
    #[inline]
    pub fn is_moved(&self) -> bool {
        self.heard.is_some()
    }

    /// Whether the peer hands its end over, and is to be told that this one has followed.
    #[must_use]
    #[inline]
    pub fn is_asked_to_move(&self) -> bool {
        self.heard == Some(Kind::Move) && self.said.is_none()
    }

    /// Something but acknowledgements is to be sent.
    #[inline]
    fn is_due(&self) -> bool {
        self.wakeup_due | self.finack_due | self.fin_due | self.said_due
    }

    /// Says MOVE, or MOVED to the peer's MOVE, after all that has been sent. False where that cannot be said now: it takes the place that the peer
    /// has for our FIN.
    pub fn hand_over(&mut self, kind: Kind) -> bool {
        let is_due = match kind {
            Kind::Move => self.heard.is_none(),
            Kind::Moved => self.heard == Some(Kind::Move),
            _ => false,
        };
        let has_place = matches!(
            self.state,
            State::Normal | State::CloseWait | State::FinWait2
        );
        if !is_due || !has_place || self.peer.is_none() || self.said.is_some() {
            return false;
        }
        self.said = Some(kind);
        self.said_due = true;
        true
    }

    /// A packet of `len` bytes came; `payload` gives the bytes of a WAKEUP.
    ///
    /// # Errors
    /// [`Violation`]: the connection is to be broken.
    #[inline]
    pub fn handle(
        &mut self,
        packet: Packet,
        len: u32,
        payload: impl FnOnce() -> Vec<u8>,
    ) -> Result<Arrival, Violation> {
        let Packet { kind, acks, byte } = packet;
        if (kind == Kind::Wakeup) != self.peer.is_none() {
            return Err(Violation::Order(kind, self.state));
        }
        if acks > 0 || kind == Kind::Ack {
            self.handle_acks(kind, acks)?;
        }
        let fits = match kind {
            Kind::Data => (1..=self.ours.mtu).contains(&len),
            Kind::Wakeup => true,
            Kind::Ack | Kind::Fin | Kind::FinAck | Kind::Move | Kind::Moved | Kind::Urgent => {
                len == 0
            }
        };
        if !fits {
            return Err(Violation::Length(kind, len));
        }
        if self.heard.is_some() && kind != Kind::Ack && kind != Kind::FinAck {
            return Err(Violation::Order(kind, self.state));
        }
        match kind {
            Kind::Data | Kind::Urgent => {
                self.handle_data(kind)?;
                Ok(match kind {
                    _ if self.deaf => Arrival::Unwanted,
                    Kind::Data => Arrival::Data,
                    _ => Arrival::Urgent(byte),
                })
            }
            Kind::Ack => Ok(Arrival::Control),
            Kind::Wakeup => self.handle_wakeup(&payload()),
            Kind::Fin => {
                self.step(Trigger::Fin, kind)?;
                Ok(Arrival::End)
            }
            Kind::FinAck => {
                self.step(Trigger::FinAck, kind)?;
                Ok(Arrival::Control)
            }
            Kind::Move | Kind::Moved => {
                if kind == Kind::Moved && self.said != Some(Kind::Move) {
                    return Err(Violation::Order(kind, self.state));
                }
                self.heard = Some(kind);
                Ok(Arrival::Moved(kind))
            }
        }
    }

    /// The descriptor of a DATA or WAKEUP packet has been posted again, or an urgent byte has been read.
    #[inline]
    pub fn reposted(&mut self) {
        debug_assert!(self.unread > 0, "each comes once");
        self.unread = self.unread.saturating_sub(1);
        self.owed += u32::from(self.ours.has_window());
    }

    /// Whether the peer has to wait until the application has read more and been told so.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ours.has_window() && self.unread + self.owed >= self.ours.window
    }

    /// The application ends its direction: a FIN follows whatever DATA has been sent. False if it has done so before.
    pub fn close(&mut self) -> bool {
        self.said.is_none() && self.step(Trigger::Close, Kind::Fin).is_ok()
    }

    /// The application takes no more data either.
    pub fn deafen(&mut self) {
        self.deaf = true;
    }

    /// The VI broke, or is given up.
    pub fn lose(&mut self) {
        self.state = State::Closed;
        self.fin_due = false;
        self.finack_due = false;
        self.wakeup_due = false;
        self.said_due = false;
        self.owed = 0;
    }

    #[inline]
    fn with_owed(&mut self, kind: Kind) -> Packet {
        Packet {
            kind,
            acks: std::mem::take(&mut self.owed),
            byte: 0,
        }
    }

    #[inline]
    fn handle_acks(&mut self, kind: Kind, acks: u32) -> Result<(), Violation> {
        let limit = self.peer.map_or(0, |peer| peer.window);
        if acks == 0 || kind == Kind::Wakeup || acks > limit - self.window.min(limit) {
            return Err(Violation::Acks);
        }
        self.window += acks;
        Ok(())
    }

    #[inline]
    fn handle_data(&mut self, kind: Kind) -> Result<(), Violation> {
        if !self.state.receives() {
            return Err(Violation::Order(kind, self.state));
        }
        self.note_unread()
    }

    #[cold]
    fn handle_wakeup(&mut self, payload: &[u8]) -> Result<Arrival, Violation> {
        let wakeup = Wakeup::decode(payload)?;
        self.note_unread()?;
        self.peer = Some(wakeup.settings);
        let Settings {
            window, threshold, ..
        } = wakeup.settings;
        // Where none is needed for them, ACKs may be as many as we like.
        let acks_max = window.checked_div(threshold).unwrap_or(u32::MAX).max(1);
        self.threshold = self.threshold.max(self.ours.window.div_ceil(acks_max));
        // Our own WAKEUP has used one.
        self.window = window.saturating_sub(1);
        Ok(Arrival::Wakeup(wakeup))
    }

    #[inline]
    fn note_unread(&mut self) -> Result<(), Violation> {
        if self.is_full() {
            return Err(Violation::Window);
        }
        self.unread = self.unread.saturating_add(1);
        Ok(())
    }

    fn step(&mut self, trigger: Trigger, kind: Kind) -> Result<(), Violation> {
        let (next, sends) =
            transition(self.state, trigger).ok_or(Violation::Order(kind, self.state))?;
        match sends {
            Some(Kind::Fin) => self.fin_due = true,
            Some(Kind::FinAck) => self.finack_due = true,
            _ => {}
        }
        self.state = next;
        Ok(())
    }
}
