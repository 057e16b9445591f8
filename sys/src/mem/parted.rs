//! A shared file of which the first page is mapped apart from the rest.

use std::{io, os::fd::BorrowedFd};

use super::Mapping;
use super::shelf::{PAGE, Place};
use crate::sync::{Ordering, mapped::AtomicU64};

/// Bytes of the first page.
pub(crate) const FIRST: usize = PAGE;

/// The pages of a file, unmapped when dropped: the first, and those that follow it.
pub(crate) struct Parted {
    first: *mut u8,
    /// Where the first page is if it is not before the rest.
    place: Option<Place>,
    /// The rest, or all of it.
    mapping: Mapping,
}

impl Parted {
    /// Maps `len` bytes of a file, more than a page.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn shared(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::with(Place::map(fd), fd, len)
    }

    fn with(place: Option<Place>, fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        let from = if place.is_some() { PAGE } else { 0 };
        let mapping = Mapping::shared_from(fd, from, len - from)?;
        BYTES.fetch_add(mapping.len() as u64, Ordering::Relaxed);
        Ok(Self {
            first: place.as_ref().map_or_else(|| mapping.start(), Place::start),
            place,
            mapping,
        })
    }

    /// The same pages once more: only one of the two may be dropped.
    pub(super) fn alias(&self) -> Self {
        Self {
            first: self.first,
            place: self.place.as_ref().map(Place::alias),
            mapping: self.mapping.alias(),
        }
    }

    /// Where the first page is.
    pub(crate) fn first(&self) -> *mut u8 {
        self.first
    }

    /// Where the file goes on after [`FIRST`] bytes.
    pub(crate) fn rest(&self) -> *mut u8 {
        let start = self.mapping.start();
        match self.place {
            Some(_) => start,
            None => start.wrapping_add(PAGE),
        }
    }
}

impl Drop for Parted {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.mapping.len() as u64, Ordering::Relaxed);
    }
}

/// How many bytes are mapped so.
pub(crate) fn parted_bytes() -> u64 {
    BYTES.load(Ordering::Relaxed)
}

static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: pages belong to the process, and not to a thread.
unsafe impl Send for Parted {}
// SAFETY: `&self` gives out numbers; who makes references of them argues for himself.
unsafe impl Sync for Parted {}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::mem::memfd;

    const LEN: usize = 3 * PAGE;

    fn file() -> File {
        File::from(memfd::create_as("parted", LEN).expect("memfd"))
    }

    /// Writes by `parted` what the file then has.
    fn check(file: &File, parted: &Parted) {
        for (at, place) in [
            (0, parted.first()),
            (PAGE - 1, parted.first().wrapping_add(PAGE - 1)),
            (PAGE, parted.rest()),
            (LEN - 1, parted.rest().wrapping_add(LEN - 1 - PAGE)),
        ] {
            let byte = (at % 251) as u8 + 1;
            // SAFETY: both parts are mapped to write, and as long as they are taken for here.
            unsafe { place.write_volatile(byte) };
            let mut found = [0];
            file.read_exact_at(&mut found, at as u64).expect("inside");
            assert_eq!(found, [byte], "at {at}");
        }
    }

    #[test]
    fn both_parts_are_the_files() {
        let file = file();
        let parted = Parted::shared(file.as_fd(), LEN).expect("memory");
        check(&file, &parted);
    }

    #[test]
    fn without_a_place_it_is_one_piece() {
        let file = file();
        let whole = Parted::with(None, file.as_fd(), LEN).expect("memory");
        assert_eq!(whole.rest(), whole.first().wrapping_add(PAGE));
        check(&file, &whole);
    }
}
