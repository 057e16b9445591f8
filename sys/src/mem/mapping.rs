//! Pages of this process's address space, unmapped when dropped.

use std::{io, mem::ManuallyDrop, os::fd::BorrowedFd, ptr};

use rustix::{
    mm::{MapFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mremap_fixed, munmap},
    param::page_size,
};

use super::{Store, copy};

pub(crate) struct Mapping {
    start: *mut u8,
    len: usize,
}

impl Mapping {
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that anyone uses.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, READ_WRITE, MapFlags::PRIVATE) }?;
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    pub(crate) fn shared(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::shared_from(fd, 0, len)
    }

    /// From a page of the file on.
    pub(super) fn shared_from(fd: BorrowedFd<'_>, from: usize, len: usize) -> io::Result<Self> {
        let (flags, from) = (MapFlags::SHARED, from as u64);
        // SAFETY: as in `anonymous`. That others may change the file is what `Memory` is made for.
        let start = unsafe { mmap(ptr::null_mut(), len, READ_WRITE, flags, fd, from) }?;
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// Maps `fd` in place of what is mapped now. To other threads the pages change at once, without a gap.
    pub(crate) fn replace(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: MAP_FIXED covers exactly the pages that this value owns; users of the range hold pointers, not references.
        unsafe {
            mmap(
                self.start.cast(),
                self.len,
                READ_WRITE,
                MapFlags::SHARED | MapFlags::FIXED,
                fd,
                0,
            )
        }?;
        Ok(())
    }

    /// Puts fresh pages of this process, with the same contents, in place of those of a file. This needs no descriptor, and little room for addresses; to
    /// other threads each piece changes at once.
    ///
    /// # Errors
    /// The kernel's; then some pieces are fresh.
    pub(super) fn take_from_file(&self) -> io::Result<()> {
        let piece = (self.len / PIECES)
            .max(PIECE_MIN)
            .next_multiple_of(page_size());
        for at in (0..self.len).step_by(piece) {
            let len = piece.min(self.len - at);
            let fresh = ManuallyDrop::new(Self::anonymous(len)?);
            // SAFETY: the piece is inside of this mapping, and the fresh one, which nobody else knows, is as long. What is moved replaces exactly the
            // piece; users of the range hold pointers, not references.
            let moved = unsafe {
                let place = self.start.add(at);
                copy(fresh.start, place, len, Store::Own);
                mremap_fixed(
                    fresh.start.cast(),
                    len,
                    len,
                    MremapFlags::MAYMOVE,
                    place.cast(),
                )
            };
            if let Err(error) = moved {
                drop(ManuallyDrop::into_inner(fresh));
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The same pages once more: only one of the two may be dropped.
    pub(super) fn alias(&self) -> Self {
        Self {
            start: self.start,
            len: self.len,
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

// SAFETY: pages belong to the process, and not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: `&self` gives out numbers; who makes references of them argues for himself.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own, and its owner lends out no pointer that outlives it.
        let unmapped = unsafe { munmap(self.start.cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of a whole mapping cannot fail");
    }
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// In so many pieces a mapping is [taken](Mapping::take_from_file), for each may need an entry in the kernel's list of them.
const PIECES: usize = 64;
const PIECE_MIN: usize = 64 << 10;
