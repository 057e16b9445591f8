//! Where everything lies. Both sides are compiled from this file, so a change of it is a change of protocol.

use std::mem::offset_of;

use crate::{
    ring::CELLS_MAX,
    sync::mapped::{AtomicU32, AtomicU64},
};

/// What lies beside the rings. Indices are [sides](super::Side), or the side that sends in the direction meant.
#[repr(C)]
pub(super) struct ControlPage {
    /// Frames that the consumer of this direction has released.
    pub(super) consumed: [Line<AtomicU32>; 2],
    /// The bells on which this side sleeps, one for frames and one for room.
    pub(super) bells: [[Line<BellWords>; 2]; 2],
    /// This side's state.
    pub(super) state: [Line<AtomicU32>; 2],
    /// What this side grants.
    pub(super) grants: [[GrantWords; GRANTS]; 2],
    /// The notes of both directions.
    pub(super) notes: Line<NoteLine>,
}

/// A datum on lines of its own: two, for the processor prefetches the neighbour.
#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

#[repr(C)]
pub(super) struct BellWords {
    pub(super) armed: AtomicU32,
    pub(super) word: AtomicU32,
}

#[repr(C)]
pub(super) struct GrantWords {
    /// Written by the granting side.
    pub(super) valid: HalfLine,
    /// Written by the using side.
    pub(super) busy: HalfLine,
}

#[repr(C, align(64))]
pub(super) struct HalfLine(pub(super) AtomicU32);

/// The cells of one direction.
#[repr(C)]
pub(super) struct CellPage(pub(super) [CellLine; COUNT]);

/// The low half of the first word is the tag.
#[repr(C, align(64))]
pub(super) struct CellLine(pub(super) [AtomicU64; 8]);

/// Half a line for each direction; the first word of a half is its head.
#[repr(C, align(64))]
pub(super) struct NoteLine(pub(super) [[AtomicU64; 4]; 2]);

const _: () = {
    assert!(offset_of!(ControlPage, consumed) == 0);
    assert!(offset_of!(ControlPage, bells) == 256);
    assert!(offset_of!(ControlPage, state) == 768);
    assert!(offset_of!(ControlPage, grants) == 1024);
    assert!(offset_of!(ControlPage, notes) == 3072 && size_of::<NoteLine>() == 64);
    assert!(size_of::<ControlPage>() == 3200 && size_of::<ControlPage>() <= PAGE);
    assert!(size_of::<CellPage>() == PAGE && COUNT <= CELLS_MAX);
    assert!(CELLS == PAGE && DATA == 3 * PAGE);
};

/// Grant slots of each side.
pub const GRANTS: usize = 8;
/// Cells of each direction.
pub(super) const COUNT: usize = 64;
/// The unit of the layout, on machines with larger pages too.
pub(super) const PAGE: usize = 4096;
/// Where the cells of direction 0 begin; those of direction 1 follow.
pub(super) const CELLS: usize = PAGE;
/// Where the data of direction 0 begins; that of direction 1 follows.
pub(super) const DATA: usize = CELLS + 2 * PAGE;
