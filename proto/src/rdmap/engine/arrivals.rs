//! What comes: octets into the space, segments out of it, and what they mean.

use std::time::Duration;

use super::super::action::{Action, Failure};
use super::super::inbound::{Brought, Way};
use super::super::incoming::Incoming;
use super::super::state::Trigger;
use super::Engine;
use crate::ddp::{HeaderOctets, Memory};
use crate::mpa::Ready;

impl Engine {
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
    pub(super) fn carry_out(&mut self, memory: &mut impl Memory, now: Duration) {
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
        let head = HeaderOctets::filled(|room| ulpdu.copy_to(room));
        let incoming = match Incoming::parse(head, ulpdu.len(), self.inbound.extensions()) {
            Ok(incoming) => incoming,
            Err(violation) => return self.violate(violation, now),
        };
        let way = self.inbound.way(&incoming, &self.outbound, memory);
        let placed = way.and_then(|way| {
            if let Way::To(place) = way {
                let pieces = ulpdu.pieces_from(incoming.header_len());
                memory
                    .place_pieces(place, pieces)
                    .map_err(|_| incoming.local_failure())?;
            }
            Ok(way)
        });
        match placed {
            Ok(Way::Blocked) => self.blocked = true,
            Ok(Way::To(_) | Way::Nowhere) => {
                self.deframer.release();
                self.handle_placed(&incoming, memory, now);
            }
            Err(violation) => self.violate(violation, now),
        }
    }

    fn handle_placed(&mut self, incoming: &Incoming, memory: &mut impl Memory, now: Duration) {
        self.usual.handle_placed(incoming);
        let brought = self
            .inbound
            .handle_placed(incoming, &mut self.outbound, memory);
        match brought {
            Ok(Brought::Nothing) => self.learn_write(incoming),
            Ok(Brought::Message(received)) => {
                self.habit.learn(received.len);
                self.usual.learn(received.len);
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
}
