//! A stream whose words are loom's, and both of whose ends are this process's.

use std::io;
use std::sync::Arc;

use super::layout::ControlPage;
use super::{Side, Size, Stream};
use crate::sync::UnsafeCell;

/// The page of words, and for each of the first places of both rings a cell with which loom sees who touches it.
#[derive(Clone, Default)]
pub(super) struct Page(Arc<(ControlPage, [[UnsafeCell<()>; WATCHED]; 2])>);

impl Page {
    pub(super) fn words(&self) -> &ControlPage {
        &self.0.0
    }

    pub(super) fn note_write(&self, index: usize, at: usize, len: usize) {
        let places = at.min(WATCHED)..at.saturating_add(len).min(WATCHED);
        self.0.1[index & 1][places]
            .iter()
            .for_each(|place| place.with_mut(|_| ()));
    }

    pub(super) fn note_read(&self, index: usize, at: usize, len: usize) {
        let places = at.min(WATCHED)..at.saturating_add(len).min(WATCHED);
        self.0.1[index & 1][places]
            .iter()
            .for_each(|place| place.with(|_| ()));
    }
}

impl Stream {
    /// Both ends of a new stream, in a model.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pair() -> io::Result<[Self; 2]> {
        let memory = Self::memory(Size::LEAST)?;
        let ours = Self::map(memory.try_clone()?, Side::A)?;
        let mut theirs = Self::map(memory, Side::B)?;
        theirs.page = ours.page.clone();
        Ok([ours, theirs])
    }
}

// SAFETY: the cells hold nothing, and loom panics where they are touched in an order that is none.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

const WATCHED: usize = 4;
