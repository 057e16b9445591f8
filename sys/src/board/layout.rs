//! Where everything lies in a board. Both sides are compiled from this file; a change of it is a change of [`crate::stream::VERSION`], by which peers
//! tell whether they understand each other.

use super::protocol::Words;
use crate::sync::mapped::AtomicU32;

/// All of it. Pages that no set uses are never touched.
#[repr(C)]
pub(super) struct Pages {
    pub(super) leaves: [LeafPages; LEAVES],
}

/// What one set polls, and what is written to before it is told.
#[repr(C, align(4096))]
pub(super) struct LeafPages {
    asleep: Line<AtomicU32>,
    summary: Line<[AtomicU32; GROUPS]>,
    bits: Page<[AtomicU32; SLOTS / 32]>,
}

impl LeafPages {
    #[inline]
    pub(super) fn words(&self) -> Words<'_, AtomicU32> {
        Words {
            asleep: &self.asleep.0,
            summary: &self.summary.0,
            bits: &self.bits.0,
        }
    }
}

/// Two lines, for the processor prefetches the neighbour.
#[repr(C, align(128))]
struct Line<T>(T);

#[repr(C, align(4096))]
struct Page<T>(T);

/// Sets of a process that can have a leaf.
pub(super) const LEAVES: usize = 64;
/// Members of a set that can have a bit.
pub(super) const SLOTS: usize = 1 << 15;
/// Words of the summary: a bit of it stands for a word of bits.
pub(super) const GROUPS: usize = SLOTS / 32 / 32;
pub(super) const LEN: usize = size_of::<Pages>();

const _: () = assert!(size_of::<LeafPages>() == 2 * 4096 && LEN == 512 << 10);
