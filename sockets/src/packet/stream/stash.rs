//! What a sender takes in for its own program, which does not read meanwhile.
//!
//! The window bounds what a peer can make us keep. But where two ends both send more than a window before either reads, as TCP's buffers let them, each
//! would wait for the other for ever. So who waits for the window, and whose peer waits for his, takes the bytes out of their buffers, up to a bound, and gives
//! those back. Nobody else does: who reads has them as they came.

use std::collections::VecDeque;

use super::Stream;
use super::inner::{Inner, STASHED, URGENT};

impl Stream {
    /// Gives buffers back whose bytes nobody reads, if the peer waits for that.
    #[cold]
    pub(super) fn stash(&self, inner: &mut Inner) {
        for index in inner.stash.len()..inner.arrived.len() {
            let Some(piece) = inner.arrived.get_mut(index) else {
                break;
            };
            if piece.slot == URGENT {
                break;
            }
            let mut bytes = vec![0; piece.len as usize].into_boxed_slice();
            let taken =
                inner.stash.has_room(&bytes) && self.copy(piece.slot, piece.at, &mut bytes).is_ok();
            if !taken {
                break;
            }
            let slot = std::mem::replace(&mut piece.slot, STASHED);
            piece.at = 0;
            inner.stash.push(bytes);
            self.give_back(inner, slot);
        }
        self.settle(inner);
    }

    /// As [`Stream::stash`] where a program polls and can send nothing, and so may be waiting for the peer, and he for it. Packets have been taken in.
    pub(super) fn stash_for_poller(&self, inner: &mut Inner) {
        let waits = inner.talk.window() == 0 || inner.is_crowded;
        if inner.shown.is_some() && inner.peer.is_some() && waits && inner.is_full() {
            self.stash(inner);
        }
    }
}

/// Bytes in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Stash {
    pieces: VecDeque<Box<[u8]>>,
    used: usize,
}

impl Stash {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Copies bytes of a piece from `at` on. Whether it is here.
    pub(super) fn copy(&self, piece: usize, at: u32, into: &mut [u8]) -> bool {
        let Some(bytes) = self.pieces.get(piece) else {
            return false;
        };
        let bytes = bytes.get(at as usize..).unwrap_or_default();
        let count = bytes.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        true
    }

    fn has_room(&self, bytes: &[u8]) -> bool {
        self.used + cost(bytes) <= STASH_MAX
    }

    fn push(&mut self, bytes: Box<[u8]>) {
        self.used += cost(&bytes);
        self.pieces.push_back(bytes);
    }

    fn pop(&mut self) {
        let popped = self.pieces.pop_front();
        self.used -= popped.map_or(0, |bytes| cost(&bytes));
    }
}

impl Inner {
    /// Reads from the first piece, which is in no buffer any more; all of the rest of it if `whole`.
    #[cold]
    pub(super) fn unstash(&mut self, at: u32, into: &mut [u8], whole: bool) {
        self.stash.copy(0, at, into);
        if whole {
            self.arrived.pop_front();
            self.stash.pop();
        }
    }
}

/// As TCP counts it: with what a piece takes beside its bytes.
fn cost(bytes: &[u8]) -> usize {
    bytes.len() + PIECE
}

/// As much as TCP's buffers hold over loopback.
const STASH_MAX: usize = 4 << 20;
const PIECE: usize = 64;
