//! One end of a stream in full operation.

mod ahead;
mod arrivals;
mod end;
mod guess;
mod short;
mod usual;

use std::collections::VecDeque;
use std::time::Duration;

use super::action::Action;
use super::config::Config;
use super::inbound::Inbound;
use super::outbound::Outbound;
use super::state::State;
use super::work::{Operation, PostError, Receive, Work};
use crate::ddp::Memory;
use crate::mpa::{Deframer, MpaError, Piece, Role, Terms, ULPDU_LEN_MAX};

pub use self::ahead::Ahead;
use self::ahead::{Diversion, GLANCE};
pub use self::guess::{GUESSES_MAX, Guess, SEAM_MAX};
use self::guess::{Habit, Strays};
pub use self::usual::SEND_LEAD;
use self::usual::Usual;

/// One end of an RDMA stream over a TCP connection in full operation.
///
/// `handle_*` take what happened, `post` and `close` what users want, `poll_*` say what follows.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    crc: bool,
    state: State,
    deframer: Deframer,
    inbound: Inbound,
    outbound: Outbound,
    actions: VecDeque<Action>,
    deadline: Option<Duration>,
    diversion: Option<Diversion>,
    guesses: Vec<Guess>,
    habit: Habit,
    usual: Usual,
    /// Octets that have come of an RDMA Write.
    written: u32,
    strays: Strays,
    /// How far the socket is read where nothing is known of what comes.
    glance: usize,
    /// The peer has sent FIN.
    fin: bool,
    /// A message waits for a receive.
    blocked: bool,
    /// The user has been told why this ends.
    failed: bool,
}

impl Engine {
    /// At the beginning of full operation. The initiator of a peer-to-peer connection sends its RTR
    /// by itself.
    #[must_use]
    pub fn new(terms: &Terms, config: Config) -> Self {
        let markers = terms.receive_markers.then_some(config.marker_check);
        let config = Config {
            // Room for an RDMA Read Request is the least.
            mulpdu: config.mulpdu.clamp(128, ULPDU_LEN_MAX),
            ..config
        };
        Self {
            config,
            crc: terms.crc,
            state: match terms.role {
                Role::Initiator => State::Open,
                Role::Responder => State::Silent,
            },
            deframer: Deframer::new(markers, terms.crc, config.receive_buffer),
            inbound: Inbound::new(terms, &config),
            outbound: Outbound::new(terms, &config),
            actions: VecDeque::new(),
            deadline: None,
            diversion: None,
            guesses: Vec::new(),
            habit: Habit::default(),
            usual: Usual::default(),
            written: 0,
            strays: Strays::default(),
            glance: GLANCE,
            fin: false,
            blocked: false,
            failed: false,
        }
    }

    /// After a startup that [failed](crate::mpa::Outcome::Failed) in a way that the peer is to be
    /// told: says that, and ends.
    #[must_use]
    pub fn refusing(terms: &Terms, config: Config, error: MpaError, now: Duration) -> Self {
        let mut engine = Self::new(terms, config);
        engine.violate(error.into(), now);
        engine
    }

    /// Where the stream is.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the peer answers RDMA Reads at all: else one cannot be posted.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.outbound.reads()
    }

    /// The longest ULPDU to send from now on, when TCP has found another segment size.
    pub fn set_mulpdu(&mut self, mulpdu: u16) {
        self.outbound.set_mulpdu(mulpdu.clamp(128, ULPDU_LEN_MAX));
    }

    /// From now on a segment with this much payload is written by itself, [as configured](Config::alone_min) until then.
    pub fn set_alone_min(&mut self, octets: u32) {
        self.outbound.set_alone_min(octets);
    }

    /// A buffer for the next message of the peer's.
    ///
    /// # Errors
    /// [`PostError::NotConnected`].
    pub fn post_receive(&mut self, receive: Receive) -> Result<(), PostError> {
        if !self.state.receives() {
            return Err(PostError::NotConnected);
        }
        self.inbound.post(receive);
        Ok(())
    }

    /// Something to send, behind what was posted before.
    ///
    /// # Errors
    /// [`PostError`] when it can never be sent; nothing has changed then.
    pub fn post(&mut self, work: Work) -> Result<(), PostError> {
        if !self.state.accepts() {
            return Err(PostError::NotConnected);
        }
        let operation = &work.operation;
        if operation.payload_len() > u32::MAX.into() {
            return Err(PostError::TooLong);
        }
        let extension = operation.opcode().is_extension() && !self.config.extensions;
        if extension || (operation.is_answered() && !self.reads()) {
            return Err(PostError::NotEnabled);
        }
        if let Operation::Atomic { target, .. } = operation
            && !target.to.is_multiple_of(8)
        {
            return Err(PostError::Misaligned);
        }
        self.outbound.post(work);
        Ok(())
    }

    /// Makes FPDUs of what is to be said, as long as the socket is not too far behind.
    pub fn fill(&mut self, memory: &impl Memory, now: Duration) {
        if self.state.sends() {
            let window = self.config.send_window;
            let filled = self.outbound.fill(self.inbound.responses(), memory, window);
            if let Err(violation) = filled {
                self.violate(violation, now);
                self.keep(memory);
            }
        }
    }

    /// How many octets wait to be written.
    #[must_use]
    #[inline]
    pub fn waiting(&self) -> u64 {
        if self.state.writes() {
            self.outbound.framer().waiting()
        } else {
            0
        }
    }

    /// What is to be written, in order.
    ///
    /// A payload whose memory has gone since cannot be taken out of the stream again: such a connection
    /// is to be reset, and [`handle_reset`](Self::handle_reset) called.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let most = if self.state.writes() { usize::MAX } else { 0 };
        self.outbound.framer().pieces().take(most)
    }

    /// The socket took the first `n` octets of the [`pieces`](Self::pieces).
    pub fn handle_written(&mut self, n: u64, now: Duration) {
        self.outbound.handle_written(n);
        self.report_completions();
        self.settle(now);
    }

    /// What follows from all this.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn report_completions(&mut self) {
        while let Some(completion) = self.outbound.poll_completion() {
            self.actions.push_back(Action::Completed(completion));
        }
    }
}
