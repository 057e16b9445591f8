//! A stream whose words are loom's, and both of whose ends are this process's.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::layout::{BEHIND, BESIDE, ControlPage};
use super::{Side, Size, Stream};
use crate::sync::{AtomicU32, Ordering, UnsafeCell};
use crate::turn::thread_id;

/// What all ends have in common.
#[derive(Clone, Default)]
pub(super) struct Page(Arc<Inside>);

#[derive(Default)]
struct Inside {
    words: ControlPage,
    /// For each of the first places of both rings, and of their bytes in the first page, a cell with which loom sees who touches it.
    rings: [[UnsafeCell<()>; 2 * WATCHED]; 2],
    /// Who was killed: the kernel knows.
    dead: AtomicU32,
}

impl Page {
    pub(super) fn words(&self) -> &ControlPage {
        &self.0.words
    }

    pub(super) fn note_write(&self, index: usize, at: usize, len: usize) {
        self.0.rings[index & 1][watched(at, len)]
            .iter()
            .for_each(|place| place.with_mut(|_| ()));
    }

    pub(super) fn note_read(&self, index: usize, at: usize, len: usize) {
        self.0.rings[index & 1][watched(at, len)]
            .iter()
            .for_each(|place| place.with(|_| ()));
    }
}

/// The cells of `len` places from `at` on, which lie in one piece.
fn watched(at: usize, len: usize) -> Range<usize> {
    let in_page = Size::LEAST.bytes() - BESIDE - BEHIND;
    let (cell, at) = match at.checked_sub(in_page) {
        None => (0, at),
        Some(at) => (WATCHED, at),
    };
    cell + at.min(WATCHED)..cell + at.saturating_add(len).min(WATCHED)
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

    /// The same end in another process.
    ///
    /// # Errors
    /// The kernel's.
    pub fn again(&self) -> io::Result<Self> {
        let mut other = Self::map(
            self.with_fd(|fd| fd.try_clone_to_owned())
                .ok_or(io::ErrorKind::NotFound)??,
            self.side,
        )?;
        other.page = self.page.clone();
        Ok(other)
    }

    /// This thread is killed now: it does nothing more.
    pub fn die(&self) {
        self.page.0.dead.store(me(), Ordering::Release);
    }
}

/// The number of this thread.
pub(super) fn me() -> u32 {
    thread_id() as u32
}

pub(super) fn is_dead(thread: u32, stream: &Stream) -> bool {
    stream.page.0.dead.load(Ordering::Acquire) == thread
}

// SAFETY: the cells hold nothing, and loom panics where they are touched in an order that is none.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

const WATCHED: usize = 4;
