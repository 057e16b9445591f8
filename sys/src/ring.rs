//! A ring of frames from one producer to one consumer who do not trust each other.
//!
//! A frame is a *cell* of 64 bytes, and at will a contiguous piece of the *data area*. The first word of a cell is its tag, the
//! number of the lap plus one: a consumer that finds the tag it expects has the frame, and has fetched one cache line for it.
//! There is no shared tail. The other way goes `consumed`, a count of frames, which the producer reads only when it must.
//!
//! Pairings: the tag is stored with release after the cell and the data, and loaded with acquire before they are read;
//! `consumed` is stored with release after they were read, and loaded with acquire before they are overwritten.
//!
//! A short frame can be a [note](Note) instead, which the answer to it makes cheaper.
//!
//! Either side can write anything anywhere at any time. All that a liar achieves is that his own frames are garbage,
//! or that the producer finds the ring [broken](Producer::is_broken).

use crate::sync::{Count, Ordering, Word};

pub use consumer::Consumer;
pub use note::Note;
pub use producer::Producer;

mod consumer;
#[cfg(all(test, loom))]
mod model;
mod note;
mod producer;
#[cfg(all(test, not(loom)))]
mod tests;

/// What a frame carries beside its tag: 15 words, opaque to this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell(pub [u32; WORDS]);

impl Cell {
    /// The first word, and the others in pairs.
    #[inline]
    fn pairs(self) -> (u32, [u64; 7]) {
        let [first, rest @ ..] = self.0;
        let body = std::array::from_fn(|i| join(rest[2 * i], rest[2 * i + 1]));
        (first, body)
    }

    #[inline]
    fn unpack(head: u64, body: [u64; 7]) -> Self {
        let mut words = [0; WORDS];
        words[0] = high(head);
        for (pair, both) in words[1..].chunks_exact_mut(2).zip(body) {
            pair.copy_from_slice(&[low(both), high(both)]);
        }
        Self(words)
    }
}

/// A frame, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// In a cell of its direction.
    Cell(Cell),
    /// In the line that both directions share.
    Note(Note),
}

/// The shared memory of one direction, as the two ends of a ring see it: a mapping, or loom's model of one. Which order is asked of its words is said here,
/// for both.
pub trait Cells {
    /// How many cells there are: a power of two, at most [`CELLS_MAX`].
    const COUNT: u32;
    /// The first 8 bytes of a cell, or of a note.
    type Head: Count;
    /// A count of frames.
    type Frames: Word;

    /// The length of the data area: a power of two.
    fn data_len(&self) -> u32;
    /// The first 8 bytes of a cell.
    fn head_of(&self, cell: u32) -> &Self::Head;
    /// Loads the other bytes of a cell.
    fn body(&self, cell: u32) -> [u64; 7];
    /// Stores the other bytes of a cell.
    fn set_body(&self, cell: u32, body: [u64; 7]);
    /// The first 8 bytes of this direction's note.
    fn head_of_note(&self) -> &Self::Head;
    /// Loads the other bytes of this direction's note.
    fn note_body(&self) -> [u64; 3];
    /// Stores the other bytes of this direction's note.
    fn set_note_body(&self, body: [u64; 3]);
    /// The first 8 bytes of the other direction's note.
    fn head_of_other_note(&self) -> &Self::Head;
    /// The count of consumed frames.
    fn consumed_frames(&self) -> &Self::Frames;

    /// Loads the first 8 bytes of a cell.
    #[inline]
    fn head(&self, cell: u32) -> u64 {
        // Acquire pairs with the release in `publish`: the body and the data are there.
        self.head_of(cell).load(Ordering::Acquire)
    }

    /// Stores the body, then the head.
    #[inline]
    fn publish(&self, cell: u32, head: u64, body: [u64; 7]) {
        self.set_body(cell, body);
        self.head_of(cell).store(head, Ordering::Release);
    }

    /// Loads the first 8 bytes of this direction's note.
    #[inline]
    fn note_head(&self) -> u64 {
        // Acquire pairs with the release in `publish_note`.
        self.head_of_note().load(Ordering::Acquire)
    }

    /// Stores the body of this direction's note, then its head.
    #[inline]
    fn publish_note(&self, head: u64, body: [u64; 3]) {
        self.set_note_body(body);
        self.head_of_note().store(head, Ordering::Release);
    }

    /// Loads the first 8 bytes of the other direction's note.
    #[inline]
    fn other_note_head(&self) -> u64 {
        // Acquire, for it answers: what the other side has read by then may be overwritten.
        self.head_of_other_note().load(Ordering::Acquire)
    }

    /// Loads the count of consumed frames.
    #[inline]
    fn consumed(&self) -> u32 {
        // Acquire pairs with the release in `set_consumed`: what those frames brought has been read.
        self.consumed_frames().load(Ordering::Acquire)
    }

    /// Stores the count of consumed frames.
    #[inline]
    fn set_consumed(&self, frames: u32) {
        self.consumed_frames().store(frames, Ordering::Release);
    }
}

/// The tag of frame number `frame`, never 0, so that fresh memory holds no frame. A cell never has the same tag in successive
/// laps: also not where `frame` wraps, for 2³² is a multiple of the number of cells, and laps start again at tag 1.
const fn tag(frame: u32, count: u32) -> u32 {
    frame / count + 1
}

const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn low(both: u64) -> u32 {
    (both & u32::MAX as u64) as u32
}

const fn high(both: u64) -> u32 {
    (both >> 32) as u32
}

/// Words in a [`Cell`].
pub const WORDS: usize = 15;
/// The most cells that a ring can have.
pub const CELLS_MAX: usize = 64;
