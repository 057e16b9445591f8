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

/// Places of payload, and the space behind it, as a receive scatters to them.
pub(crate) struct Scatter<'g, 'a, S> {
    ground: &'g Ground<'a>,
    /// What is left of it.
    ahead: Ahead,
    space: S,
    /// Octets that there is room for so far.
    room: usize,
}

impl<'g, 'a, S> Scatter<'g, 'a, S> {
    pub(crate) fn new(ahead: Ahead, space: S, ground: &'g Ground<'a>) -> Self {
        Self {
            ground,
            ahead,
            space,
            room: 0,
        }
    }

    /// Octets that there is room for, among the rooms that have been asked for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }
}

impl<'s, S: Iterator<Item = &'s mut [u8]>> Iterator for Scatter<'_, '_, S> {
    type Item = vectored::Room<'s>;

    fn next(&mut self) -> Option<Self::Item> {
        let Ahead { place, len } = self.ahead;
        if len == 0 {
            let octets = self.space.next()?;
            self.room += octets.len();
            return Some(vectored::Room::Bytes(octets));
        }
        let run = self.ground.target(place, len)?;
        self.ahead = Ahead {
            place: place.advanced(run.len.into()),
            len: len - run.len,
        };
        self.room += run.len as usize;
        Some(vectored::Room::Range {
            memory: run.memory,
            offset: run.offset,
            len: run.len as usize,
        })
    }
}
