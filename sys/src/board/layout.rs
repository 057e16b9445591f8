//! Where everything lies in a board. Both sides are compiled from this file; a change of it is a change of [`crate::stream::VERSION`], by which peers
//! tell whether they understand each other.

use super::protocol::{Group, WORDS, Words};
use crate::sync::mapped::AtomicU32;

/// All of it. Pages that no set uses are never touched.
#[repr(C)]
pub(super) struct Pages {
    pub(super) leaves: [LeafPages; LEAVES],
}

/// What one set polls, and what is written to before it is told.
#[repr(C, align(4096))]
pub(super) struct LeafPages {
    /// Two lines, for the processor prefetches the neighbour.
    asleep: [Line<AtomicU32>; 2],
    groups: [Line<Group<AtomicU32>>; GROUPS],
}

impl LeafPages {
    #[inline]
    pub(super) fn words(&self) -> Words<'_, AtomicU32, Line<Group<AtomicU32>>> {
        Words {
            asleep: &self.asleep[0].0,
            groups: &self.groups,
        }
    }
}

/// A line of the processor's.
#[repr(C, align(64))]
pub(super) struct Line<T>(T);

impl<T> std::ops::Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Sets of a process that can have a leaf.
pub(super) const LEAVES: usize = 64;
/// Members of a set that can have a bit.
pub(super) const SLOTS: usize = 1 << 15;
/// Lines that have them.
pub(super) const GROUPS: usize = SLOTS.div_ceil(GROUP);
/// Slots of a line.
pub(super) const GROUP: usize = WORDS * 32;
pub(super) const LEN: usize = size_of::<Pages>();

const _: () = assert!(size_of::<Line<Group<AtomicU32>>>() == 64);
const _: () = assert!(size_of::<LeafPages>() == 2 * 4096 && LEN == 512 << 10);
