//! Either end of the startup.

use std::time::Duration;

use thiserror::Error;

use super::error::MpaError;
use super::negotiation::{Options, Revision, Role, Terms};
use super::startup::{ENHANCED_LEN, Enhanced, Flags, Kind, PRIVATE_DATA_MAX, Startup};
use super::state::{State, Trigger, transition};

/// One end of an MPA startup.
///
/// Write [`output`](Self::output), read at most [`wants`](Self::wants) octets into
/// [`handle_octets`](Self::handle_octets), take what [`poll_outcome`](Self::poll_outcome) has. It
/// never takes an octet behind its frame, so the stream continues exactly there. After
/// [`Outcome::Established`], the rest of `output` comes before anything of full operation. Time is
/// what has passed since an epoch of the caller's.
#[derive(Debug)]
pub struct Handshake {
    options: Options,
    state: State,
    private_data: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    request: Option<Startup>,
    deadline: Option<Duration>,
    outcome: Option<Outcome>,
    closed_by_peer: bool,
}

/// How a startup comes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Responder: somebody asks; [accept](Handshake::accept) or [reject](Handshake::reject) it.
    Requested {
        /// What the initiator says.
        private_data: Vec<u8>,
        /// Its depths as it sent them, if it did.
        enhanced: Option<Enhanced>,
    },
    /// Full operation. For the responder once its Reply is in the output.
    Established {
        /// What was agreed.
        terms: Terms,
        /// Initiator: what the responder says.
        private_data: Vec<u8>,
        /// Initiator: its depths as it sent them, if it did.
        enhanced: Option<Enhanced>,
    },
    /// No MPA here; TCP stays open, and is its users'.
    Rejected {
        /// Initiator: what the responder says.
        private_data: Vec<u8>,
        /// Initiator: its depths as it sent them, if it did.
        enhanced: Option<Enhanced>,
    },
    /// Over; TCP is to be closed.
    Failed {
        /// Why.
        error: MpaError,
        /// Before closing, the peer is to be told by a Terminate, under these terms.
        tell: Option<Terms>,
    },
}

/// A call that cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HandshakeMisuse {
    /// More private data than there is room for.
    #[error("more than {0} octets of private data")]
    PrivateData(usize),
    /// Nobody has asked.
    #[error("no request waits for an answer")]
    NotAsked,
}

impl Handshake {
    /// Starts as initiator.
    ///
    /// # Errors
    /// [`HandshakeMisuse::PrivateData`] above 512 octets, or 508 with revision 2.
    pub fn initiate(
        options: Options,
        private_data: &[u8],
        now: Duration,
    ) -> Result<Self, HandshakeMisuse> {
        let enhanced = options.request();
        check_private_data(private_data, enhanced)?;
        let request = Startup {
            kind: Kind::Request,
            flags: options.flags(),
            revision: options.revision_number(),
            enhanced,
            private_data: private_data.to_vec(),
        };
        Ok(Self {
            output: request.encode(),
            private_data: request.private_data,
            ..Self::new(options, State::WaitReply, now)
        })
    }

    /// Starts as responder.
    #[must_use]
    pub fn respond(options: Options, now: Duration) -> Self {
        Self::new(options, State::WaitRequest, now)
    }

    fn new(options: Options, state: State, now: Duration) -> Self {
        Self {
            options,
            state,
            private_data: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            request: None,
            deadline: now.checked_add(options.time_limit),
            outcome: None,
            closed_by_peer: false,
        }
    }

    /// Where it has come to.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// How many octets to read, and not one more; none when nothing is waited for.
    #[must_use]
    pub fn wants(&self) -> usize {
        let Some(kind) = self.state.awaited() else {
            return 0;
        };
        Startup::expected_len(kind, &self.input)
            .map_or(0, |len| len.saturating_sub(self.input.len()))
    }

    /// Takes octets of the peer's frame, and none behind it; returns how many.
    pub fn handle_octets(&mut self, octets: &[u8]) -> usize {
        let mut taken = 0;
        while let (1.., Some(kind)) = (self.wants(), self.state.awaited()) {
            let rest = octets.get(taken..).unwrap_or_default();
            let now = rest.get(..self.wants()).unwrap_or(rest);
            if now.is_empty() {
                break;
            }
            self.input.extend_from_slice(now);
            taken += now.len();
            match Startup::expected_len(kind, &self.input) {
                Err(error) => self.fail(Trigger::Malformed, error, None),
                Ok(len) if len == self.input.len() => self.handle_frame(kind),
                Ok(_) => {}
            }
        }
        taken
    }

    fn handle_frame(&mut self, kind: Kind) {
        let frame = Startup::decode(kind, &self.input);
        self.input = Vec::new();
        match (kind, frame) {
            (_, Err(error)) => self.fail(Trigger::Malformed, error, None),
            (Kind::Request, Ok(request)) => self.handle_request(request),
            (Kind::Reply, Ok(reply)) => self.handle_reply(reply),
        }
    }

