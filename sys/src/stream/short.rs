//! How most bytes come into the ring: as one short piece, for which there is room.

use super::Tx;
use super::write::FIRST_CHUNK;
use crate::sync::Ordering;

impl Tx<'_> {
    /// As [`Tx::write`] of one piece outside signal handlers, if it is shorter than [`SHORT_MAX`], and there is room for all of it: how many bytes, and the bits.
    /// `None`, and nothing was written, if [`Tx::write`] is to look closer.
    ///
    /// It takes half the instructions.
    #[inline]
    pub fn write_short(&self, piece: &[u8]) -> Option<(usize, u32)> {
        if piece.is_empty() || piece.len() >= SHORT_MAX {
            return None;
        }
        let unfinished = &self.stream.unfinished;
        unfinished.begin();
        // A handler that came in between has published all of it, or nothing.
        let written = self.put(piece) || unfinished.take_helped() == piece.len() as u64;
        unfinished.end();
        written.then(|| (piece.len(), self.bytes().armed()))
    }

    /// Copies and publishes it; false if there is something about it, or a handler wrote meanwhile.
    #[inline]
    fn put(&self, piece: &[u8]) -> bool {
        // In this order, as in `Tx::write`.
        let own = self.words().sender;
        let base = own.base.load(Ordering::Acquire);
        let start = own.tail.load(Ordering::Acquire);
        self.stream.unfinished.set_floor(start);
        let begin = self.begin_at(|| piece.len());
        let Ok(Some(base)) = self.rebase(false, base, start, begin) else {
            return false;
        };
        if !self
            .room_from(start, piece.len())
            .is_ok_and(|room| room >= piece.len())
            || !self.copy_piece(base, start, start, piece)
        {
            return false;
        }
        let end = start.wrapping_add(piece.len() as u64);
        if begin == 0 {
            self.foresee_next(end.wrapping_sub(base), piece.len() as u64);
        }
        self.publish(start, end)
    }
}

/// What is as long is published in pieces.
pub const SHORT_MAX: usize = FIRST_CHUNK;
