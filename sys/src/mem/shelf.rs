//! Where the first pages of shared files are mapped: side by side.
//!
//! Of a file that is mapped in one piece the first page has a table of page entries to itself, and with thousands of files each of those tables is as far away as the
//! page. Side by side eight pages have their entries in one line of the processor's, and 512 in one table.

use std::{io, os::fd::BorrowedFd, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

use crate::sync::mapped::AtomicU64;
use crate::sync::{AtomicPtr, Ordering};

/// A page of this process's address space for the first page of a file; given back when dropped.
pub(super) struct Place {
    shelf: &'static Shelf,
    at: usize,
}

/// As many places as one table of page entries has. Nothing here waits or allocates, for it may be done in a signal handler.
struct Shelf {
    /// Null if there is none yet.
    start: AtomicPtr<u8>,
    /// Which places are taken.
    taken: [AtomicU64; PLACES / 64],
}

impl Place {
    /// A place at which the first page of `fd` is mapped; `None` if there is none, or the kernel refuses.
    pub(super) fn map(fd: BorrowedFd<'_>) -> Option<Self> {
        if page_size() != PAGE {
            return None;
        }
        let place = SHELVES.iter().find_map(Shelf::take)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: MAP_FIXED covers the one page that this value has to itself, of memory that nobody uses.
        unsafe { mmap(place.start().cast(), PAGE, READ_WRITE, flags, fd, 0) }.ok()?;
        Some(place)
    }

    pub(super) fn start(&self) -> *mut u8 {
        let start = self.shelf.start.load(Ordering::Relaxed);
        start.wrapping_add(self.at * PAGE)
    }

    /// The same once more: only one of the two may be dropped.
    pub(super) fn alias(&self) -> Self {
        Self {
            shelf: self.shelf,
            at: self.at,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: as in `map`; whoever had the place has forgotten it.
        let emptied =
            unsafe { mmap_anonymous(self.start().cast(), PAGE, ProtFlags::empty(), flags) };
        // One that the kernel does not empty is used no more.
        if emptied.is_ok()
            && let Some(word) = self.shelf.taken.get(self.at / 64)
        {
            // Release: emptied before it is somebody else's.
            word.fetch_and(!(1 << (self.at % 64)), Ordering::Release);
        }
    }
}

impl Shelf {
    const fn new() -> Self {
        Self {
            start: AtomicPtr::new(ptr::null_mut()),
            taken: [const { AtomicU64::new(0) }; PLACES / 64],
        }
    }

    fn take(&'static self) -> Option<Place> {
        for (nth, word) in self.taken.iter().enumerate() {
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = (!taken).trailing_zeros() as usize;
                // Acquire pairs with the release in `drop`.
                match word.compare_exchange(
                    taken,
                    taken | 1 << bit,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) if self.is_there() => {
                        return Some(Place {
                            shelf: self,
                            at: nth * 64 + bit,
                        });
                    }
                    Ok(_) => {
                        word.fetch_and(!(1 << bit), Ordering::Relaxed);
                        return None;
                    }
                    Err(now) => taken = now,
                }
            }
        }
        None
    }

    /// Reserves the places' memory, unless somebody has.
    fn is_there(&self) -> bool {
        if !self.start.load(Ordering::Acquire).is_null() {
            return true;
        }
        let Ok(start) = reserve() else {
            return false;
        };
        let first = self.start.compare_exchange(
            ptr::null_mut(),
            start,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if first.is_err() {
            // SAFETY: memory that nobody else knows of.
            let _ = unsafe { munmap(start.cast(), LEN) };
        }
        true
    }
}

/// Memory that one table of page entries maps, as long as it is not used for anything.
fn reserve() -> io::Result<*mut u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory that anyone uses.
    let whole = unsafe { mmap_anonymous(ptr::null_mut(), 2 * LEN, ProtFlags::empty(), flags) }?
        .cast::<u8>();
    let before = whole.addr().wrapping_neg() % LEN;
    let start = whole.wrapping_add(before);
    // SAFETY: the two ends of what has just been mapped; `start` and LEN bytes after it lie between them.
    unsafe {
        if before != 0 {
            let _ = munmap(whole.cast(), before);
        }
        let _ = munmap(start.wrapping_add(LEN).cast(), LEN - before);
    }
    Ok(start)
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// What lies apart. Processors with other pages have it in one piece.
pub(super) const PAGE: usize = 4096;
const PLACES: usize = 512;
const LEN: usize = PLACES * PAGE;
/// Each file has two mappings instead of one, of which a process may have 65,530.
static SHELVES: [Shelf; 32] = [const { Shelf::new() }; 32];

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::read_to_string;
    use std::os::fd::AsFd;

    use super::*;
    use crate::mem::memfd;

    fn addresses(places: &[Place]) -> BTreeSet<usize> {
        places.iter().map(|place| place.start().addr()).collect()
    }

    /// All places that there are in `shelves`.
    fn take_all(shelves: &'static [Shelf]) -> Vec<Place> {
        std::iter::from_fn(|| shelves.iter().find_map(Shelf::take)).collect()
    }

    #[test]
    fn they_lie_side_by_side_and_are_used_again() {
        static TWO: [Shelf; 2] = [const { Shelf::new() }; 2];
        let mut places = take_all(&TWO);
        let all = addresses(&places);
        assert_eq!((places.len(), all.len()), (2 * PLACES, 2 * PLACES));
        for shelf in &TWO {
            let start = shelf.start.load(Ordering::Relaxed).addr();
            assert_eq!(start % LEN, 0);
            assert_eq!(all.range(start..start + LEN).count(), PLACES);
        }
        assert!(take_all(&TWO).is_empty());
        let freed = places.split_off(PLACES - 3);
        let again = addresses(&freed);
        drop(freed);
        assert_eq!(addresses(&take_all(&TWO)), again);
    }

    #[test]
    fn nothing_is_left_of_the_file_at_a_place_that_is_free() {
        let memory = memfd::create_as("shelf-left", PAGE).expect("memfd");
        let name = "/memfd:shelf-left";
        let count = || {
            let maps = read_to_string("/proc/self/maps").expect("/proc");
            maps.lines().filter(|line| line.contains(name)).count()
        };
        let (first, second) = (Place::map(memory.as_fd()), Place::map(memory.as_fd()));
        assert!(first.is_some() && second.is_some() && count() > 0);
        drop(first);
        assert_eq!(count(), 1);
        drop(second);
        assert_eq!(count(), 0);
    }

    #[test]
    fn threads_share_them() {
        static ONE: [Shelf; 1] = [Shelf::new()];
        let taken: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| take_all(&ONE))).collect();
            let taken = threads.into_iter().map(|one| one.join().expect("no panic"));
            taken.flatten().collect()
        });
        assert_eq!(addresses(&taken).len(), PLACES);
        assert_eq!(taken.len(), PLACES);
    }
}
