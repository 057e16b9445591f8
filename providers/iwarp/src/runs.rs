//! What one system call writes and reads: octets of the engine's, and payload where it lies.

use proto::mpa::{Piece, Place};
use proto::rdmap::Ahead;
use sys::vectored;
use via::soft::Ground;

/// Pieces of the stream as a send gathers them.
pub(crate) struct Vectors<'g, 'a, P> {
    pieces: P,
    ground: &'g Ground<'a>,
    /// What is left of a payload that lies in several places.
    rest: Option<(Place, u32)>,
}

impl<'g, 'a, P> Vectors<'g, 'a, P> {
    pub(crate) fn new(pieces: P, ground: &'g Ground<'a>) -> Self {
        Self {
            pieces,
            ground,
            rest: None,
        }
    }
}

impl<'p, P: Iterator<Item = Piece<'p>>> Iterator for Vectors<'_, '_, P> {
    type Item = vectored::Piece<'p>;

    fn next(&mut self) -> Option<Self::Item> {
        let (place, len) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.pieces.next()? {
                Piece::Own(octets) => return Some(vectored::Piece::Bytes(octets)),
                Piece::Payload { place, len } => (place, len),
            },
        };
        let run = self.ground.source(place, len)?;
        if run.len < len {
            self.rest = Some((place.advanced(run.len.into()), len - run.len));
        }
        Some(vectored::Piece::Range {
            memory: run.memory,
            offset: run.offset,
            len: run.len as usize,
        })
    }
}

/// Where octets of the stream go.
pub(crate) enum Leg<'s> {
    /// Payload, to its place.
    Payload(Ahead),
    /// What is the engine's.
    Own(&'s mut [u8]),
}

/// Places of payload, and what is between and behind them, as a receive scatters to them.
pub(crate) struct Scatter<'g, 'a, L> {
    ground: &'g Ground<'a>,
    legs: L,
    /// What is left of a payload that lies in several places.
    rest: Option<Ahead>,
    /// Octets that there is room for so far.
    room: usize,
}

impl<'g, 'a, L> Scatter<'g, 'a, L> {
    pub(crate) fn new(legs: L, ground: &'g Ground<'a>) -> Self {
        Self {
            ground,
            legs,
            rest: None,
            room: 0,
        }
    }

    /// Octets that there is room for, among the rooms that have been asked for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }
}

impl<'s, L: Iterator<Item = Leg<'s>>> Iterator for Scatter<'_, '_, L> {
    type Item = vectored::Room<'s>;

    fn next(&mut self) -> Option<Self::Item> {
        let Ahead { place, len } = match self.rest.take() {
            Some(rest) => rest,
            None => match self.legs.next()? {
                Leg::Payload(ahead) => ahead,
                Leg::Own(octets) => {
                    self.room += octets.len();
                    return Some(vectored::Room::Bytes(octets));
                }
            },
        };
        let run = self.ground.target(place, len)?;
        if run.len < len {
            self.rest = Some(Ahead {
                place: place.advanced(run.len.into()),
                len: len - run.len,
            });
        }
        self.room += run.len as usize;
        Some(vectored::Room::Range {
            memory: run.memory,
            offset: run.offset,
            len: run.len as usize,
        })
    }
}
