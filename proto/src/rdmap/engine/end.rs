//! How it ends: in good order, with a Terminate, or without one.

use std::time::Duration;

use super::super::action::{Action, Failure};
use super::super::code::Code;
use super::super::incoming::Incoming;
use super::super::opcode::Opcode;
use super::super::state::{Effect, State, Trigger, transition};
use super::super::terminate::{Offender, Terminate, Violation};
use super::Engine;
use crate::ddp::{DdpError, HeaderOctets, Memory, Stag, TAGGED_LEN, Tagged};

impl Engine {
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

    /// Ends the stream over the message that [waits](Self::is_blocked) for a receive, which will not come.
    pub fn refuse_blocked(&mut self, memory: &impl Memory, now: Duration) {
        if !self.blocked {
            return;
        }
        let ulpdu = self.deframer.ulpdu();
        let head = HeaderOctets::filled(|room| ulpdu.copy_to(room));
        let incoming = Incoming::parse(head, ulpdu.len(), self.inbound.extensions());
        let violation = incoming.map_or_else(
            |violation| violation,
            |incoming| incoming.blamed(DdpError::NoBuffer),
        );
        self.violate(violation, now);
        self.keep(memory);
    }

    /// A Terminate outlives its user's interest in the connection, so what comes before it does.
    pub(super) fn keep(&mut self, memory: &impl Memory) {
        if self.state == State::Terminating {
            self.outbound.keep(memory);
        }
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

    pub(super) fn handle_end_of_input(&mut self, now: Duration) {
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

    /// The first reason is the one that is told.
    pub(super) fn fail(&mut self, failure: Failure) {
        if !self.failed {
            self.failed = true;
            self.actions.push_back(Action::Failed(failure));
        }
    }

    pub(super) fn violate(&mut self, violation: Violation, now: Duration) {
        if transition(self.state, Trigger::Violation).is_none() {
            return;
        }
        self.fail(Failure::Violation {
            code: violation.code,
            opcode: violation.offender.as_ref().and_then(|o| o.opcode()),
        });
        self.step_with(Trigger::Violation, Some(&violation), now);
        self.deframer.discard();
    }

    /// What ends by itself when everything has gone.
    pub(super) fn settle(&mut self, now: Duration) {
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

    pub(super) fn step(&mut self, trigger: Trigger, now: Duration) {
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
