//! The shared memory of one connection, both directions, in one sealed memfd.
//!
//! One page of [control words](Control), a page of cells per direction, a data area per direction. No page is touched before it is
//! used, and nothing in the segment says how it is laid out: both sides know, or were told by other means.

use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use crate::{
    mem::{Memory, OutOfRange, memfd, prefetch_to_write},
    ring::{Cells, Consumer, Producer},
    sync::{
        Ordering,
        mapped::{AtomicU32, AtomicU64},
    },
};

pub use control::{Control, Wait};
pub use grant::Grant;
pub use layout::GRANTS;

use layout::{CELLS, CellPage, ControlPage, DATA, PAGE};

mod control;
mod grant;
mod layout;
pub(crate) mod state;
#[cfg(all(test, not(loom)))]
mod tests;

/// The memory that the two sides of a connection share.
#[derive(Debug)]
pub struct Segment {
    memory: Memory,
    data_len: u32,
}

impl Segment {
    /// Makes a segment with `data_len` bytes of data area per direction, and the memfd by which the peer [imports](Segment::import) it.
    ///
    /// # Errors
    /// `InvalidInput` unless `data_len` is a power of two from [`DATA_MIN`] to [`DATA_MAX`], else the kernel's.
    pub fn create(data_len: usize) -> io::Result<(Arc<Self>, OwnedFd)> {
        let checked = check(data_len)?;
        let memory = Memory::sparse(total(data_len))?;
        let fd = memory.try_clone_fd()?;
        Ok((
            Arc::new(Self {
                memory,
                data_len: checked,
            }),
            fd,
        ))
    }

    /// Maps a peer's segment.
    ///
    /// # Errors
    /// `InvalidInput` as for [`Segment::create`], `InvalidData` if `fd` is not a sealed memfd of just that size, else the kernel's.
    pub fn import(fd: OwnedFd, data_len: usize) -> io::Result<Arc<Self>> {
        let checked = check(data_len)?;
        let size = total(data_len).next_multiple_of(rustix::param::page_size());
        if memfd::sealed_size(fd.as_fd())? != size as u64 {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(Arc::new(Self {
            memory: Memory::import(fd, total(data_len))?,
            data_len: checked,
        }))
    }

    /// The length of the data area of each direction.
    #[inline]
    pub fn data_len(&self) -> u32 {
        self.data_len
    }

    #[inline]
    fn control(&self) -> &ControlPage {
        // SAFETY: the mapping is longer than a page, page-aligned and outlives `self`; the page consists of atomics and padding,
        // for which all bit patterns are valid and which others may change.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    #[inline]
    fn cells(&self, direction: usize) -> &CellPage {
        debug_assert!(direction < 2);
        // SAFETY: as in `control`; `total` has room for the pages of both directions.
        unsafe {
            &*self
                .memory
                .as_ptr()
                .add(CELLS + (direction & 1) * PAGE)
                .cast()
        }
    }
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that created the segment.
    A,
    /// The one that imported it.
    B,
}

impl Side {
    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// This side's place in the layout; also that of the direction in which it sends.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// What `side` needs of a fresh segment: its sending end, its receiving end, and the words beside the rings.
///
/// To be called once per side: two producers of one direction would overwrite each other's frames.
pub fn split(segment: Arc<Segment>, side: Side) -> (Producer, Consumer, Control) {
    let to_peer = Direction {
        segment: Arc::clone(&segment),
        sender: side,
    };
    let from_peer = Direction {
        segment: Arc::clone(&segment),
        sender: side.peer(),
    };
    (
        Producer::new(to_peer),
        Consumer::new(from_peer),
        Control::new(segment, side),
    )
}

/// The cells, the data area and the count of one direction of a segment.
#[derive(Debug)]
pub struct Direction {
    segment: Arc<Segment>,
    sender: Side,
}

impl Direction {
    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        &self.segment.memory
    }

    /// Where in [`Direction::memory`] the `len` bytes at `offset` of the data area lie.
    #[inline]
    pub(crate) fn data_at(&self, offset: u32, len: usize) -> Result<usize, OutOfRange> {
        let (area, offset) = (self.segment.data_len as usize, offset as usize);
        if offset > area || len > area - offset {
            return Err(OutOfRange);
        }
        Ok(DATA + self.sender.index() * area + offset)
    }

    #[inline]
    fn note(&self, sender: Side) -> &[AtomicU64; 4] {
        &self.segment.control().notes.0.0[sender.index()]
    }

    #[inline]
    fn cell(&self, index: u32) -> &[AtomicU64; 8] {
        let cells = &self.segment.cells(self.sender.index()).0;
        &cells[index as usize % cells.len()].0
    }
}

impl Cells for Direction {
    const COUNT: u32 = layout::COUNT as u32;
    type Head = AtomicU64;
    type Frames = AtomicU32;

    #[inline]
    fn data_len(&self) -> u32 {
        self.segment.data_len
    }

    #[inline]
    fn head_of(&self, cell: u32) -> &AtomicU64 {
        &self.cell(cell)[0]
    }

    #[inline]
    fn body(&self, cell: u32) -> [u64; 7] {
        let [_, body @ ..] = self.cell(cell);
        body.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    #[inline]
    fn set_body(&self, cell: u32, body: [u64; 7]) {
        let [first, rest @ ..] = self.cell(cell);
        // Asked for before the first store: while the line is on its way, its poller would take it back between two stores.
        prefetch_to_write(first.as_ptr().cast(), size_of::<u64>());
        for (word, value) in rest.iter().zip(body) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[inline]
    fn head_of_note(&self) -> &AtomicU64 {
        &self.note(self.sender)[0]
    }

    #[inline]
    fn note_body(&self) -> [u64; 3] {
        let [_, body @ ..] = self.note(self.sender);
        body.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    #[inline]
    fn set_note_body(&self, body: [u64; 3]) {
        let [first, rest @ ..] = self.note(self.sender);
        prefetch_to_write(first.as_ptr().cast(), size_of::<u64>());
        for (word, value) in rest.iter().zip(body) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[inline]
    fn head_of_other_note(&self) -> &AtomicU64 {
        &self.note(self.sender.peer())[0]
    }

    #[inline]
    fn consumed_frames(&self) -> &AtomicU32 {
        &self.segment.control().consumed[self.sender.index()].0
    }
}

fn check(data_len: usize) -> io::Result<u32> {
    let in_range = data_len.is_power_of_two() && (DATA_MIN..=DATA_MAX).contains(&data_len);
    u32::try_from(data_len)
        .ok()
        .filter(|_| in_range)
        .ok_or_else(|| ErrorKind::InvalidInput.into())
}

const fn total(data_len: usize) -> usize {
    DATA + 2 * data_len
}

/// The data area per direction that suits a stream.
pub const DATA_DEFAULT: usize = 512 << 10;
/// The smallest data area per direction.
pub const DATA_MIN: usize = 64 << 10;
/// The largest data area per direction.
pub const DATA_MAX: usize = 16 << 20;
