//! Payload from the socket straight to its place.

use std::time::Duration;

use super::super::config::PlaceAhead;
use super::super::inbound::Way;
use super::super::incoming::Incoming;
use super::super::state::State;
use super::Engine;
use crate::ddp::{HeaderOctets, Memory, UNTAGGED_LEN};
use crate::mpa::Place;

/// Where the next octets of the socket belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// There.
    pub place: Place,
    /// So many; what follows them goes into the [`space`](Engine::space).
    pub len: u32,
}

/// A segment whose payload goes from the socket to its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Diversion {
    pub(super) incoming: Incoming,
    placed: u32,
}

impl Engine {
    /// Where the next octets of the socket belong, if they are payload of a long segment that is on
    /// its way: read them there, and only what follows them into the [`space`](Self::space). Ask
    /// again before every read.
    ///
    /// A read that also takes a little into the space finds the header of the next segment there,
    /// and so the next place; one that fills the space takes in whole segments, which are placed
    /// from there.
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
        let come: usize = ulpdu.pieces().map(<[u8]>::len).sum();
        if usize::from(ulpdu.len()) - come < usize::from(self.config.ahead_min) {
            return;
        }
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
}
