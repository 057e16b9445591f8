//! One end of a stream in full operation.

mod ahead;
mod guess;

use std::collections::VecDeque;
use std::time::Duration;

use super::action::{Action, Failure};
use super::code::Code;
use super::config::Config;
use super::inbound::{Brought, Inbound, Way};
use super::incoming::Incoming;
use super::opcode::Opcode;
use super::outbound::Outbound;
use super::state::{Effect, State, Trigger, transition};
use super::terminate::{Offender, Terminate, Violation};
use super::work::{Operation, PostError, Receive, Work};
use crate::ddp::{DdpError, HeaderOctets, Memory, Stag, TAGGED_LEN, Tagged};
use crate::mpa::{Deframer, MpaError, Piece, Ready, Role, Terms, ULPDU_LEN_MAX};

pub use self::ahead::Ahead;
use self::ahead::{Diversion, GLANCE};
pub use self::guess::{GUESSES_MAX, Guess, SEAM_MAX};
use self::guess::{Habit, Strays};

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

    /// Ends in good order: what was posted still goes, then FIN. Posting is over.
    pub fn close(&mut self, now: Duration) {
        self.step(Trigger::Close, now);
        self.settle(now);
    }

    /// Ends the stream over a message that the engine let pass and its user does not: with a
    /// Terminate of this code that echoes, for a Write, where that was to go.
    pub fn refuse(
        &mut self,
        code: Code,
        written: Option<(Stag, u64)>,
        memory: &impl Memory,
        now: Duration,
    ) {
        let offender = written.map(|(stag, to)| {
            let header = Tagged {
                last: true,
                ulp: Opcode::Write.control(),
                stag,
                to,
            };
            Box::new(Offender {
                ulpdu_len: TAGGED_LEN as u16,
                header: header.encode(),
                request: None,
            })
        });
        self.violate(Violation { code, offender }, now);
        self.keep(memory);
    }

    /// A Terminate outlives its user's interest in the connection, so what comes before it does.
    fn keep(&mut self, memory: &impl Memory) {
        if self.state == State::Terminating {
            self.outbound.keep(memory);
        }
    }

    /// Room for what the socket has, in this order; without an octet while a message
    /// [waits](Self::is_blocked) and everything behind it does. Less than there is where what comes may go to its
    /// place directly.
    pub fn space(&mut self) -> [&mut [u8]; 2] {
        let most = if self.strays.is_empty() {
            self.glance()
        } else {
            0
        };
        let [first, second] = self.deframer.space();
        let of_first = first.len().min(most);
        let of_second = second.len().min(most - of_first);
        [
            first.get_mut(..of_first).unwrap_or_default(),
            second.get_mut(..of_second).unwrap_or_default(),
        ]
    }

    /// `n` octets of the space have been filled; [`handle_arrivals`](Self::handle_arrivals) is
    /// next.
    pub fn handle_filled(&mut self, n: usize) {
        self.deframer.handle_filled(n);
        self.learn(n);
    }

    /// Copies octets in that were read elsewhere, as many as there is room for; returns how many.
    pub fn handle_octets(&mut self, octets: &[u8]) -> usize {
        self.deframer.handle_octets(octets)
    }

    /// Carries out what has come. Also after [`post_receive`](Self::post_receive), if that
    /// may have been [waited for](Self::is_blocked).
    pub fn handle_arrivals(&mut self, memory: &mut impl Memory, now: Duration) {
        self.carry_out(memory, now);
        if !self.strays.is_empty() {
            self.handle_strays(memory, now);
        }
        self.keep(memory);
        self.handle_end_of_input(now);
        self.settle(now);
    }

    /// What is in the deframer.
    fn carry_out(&mut self, memory: &mut impl Memory, now: Duration) {
        self.blocked = false;
        while self.state.receives() && !self.blocked {
            match self.deframer.poll() {
                Ok(Ready::Nothing) => break,
                Ok(Ready::Fpdu) => self.handle_fpdu(memory, now),
                Ok(Ready::Diverted) => self.handle_diverted_fpdu(memory, now),
                Err(error) => self.violate(error.into(), now),
            }
        }
        if !self.state.receives() {
            self.deframer.discard();
        }
    }

    fn handle_fpdu(&mut self, memory: &mut impl Memory, now: Duration) {
        self.step(Trigger::Fpdu, now);
        let ulpdu = self.deframer.ulpdu();
        let mut head = [0; HeaderOctets::MAX];
        let copied = ulpdu.copy_to(&mut head);
        let head = HeaderOctets::of(head.get(..copied).unwrap_or(&head));
        let way =
            Incoming::parse(head, ulpdu.len(), self.inbound.extensions()).and_then(|incoming| {
                let way = self.inbound.way(&incoming, &self.outbound, memory)?;
                if let Way::To(place) = way {
                    let pieces = ulpdu.pieces_from(incoming.header_len());
                    memory
                        .place_pieces(place, pieces)
                        .map_err(|_| incoming.local_failure())?;
                }
                Ok((incoming, way))
            });
        match way {
            Ok((_, Way::Blocked)) => self.blocked = true,
            Ok((incoming, Way::To(_) | Way::Nowhere)) => {
                self.deframer.release();
                self.handle_placed(&incoming, memory, now);
            }
            Err(violation) => self.violate(violation, now),
        }
    }

    fn handle_placed(&mut self, incoming: &Incoming, memory: &mut impl Memory, now: Duration) {
        let brought = self
            .inbound
            .handle_placed(incoming, &mut self.outbound, memory);
        match brought {
            Ok(Brought::Nothing) => {}
            Ok(Brought::Message(received)) => {
                self.habit.learn(received.len);
                self.actions.push_back(Action::Received(received));
            }
            Ok(Brought::Terminate(terminate)) => {
                self.fail(Failure::Terminated(terminate));
                self.step(Trigger::Terminate, now);
            }
            Err(violation) => self.violate(violation, now),
        }
        self.report_completions();
    }

    fn handle_diverted_fpdu(&mut self, memory: &mut impl Memory, now: Duration) {
        self.step(Trigger::Fpdu, now);
        self.deframer.release();
        if let Some(diversion) = self.diversion.take() {
            self.handle_placed(&diversion.incoming, memory, now);
        }
    }

    /// Whether a message waits for a receive. Reading the socket further fills the space, and no
    /// more.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The peer's FIN has come, behind everything that was filled in.
    pub fn handle_fin(&mut self, memory: &mut impl Memory, now: Duration) {
        self.fin = true;
        self.handle_arrivals(memory, now);
    }

    /// The connection was reset or timed out.
    pub fn handle_reset(&mut self, now: Duration) {
        self.lose(now);
    }

    fn handle_end_of_input(&mut self, now: Duration) {
        if !self.fin || self.blocked {
            return;
        }
        if self.state.receives() && self.deframer.is_inside_fpdu() {
            self.lose(now);
        } else {
            self.step(Trigger::Fin, now);
        }
    }

    fn lose(&mut self, now: Duration) {
        if self.state != State::Closed {
            self.fail(Failure::Lost);
            self.step(Trigger::Lost, now);
        }
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

    /// Time has passed; does nothing before [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.fail(Failure::Timeout);
            self.step(Trigger::Timeout, now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadline
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

    /// The first reason is the one that is told.
    fn fail(&mut self, failure: Failure) {
        if !self.failed {
            self.failed = true;
            self.actions.push_back(Action::Failed(failure));
        }
    }

    fn violate(&mut self, violation: Violation, now: Duration) {
        if transition(self.state, Trigger::Violation).is_none() {
            return;
        }
        self.fail(Failure::Violation(violation.code));
        self.step_with(Trigger::Violation, Some(&violation), now);
        self.deframer.discard();
    }

    /// What ends by itself when everything has gone.
    fn settle(&mut self, now: Duration) {
        let drained = match self.state {
            State::Closing | State::SilentClosing => {
                self.outbound.is_settled() && self.inbound.owes_nothing()
            }
            State::Terminating => self.outbound.framer().waiting() == 0,
            _ => false,
        };
        if drained {
            self.step(Trigger::Drained, now);
            if self.fin {
                self.step(Trigger::Fin, now);
            }
        }
    }

    fn step(&mut self, trigger: Trigger, now: Duration) {
        self.step_with(trigger, None, now);
    }

    fn step_with(&mut self, trigger: Trigger, violation: Option<&Violation>, now: Duration) {
        let Some((next, effects)) = transition(self.state, trigger) else {
            return;
        };
        self.state = next;
        for effect in effects {
            match effect {
                Effect::Flush => self.flush(),
                Effect::SendTerminate => {
                    if let Some(violation) = violation {
                        self.outbound.terminate(&Terminate::about(violation));
                    }
                }
                Effect::StartTimer => self.deadline = now.checked_add(self.config.drain_limit),
                Effect::ShutdownWrite => self.actions.push_back(Action::ShutdownWrite),
                Effect::Close => {
                    self.deadline = None;
                    self.actions.push_back(Action::Close);
                }
            }
        }
    }

    fn flush(&mut self) {
        self.diversion = None;
        let works = self.outbound.flush().map(Action::Completed);
        self.actions.extend(works);
        let receives = self.inbound.flush().map(Action::ReceiveFlushed);
        self.actions.extend(receives);
    }
}

impl Incoming {
    fn header_len(&self) -> usize {
        self.offender.header.len()
    }

    /// Memory of ours that should have been there was not.
    fn local_failure(&self) -> Violation {
        self.offender.blamed(DdpError::Local)
    }
}
