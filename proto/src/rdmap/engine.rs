//! One end of a stream in full operation.

use std::collections::VecDeque;
use std::time::Duration;

use super::code::Code;
use super::inbound::{Brought, Inbound, Received, Way};
use super::incoming::Incoming;
use super::outbound::Outbound;
use super::state::{Effect, State, Trigger, transition};
use super::terminate::{Terminate, Violation};
use super::work::{Completion, Operation, PostError, Receive, Work, WorkId};
use crate::ddp::{DdpError, HeaderOctets, Memory, UNTAGGED_LEN};
use crate::mpa::{
    Deframer, MarkerCheck, MpaError, Piece, Place, Ready, Role, Terms, ULPDU_LEN_MAX,
};

/// How an engine works; what the two ends need not agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Longest ULPDU to send: [`mulpdu`](crate::mpa::mulpdu) towards hardware, the format's limit towards software.
    pub mulpdu: u16,
    /// Octets of the buffer for the socket; at least the longest FPDU.
    pub receive_buffer: usize,
    /// No more FPDUs are made while this many octets wait to be written.
    pub send_window: u64,
    /// Whether received markers are looked at.
    pub marker_check: MarkerCheck,
    /// RFC 7306: immediate data and atomics.
    pub extensions: bool,
    /// What to do with a message for which there is no receive.
    pub no_buffer: NoBuffer,
    /// Whether what a peer reads is copied before it is sent.
    pub read_copy: ReadCopy,
    /// When payload may be placed before its FPDU is whole.
    pub place_ahead: PlaceAhead,
    /// How long an orderly end may take.
    pub drain_limit: Duration,
}

impl Default for Config {
    /// Towards software; two seconds for the end.
    fn default() -> Self {
        Self {
            mulpdu: ULPDU_LEN_MAX,
            receive_buffer: 128 << 10,
            send_window: 256 << 10,
            marker_check: MarkerCheck::On,
            extensions: false,
            no_buffer: NoBuffer::Terminate,
            read_copy: ReadCopy::WithCrc,
            place_ahead: PlaceAhead::WithoutCrc,
            drain_limit: Duration::from_secs(2),
        }
    }
}

/// What becomes of a message that has no receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBuffer {
    /// It ends the connection (1/2/02), as RFC 5041 has it.
    Terminate,
    /// It waits, and everything behind it, until a receive is posted.
    Wait,
}

/// When the payload of a Read Response is copied.
///
/// Its owner and other peers may write to a region at any time. If they do between the checksum and the system call, the peer that reads sees
/// a wrong checksum, and ends the connection. (What is *sent* belongs to the engine until it has completed, and is never copied.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadCopy {
    /// With checksums. Without, nobody can tell.
    WithCrc,
    /// Never: for regions that nobody writes while they are read.
    Never,
}

/// When [`Engine::ahead`] says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAhead {
    /// Never.
    Never,
    /// When there is no checksum that could be wrong.
    WithoutCrc,
    /// Always. RFC 5044 section 6 does not allow it; a wrong checksum still ends the connection before anything is
    /// delivered, but what was placed stays.
    Always,
}

/// What the driver, or its user, is to know or to do, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A message is in a receive.
    Received(Received),
    /// A work has ended.
    Completed(Completion),
    /// A receive has ended without a message.
    ReceiveFlushed(WorkId),
    /// The connection fails, for this reason; flushes follow.
    Failed(Failure),
    /// Shut the socket down for writing.
    ShutdownWrite,
    /// Close the socket.
    Close,
}

/// Why a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The peer broke the rules, or something failed here; the peer is told so unless nothing may be sent.
    Violation(Code),
    /// The peer says that we did, or that something failed there.
    Terminated(Terminate),
    /// The TCP connection was lost.
    Lost,
    /// An orderly end took too long.
    Timeout,
}

/// Where the next octets of the socket belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// There.
    pub place: Place,
    /// So many; what follows them goes into the [`space`](Engine::space).
    pub len: u32,
}

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
    /// The peer has sent FIN.
    fin: bool,
    /// A message waits for a receive.
    blocked: bool,
    /// The user has been told why this ends.
    failed: bool,
}

/// A segment whose payload goes from the socket to its place.
#[derive(Debug, Clone, Copy)]
struct Diversion {
    incoming: Incoming,
    placed: u32,
}

impl Engine {
    /// At the beginning of full operation. The initiator of a peer-to-peer connection sends its RTR by itself.
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

