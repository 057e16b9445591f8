//! What a driver supplies: memory, and who may reach it.

use thiserror::Error;

use super::header::Stag;
use crate::mpa::{Place, Source, SourceLost};

/// A driver's memory, and the rights of the stream to it.
///
/// A tagged segment is first [granted](Self::grant), which is the check of STag, rights and bounds
/// and yields a [`Place`]; only what was granted, or posted as a receive, is ever placed. The check
/// is made for every segment, so a region that is taken back is out of reach at once.
pub trait Memory: Source {
    /// May the peer reach `len` octets, at least one, from `to` on in `stag`? Where are they?
    ///
    /// # Errors
    /// The first [`Fault`] in the order of its variants.
    fn grant(&self, access: Access, stag: Stag, to: u64, len: u32) -> Result<Place, Fault>;

    /// Writes payload to its place. Each octet of a message comes once, unless its sender repeats
    /// it.
    ///
    /// # Errors
    /// [`SourceLost`] when that is no memory any more: an error of this end.
    fn place(&mut self, place: Place, octets: &[u8]) -> Result<(), SourceLost>;

    /// Writes payload that has come in several pieces to its place, one behind the other.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    fn place_pieces<'a>(
        &mut self,
        place: Place,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), SourceLost> {
        let mut place = place;
        for octets in pieces {
            self.place(place, octets)?;
            place = place.advanced(octets.len() as u64);
        }
        Ok(())
    }

    /// How many octets from `to` on in `stag` nobody sees before immediate data behind them have come: those may be placed
    /// [before they are verified](crate::rdmap::PlaceAhead::Unseen), if the peer may write there.
    fn unseen(&self, stag: Stag, to: u64) -> u64 {
        let _ = (stag, to);
        0
    }

    /// Immediate data have come: somebody may look now at what was written before.
    fn handle_told(&mut self) {}

    /// Takes back the right to `stag`, as the peer asked.
    ///
    /// # Errors
    /// [`InvalidateFault`] if it cannot be.
    fn invalidate(&mut self, stag: Stag) -> Result<(), InvalidateFault>;

    /// Replaces the aligned 64-bit number (in the host's order) at a granted place by what `change`
    /// makes of it, atomically as seen by other atomics of this driver; returns the former.
    ///
    /// # Errors
    /// [`SourceLost`] when that is no memory any more.
    fn atomic(&mut self, place: Place, change: impl Fn(u64) -> u64) -> Result<u64, SourceLost>;
}

/// What a peer wants with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// RDMA Write.
    RemoteWrite,
    /// RDMA Read.
    RemoteRead,
    /// An atomic operation, which reads and writes.
    RemoteAtomic,
}

/// Why a peer may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// No such STag.
    #[error("no such STag")]
    UnknownStag,
    /// It belongs to another protection domain or stream.
    #[error("STag of another stream")]
    NotAssociated,
    /// It does not allow this kind of access.
    #[error("no right to this access")]
    NoRight,
    /// Offset and length go beyond 2^64.
    #[error("offset wraps")]
    Wrap,
    /// Before its beginning or beyond its end.
    #[error("outside the region")]
    Bounds,
}

/// Why an STag cannot be invalidated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum InvalidateFault {
    /// No such STag.
    #[error("no such STag")]
    UnknownStag,
    /// It belongs to another protection domain or stream.
    #[error("STag of another stream")]
    NotAssociated,
}

/// The tagged offsets under which a region is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Of its first octet.
    pub base: u64,
    /// Its octets.
    pub len: u64,
}

impl Window {
    /// How far into the region `to` is, if `len` octets from there on lie within.
    ///
    /// # Errors
    /// [`Fault::Wrap`] or [`Fault::Bounds`].
    pub fn offset(&self, to: u64, len: u32) -> Result<u64, Fault> {
        // The last octet may be that of offset 2^64 - 1.
        if to.checked_add(u64::from(len).saturating_sub(1)).is_none() {
            return Err(Fault::Wrap);
        }
        let offset = to.checked_sub(self.base).ok_or(Fault::Bounds)?;
        match offset.checked_add(u64::from(len)) {
            Some(end) if end <= self.len => Ok(offset),
            _ => Err(Fault::Bounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c80_c82_bounds_are_exact_to_the_octet() {
        let window = Window { base: 100, len: 10 };
        assert_eq!(window.offset(100, 10), Ok(0));
        assert_eq!(window.offset(109, 1), Ok(9));
        assert_eq!(window.offset(99, 1), Err(Fault::Bounds));
        assert_eq!(window.offset(100, 11), Err(Fault::Bounds));
        assert_eq!(window.offset(110, 1), Err(Fault::Bounds));
        assert_eq!(window.offset(u64::MAX - 3, 8), Err(Fault::Wrap));
        let top = Window {
            base: u64::MAX - 3,
            len: 4,
        };
        assert_eq!(top.offset(u64::MAX - 3, 4), Ok(0));
        assert_eq!(top.offset(u64::MAX - 3, 5), Err(Fault::Wrap));
    }
}