    fn handle_request(&mut self, request: Startup) {
        if self.options.revision == Revision::One && request.revision > 1 {
            self.fail(Trigger::Malformed, MpaError::Startup, None);
            return;
        }
        if self.go(Trigger::Request) {
            self.outcome = Some(Outcome::Requested {
                private_data: request.private_data.clone(),
                enhanced: request.enhanced,
            });
            self.request = Some(request);
        }
    }

    fn handle_reply(&mut self, reply: Startup) {
        if reply.flags.rejected {
            if self.go(Trigger::Refusal) {
                self.outcome = Some(Outcome::Rejected {
                    private_data: reply.private_data,
                    enhanced: reply.enhanced,
                });
            }
            return;
        }
        match self.options.conclude(&reply) {
            Ok(terms) if self.go(Trigger::Reply) => {
                self.outcome = Some(Outcome::Established {
                    terms,
                    private_data: reply.private_data,
                    enhanced: reply.enhanced,
                });
            }
            Ok(_) => {}
            Err((error, tell)) => self.fail(Trigger::Unusable, error, tell),
        }
    }

    /// Responder: yes, with these words.
    ///
    /// From here on FPDUs may come, so receives should be there.
    ///
    /// # Errors
    /// [`HandshakeMisuse::PrivateData`] for too much of it, [`HandshakeMisuse::NotAsked`]
    /// unless there was [`Outcome::Requested`] and no answer yet.
    pub fn accept(&mut self, private_data: &[u8]) -> Result<(), HandshakeMisuse> {
        let terms = self.answer(private_data, false)?;
        self.outcome = Some(Outcome::Established {
            terms,
            private_data: Vec::new(),
            enhanced: None,
        });
        Ok(())
    }

    /// Responder: no, with these words; TCP stays open.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn reject(&mut self, private_data: &[u8]) -> Result<(), HandshakeMisuse> {
        self.answer(private_data, true)?;
        self.outcome = Some(Outcome::Rejected {
            private_data: Vec::new(),
            enhanced: None,
        });
        Ok(())
    }

    fn answer(&mut self, private_data: &[u8], rejected: bool) -> Result<Terms, HandshakeMisuse> {
        let request = self.request.as_ref().ok_or(HandshakeMisuse::NotAsked)?;
        check_private_data(private_data, request.enhanced)?;
        let trigger = if rejected {
            Trigger::Reject
        } else {
            Trigger::Accept
        };
        let next = transition(self.state, trigger).ok_or(HandshakeMisuse::NotAsked)?;
        let ours = self.options.flags();
        let mut terms = Terms::between(Role::Responder, ours, request.flags, self.options.depths);
        let enhanced = request.enhanced.map(|peers| {
            let (reply, depths) = self.options.reply(peers);
            terms.depths = depths;
            terms.rtr = reply.rtr;
            reply
        });
        let reply = Startup {
            kind: Kind::Reply,
            flags: Flags {
                crc: terms.crc,
                rejected,
                ..ours
            },
            revision: request.revision,
            enhanced,
            private_data: private_data.to_vec(),
        };
        self.output.extend(reply.encode());
        self.state = next;
        Ok(terms)
    }

    /// The peer has closed, or the connection is lost.
    pub fn handle_end(&mut self) {
        self.closed_by_peer = self.state == State::WaitReply && self.input.is_empty();
        self.fail(Trigger::Ended, MpaError::Lost, None);
    }

    /// Time has passed; does nothing before [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.fail(Trigger::Timeout, MpaError::Lost, None);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadline.filter(|_| self.state.awaited().is_some())
    }

    /// Octets to write.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The socket took the first `n` of them.
    pub fn handle_written(&mut self, n: usize) {
        self.output.drain(..n.min(self.output.len()));
    }

    /// What has come of it, each once.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Initiator: whether the peer closed, or was lost, before it had said anything.
    #[must_use]
    pub fn was_closed_unanswered(&self) -> bool {
        self.closed_by_peer
    }

    /// After the peer answered a Request of revision 2 by closing: one of revision 1, for
    /// a new TCP connection. Once; `None` in every other case.
    #[must_use]
    pub fn fallback(&self, now: Duration) -> Option<Self> {
        if !self.closed_by_peer || self.options.revision == Revision::One {
            return None;
        }
        let options = Options {
            revision: Revision::One,
            ..self.options
        };
        Self::initiate(options, &self.private_data, now).ok()
    }

    fn go(&mut self, trigger: Trigger) -> bool {
        let next = transition(self.state, trigger);
        if let Some(next) = next {
            self.state = next;
        }
        next.is_some()
    }

    fn fail(&mut self, trigger: Trigger, error: MpaError, tell: Option<Terms>) {
        if self.go(trigger) {
            self.output.clear();
            self.outcome = Some(Outcome::Failed { error, tell });
        }
    }
}

fn check_private_data(
    private_data: &[u8],
    enhanced: Option<Enhanced>,
) -> Result<(), HandshakeMisuse> {
    let most = match enhanced {
        Some(_) => PRIVATE_DATA_MAX - ENHANCED_LEN,
        None => PRIVATE_DATA_MAX,
    };
    if private_data.len() > most {
        return Err(HandshakeMisuse::PrivateData(most));
    }
    Ok(())
}