    /// The longest ULPDU to send from now on, when TCP has found another segment size.
    pub fn set_mulpdu(&mut self, mulpdu: u16) {
        self.outbound.set_mulpdu(mulpdu.clamp(128, ULPDU_LEN_MAX));
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
        if extension || (operation.is_answered() && !self.outbound.reads()) {
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

    /// Room for what the socket has, in this order.
    pub fn space(&mut self) -> [&mut [u8]; 2] {
        self.deframer.space()
    }

    /// `n` octets of the space have been filled; [`handle_arrivals`](Self::handle_arrivals) is next.
    pub fn handle_filled(&mut self, n: usize) {
        self.deframer.handle_filled(n);
    }

    /// Copies octets in that were read elsewhere, as many as there is room for; returns how many.
    pub fn handle_octets(&mut self, octets: &[u8]) -> usize {
        self.deframer.handle_octets(octets)
    }

    /// Carries out what has come. Also after [`post_receive`](Self::post_receive), if that
    /// may have been [waited for](Self::is_blocked).
    pub fn handle_arrivals(&mut self, memory: &mut impl Memory, now: Duration) {
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
        self.handle_end_of_input(now);
        self.settle(now);
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
                if let Way::To(mut place) = way {
                    for octets in ulpdu.pieces_from(incoming.header_len()) {
                        memory
                            .place(place, octets)
                            .map_err(|_| incoming.local_failure())?;
                        place = place.advanced(octets.len() as u64);
                    }
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
            Ok(Brought::Message(received)) => self.actions.push_back(Action::Received(received)),
            Ok(Brought::Terminate(terminate)) => {
                self.fail(Failure::Terminated(terminate));
                self.step(Trigger::Terminate, now);
            }
            Err(violation) => self.violate(violation, now),
        }
        self.report_completions();
    }

    /// Where the next octets of the socket belong, if they are payload of a long segment that is on
    /// its way: read them there, and only what follows them into the [`space`](Self::space). Ask again before every read.
    pub fn ahead(&mut self, memory: &mut impl Memory, now: Duration) -> Option<Ahead> {
        if self.diversion.is_none() {
            self.divert(memory, now);
        }
        let diversion = self.diversion?;
        if !self.state.receives() || self.deframer.diverted_left() == 0 {
            return None;
        }
        // Again for every read: the right may have been taken back.
        match self
            .inbound
            .way(&diversion.incoming, &self.outbound, memory)
        {
            Ok(Way::To(place)) => Some(Ahead {
                place: place.advanced(diversion.placed.into()),
                len: diversion.incoming.payload_len - diversion.placed,
            }),
            Ok(Way::Nowhere | Way::Blocked) => None,
            Err(violation) => {
                self.violate(violation, now);
                None
            }
        }
    }

    fn divert(&mut self, memory: &mut impl Memory, now: Duration) {
        let allowed = match self.config.place_ahead {
            PlaceAhead::Never => false,
            PlaceAhead::WithoutCrc => !self.crc,
            PlaceAhead::Always => true,
        };
        // What a responder gets first must be verified before anything follows from it.
        let verified = !matches!(self.state, State::Silent | State::SilentClosing);
        let allowed = allowed && verified && self.state.receives();
        let Some(ulpdu) = self.deframer.arriving(UNTAGGED_LEN).filter(|_| allowed) else {
            return;
        };
        let mut head = [0; UNTAGGED_LEN];
        ulpdu.copy_to(&mut head);
        let parsed = Incoming::parse(
            HeaderOctets::of(&head),
            ulpdu.len(),
            self.inbound.extensions(),
        );
        // What is wrong with it is said when it is whole.
        let Some(incoming) = parsed.ok().filter(Incoming::has_payload) else {
            return;
        };
        let Ok(Way::To(place)) = self.inbound.way(&incoming, &self.outbound, memory) else {
            return;
        };
        let mut placed = 0;
        for octets in ulpdu.pieces_from(incoming.header_len()) {
            if memory.place(place.advanced(placed), octets).is_err() {
                self.violate(incoming.local_failure(), now);
                return;
            }
            placed += octets.len() as u64;
        }
        self.deframer.divert();
        self.diversion = Some(Diversion {
            placed: incoming.payload_len - self.deframer.diverted_left() as u32,
            incoming,
        });
    }

    /// `n` octets have been read to where [`ahead`](Self::ahead) said.
    pub fn handle_ahead(&mut self, n: u32, memory: &mut impl Memory, now: Duration) {
        let Some(mut diversion) = self.diversion else {
            return;
        };
        let n = n.min(diversion.incoming.payload_len - diversion.placed);
        if self.crc {
            let digested = match self
                .inbound
                .way(&diversion.incoming, &self.outbound, memory)
            {
                Ok(Way::To(place)) => {
                    let place = place.advanced(diversion.placed.into());
                    let deframer = &mut self.deframer;
                    memory
                        .show(place, n, |octets| deframer.digest_diverted(octets))
                        .map_err(|_| diversion.incoming.local_failure())
                }
                Ok(Way::Nowhere | Way::Blocked) => Ok(()),
                Err(violation) => Err(violation),
            };
            if let Err(violation) = digested {
                self.violate(violation, now);
                return;
            }
        }
        self.deframer.handle_diverted(n as usize);
        diversion.placed += n;
        self.diversion = Some(diversion);
    }

    fn handle_diverted_fpdu(&mut self, memory: &mut impl Memory, now: Duration) {
        self.step(Trigger::Fpdu, now);
        self.deframer.release();
        if let Some(diversion) = self.diversion.take() {
            self.handle_placed(&diversion.incoming, memory, now);
        }
    }

    /// Whether a message waits for a receive. Reading the socket further fills the space, and no more.
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
            }
        }
    }

    /// What is to be written, in order.
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
