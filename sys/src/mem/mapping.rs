//! Pages of this process's address space, unmapped when dropped.

use std::{io, os::fd::BorrowedFd, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

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
