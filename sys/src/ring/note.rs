//! Notes: short frames in a line that both directions share.
//!
//! A cell costs two transfers of its line from core to core: the consumer who polls it has it, so the producer must take it before he can write, and then the
//! consumer takes it back. In a line into which both write, the transfer that brings a note also brings the right to write the answer: one transfer, 60 ns in place
//! of 120 where this was measured.
//!
//! Each side writes its own half of the line. There is one note under way per direction: a half may be written again when the other half's head says that
//! what was in it has been released. Who answers each message with another says so in passing; in a stream of messages one way all but the first are cells.
//! Two notes that cross say nothing of each other, and neither half would ever be free again: who owes an answer himself looks at the counter of frames, once a lap.
//!
//! A note is a frame like any other and counts as one: its head says which, so that notes and cells stay in order. Where it is at the same time the next
//! note, it is the next frame; a head that stays from an earlier note is neither, however often frame numbers have wrapped.

#[cfg(all(test, not(loom)))]
mod tests;

/// What a note carries: 24 bytes, opaque to this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note(pub [u64; 3]);

/// The first word of each half. In fresh memory it is that of note 0, which there never was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of the frame.
    pub(super) frame: u32,
    /// The number of the note, from 1 on.
    pub(super) number: u16,
    /// The number of the last note of the other direction that the writer has released.
    pub(super) heard: u16,
}

impl Head {
    #[inline]
    pub(super) fn pack(self) -> u64 {
        u64::from(self.frame) | u64::from(self.number) << 32 | u64::from(self.heard) << 48
    }

    #[inline]
    pub(super) fn unpack(word: u64) -> Self {
        Self {
            frame: word as u32,
            number: (word >> 32) as u16,
            heard: (word >> 48) as u16,
        }
    }
}

/// Whether `frame` must be a cell, though it could be a note: a cell that is passed over for as long as tags take to come round would show its old frame as a new one.
#[inline]
pub(super) const fn is_cells_turn(frame: u32, count: u32) -> bool {
    frame / count % LAPS == LAPS - 1
}

/// Of so many laps one has cells only. Tags come round after 2³² frames at the earliest.
const LAPS: u32 = 1 << 10;
