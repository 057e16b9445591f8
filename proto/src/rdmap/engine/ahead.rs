//! Payload from the socket straight to its place.

use std::time::Duration;

use super::super::config::PlaceAhead;
use super::super::inbound::Way;
use super::super::incoming::{Incoming, Kind};
use super::super::state::State;
use super::Engine;
use crate::ddp::{HeaderOctets, Memory, TAGGED_LEN, UNTAGGED_LEN};
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
    /// Whether part of a segment has come: else nothing is known of what comes next, and there is no need to [ask](Self::ahead).
    #[must_use]
    pub fn is_inside_segment(&self) -> bool {
        self.deframer.is_inside_fpdu()
    }

    /// Where the next octets of the socket belong, if they are payload of a long segment that is on
    /// its way: read them there, and only what follows them into the [`space`](Self::space). Ask
    /// again before every read.
    ///
    /// A read that also takes a little into the space finds the header of the next segment there,
    /// and so the next place; one that fills the space takes in whole segments, which are placed
    /// from there.
    pub fn ahead(&mut self, memory: &mut impl Memory, now: Duration) -> Option<Ahead> {
        if !self.strays.is_empty() {
            return None;
        }
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

    pub(super) fn may_place_ahead(&self) -> bool {
        let allowed = match self.config.place_ahead {
            PlaceAhead::Never => false,
            PlaceAhead::WithoutCrc => !self.crc,
            PlaceAhead::Unseen | PlaceAhead::Always => true,
        };
        // What a responder gets first must be verified before anything follows from it.
        let verified = !matches!(self.state, State::Silent | State::SilentClosing);
        allowed && verified && self.state.receives()
    }

    fn divert(&mut self, memory: &mut impl Memory, now: Duration) {
        let allowed = self.may_place_ahead();
        let Some(ulpdu) = self.deframer.arriving(TAGGED_LEN).filter(|_| allowed) else {
            return;
        };
        let come: usize = ulpdu.pieces().map(<[u8]>::len).sum();
        if usize::from(ulpdu.len()) - come < usize::from(self.config.ahead_min) {
            return;
        }
        let head = HeaderOctets::filled(|room| {
            let room = room.get_mut(..UNTAGGED_LEN).unwrap_or_default();
            ulpdu.copy_to(room)
        });
        let parsed = Incoming::parse(head, ulpdu.len(), self.inbound.extensions());
        // What is wrong with it is said when it is whole, and the longer header may not be there yet.
        let Some(incoming) = parsed.ok().filter(Incoming::has_payload) else {
            return;
        };
        let is_seen = match incoming.kind {
            Kind::Write(header) => {
                memory.unseen(header.stag, header.to) < incoming.payload_len.into()
            }
            _ => false,
        };
        if is_seen && self.crc && self.config.place_ahead == PlaceAhead::Unseen {
            return;
        }
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
        self.glance = GLANCE;
        self.diversion = Some(Diversion {
            placed: incoming.payload_len - self.deframer.diverted_left() as u32,
            incoming,
        });
    }

    /// `n` octets have been read to where [`ahead`](Self::ahead) said.
    pub fn handle_ahead(&mut self, n: u32, memory: &mut impl Memory, now: Duration) {
        let Some(diversion) = self.diversion else {
            return;
        };
        let n = n.min(diversion.left());
        if let Some(crc) = self.deframer.diverted_crc() {
            let way = self
                .inbound
                .way(&diversion.incoming, &self.outbound, memory);
            let digested = match way {
                Ok(Way::To(place)) => memory
                    .digest(place.advanced(diversion.placed.into()), n, crc)
                    .map_err(|_| diversion.incoming.local_failure()),
                Ok(Way::Nowhere | Way::Blocked) => Ok(()),
                Err(violation) => Err(violation),
            };
            if let Err(violation) = digested {
                return self.violate(violation, now);
            }
        }
        self.advance(n);
    }

    /// These octets are the next of where [`ahead`](Self::ahead) said, which could not be read there.
    pub fn handle_ahead_octets(&mut self, octets: &[u8], memory: &mut impl Memory, now: Duration) {
        let Some(diversion) = self.diversion else {
            return;
        };
        let octets = octets.get(..diversion.left() as usize).unwrap_or(octets);
        if let Some(crc) = self.deframer.diverted_crc() {
            crc.update(octets);
        }
        let way = self
            .inbound
            .way(&diversion.incoming, &self.outbound, memory);
        let placed = match way {
            Ok(Way::To(place)) => memory
                .place(place.advanced(diversion.placed.into()), octets)
                .map_err(|_| diversion.incoming.local_failure()),
            Ok(Way::Nowhere | Way::Blocked) => Ok(()),
            Err(violation) => Err(violation),
        };
        match placed {
            Ok(()) => self.advance(octets.len() as u32),
            Err(violation) => self.violate(violation, now),
        }
    }

    fn advance(&mut self, n: u32) {
        self.deframer.handle_diverted(n as usize);
        if let Some(diversion) = &mut self.diversion {
            diversion.placed += n;
        }
    }

    /// How many octets to read into the space at once: the more there are, the fewer reads a flow of short messages
    /// takes, and the more octets of a long one are copied from there.
    pub(super) fn glance(&self) -> usize {
        match (&self.diversion, self.may_place_ahead()) {
            // The end of this segment, and the header of the next.
            (Some(_), _) if self.deframer.diverted_left() > 0 => TAIL,
            (_, false) => usize::MAX,
            (_, true) => {
                let missing = self.deframer.missing();
                self.glance.max(missing.saturating_add(TAIL))
            }
        }
    }

    /// `n` octets went into the space.
    pub(super) fn learn(&mut self, n: usize) {
        if self.diversion.is_none() && n >= self.glance {
            self.glance = (2 * self.glance).min(GLANCE_MAX);
        }
    }
}

impl Diversion {
    pub(super) fn left(&self) -> u32 {
        self.incoming.payload_len - self.placed
    }
}

/// What is read into the space where nothing is known of what comes.
pub(super) const GLANCE: usize = 4 << 10;
const GLANCE_MAX: usize = 128 << 10;
/// Pad, checksum, length and header, and a little of what is behind them.
const TAIL: usize = 64;
