//! Memory that others may change under us, and copies into, out of and within it.

use std::{
    fmt,
    io::{self, ErrorKind},
    os::fd::{AsFd, OwnedFd},
    ptr,
};

use rustix::{
    mm::{Advice, madvise},
    param::page_size,
};

pub use access::OutOfRange;
pub use choice::{SAMPLE, StoreChoice};
pub use copy::{STREAM_MIN, Store, fetch, fetch_to_write};

pub(crate) use copy::{copy, prefetch, prefetch_to_write};
pub(crate) use lease::Lease;
pub(crate) use mapping::Mapping;
pub(crate) use parted::{FIRST, Parted, parted_bytes};

use lent::{Lent, Memfd};
use populate::populate;

mod access;
mod choice;
mod copy;
mod lease;
mod lent;
mod mapping;
pub(crate) mod memfd;
mod parted;
mod populate;
mod shelf;
#[cfg(all(test, not(loom)))]
mod tests;

/// A range of bytes that the CPU of this process may copy from and to.
///
/// A peer, another thread or a C caller may change the bytes at any time, so they are never lent out as a slice: every access
/// is a raw copy or an atomic, checked against the range in release builds too. What a copy sees of a concurrent write is
/// unspecified byte by byte; it is never more than that.
pub struct Memory {
    start: *mut u8,
    len: usize,
    writable: bool,
    backing: Backing,
}

impl Memory {
    /// Fresh zeroed memory of this process.
    ///
    /// # Errors
    /// `InvalidInput` if `len` is 0, else the kernel's.
    pub fn private(len: usize) -> io::Result<Self> {
        let mapping = Mapping::anonymous(capacity(len)?)?;
        Ok(Self {
            start: mapping.start(),
            len,
            writable: true,
            backing: Backing::Private { _mapping: mapping },
        })
    }

    /// Fresh zeroed memory that others can map, in a memfd whose size is sealed; in huge pages from 2 MiB up, if the system grants them.
    ///
    /// # Errors
    /// `InvalidInput` if `len` is 0, else the kernel's.
    pub fn shared(len: usize) -> io::Result<Self> {
        let memory = Self::sparse(len)?;
        if len >= HUGE_PAGE {
            memory.advise_huge();
        }
        Ok(memory)
    }

    /// As [`Memory::shared`], always in small pages, so that physical memory follows use.
    pub(crate) fn sparse(len: usize) -> io::Result<Self> {
        Self::map(memfd::create(capacity(len)?)?, len)
    }

    /// Maps the first `len` bytes of a peer's memfd.
    ///
    /// Its size is sealed and its pages are ordinary ones, so no access to it can raise SIGBUS, whatever the peer does.
    ///
    /// # Errors
    /// `InvalidData` if `fd` is not such a memfd or too small, `InvalidInput` if `len` is 0, else the kernel's.
    pub fn import(fd: OwnedFd, len: usize) -> io::Result<Self> {
        let size = memfd::sealed_size(fd.as_fd())?;
        capacity(len)?;
        if size < len as u64 {
            return Err(ErrorKind::InvalidData.into());
        }
        Self::map(fd, len)
    }

    /// Memory of the C caller, faulted in and found to be there. It is read-only if its pages are.
    ///
    /// # Errors
    /// `InvalidInput` if `len` is 0, the range wraps, or any page of it is not mapped or not readable.
    ///
    /// # Safety
    /// The range must stay mapped, with the protection it has now, until the value is dropped; and whoever holds
    /// references to these bytes must expect them to change (that is, they are a C program's).
    pub unsafe fn borrowed(addr: usize, len: usize) -> io::Result<Self> {
        let page = page_size();
        let first = addr & !(page - 1);
        let end = addr
            .checked_add(len)
            .and_then(|end| end.checked_next_multiple_of(page));
        let (Some(end), true) = (end, len > 0 && addr != 0) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let writable = populate(&(first..end)).ok_or(ErrorKind::InvalidInput)?;
        Ok(Self {
            start: ptr::with_exposed_provenance_mut(addr),
            len,
            writable,
            backing: Backing::Borrowed,
        })
    }

    /// The address of the first byte in this process.
    pub fn addr(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    /// How many bytes there are; never 0.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether bytes may be written.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// A duplicate of the memfd, to be sent to a peer.
    ///
    /// # Errors
    /// `Unsupported` if the memory is not shared, else the kernel's.
    pub fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        match &self.backing {
            Backing::Shared { memfd, .. } => memfd.lock().fd()?.duplicate(),
            Backing::Borrowed | Backing::Private { .. } => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// As [`Memory::try_clone_fd`], by somebody who takes it back by [`Memory::unshare`], after everybody who got it from him has been told: until then
    /// nobody else lends it, whose borrowers would not be.
    ///
    /// # Errors
    /// As [`Memory::try_clone_fd`]; `ResourceBusy` while another lends it.
    pub fn lend(&self, lender: u64) -> io::Result<OwnedFd> {
        let Backing::Shared { memfd, .. } = &self.backing else {
            return Err(ErrorKind::Unsupported.into());
        };
        memfd.lock().lend(lender)
    }

    /// Replaces the pages, at the same address, by fresh ones with the same contents, so that those who mapped the old memfd
    /// no longer reach this memory. [`Memory::try_clone_fd`] gives the new memfd from then on, which nobody [lends](Memory::lend) yet;
    /// where there was no descriptor or no room for one, there is none any more.
    ///
    /// What another thread writes while this runs may be lost, and a process that shares the mapping after `fork` keeps the old pages.
    ///
    /// # Errors
    /// `Unsupported` if the memory is not shared, else the kernel's, which has too little memory: some of it is as before then.
    pub fn unshare(&self) -> io::Result<()> {
        let Backing::Shared { mapping, memfd } = &self.backing else {
            return Err(ErrorKind::Unsupported.into());
        };
        let mut memfd = memfd.lock();
        *memfd = match Self::renew(mapping, &memfd) {
            Ok(fresh) => Memfd::new(fresh),
            Err(_) => {
                mapping.take_from_file()?;
                Memfd::none()
            }
        };
        Ok(())
    }

    /// A new memfd with what is in the old one, in its place.
    fn renew(mapping: &Mapping, old: &Memfd) -> io::Result<OwnedFd> {
        let fresh = memfd::create(mapping.len())?;
        let copied = Mapping::shared(fresh.as_fd(), mapping.len())?;
        for (start, end) in memfd::extents(old.fd()?.as_fd(), mapping.len()) {
            // SAFETY: `extents` yields ranges below the length of both mappings, which do not overlap.
            unsafe {
                copy(
                    copied.start().add(start),
                    mapping.start().add(start),
                    end - start,
                    Store::Own,
                )
            };
        }
        mapping.replace(fresh.as_fd())?;
        Ok(fresh)
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    fn map(fd: OwnedFd, len: usize) -> io::Result<Self> {
        let mapping = Mapping::shared(fd.as_fd(), capacity(len)?)?;
        Ok(Self {
            start: mapping.start(),
            len,
            writable: true,
            backing: Backing::Shared {
                mapping,
                memfd: Lent::new(fd),
            },
        })
    }

    fn advise_huge(&self) {
        // SAFETY: the range is a mapping of ours, and huge pages change nothing that can be seen. Refusal is harmless.
        let _ = unsafe { madvise(self.start.cast(), self.len, Advice::LinuxHugepage) };
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.backing {
            Backing::Borrowed => "borrowed",
            Backing::Private { .. } => "private",
            Backing::Shared { .. } => "shared",
        };
        write!(f, "Memory({kind} {:p}+{:#x})", self.start, self.len)
    }
}

// SAFETY: the pointer is to a mapping that lives as long as the value (its own, or by the contract of `borrowed`), and is not tied to a thread.
unsafe impl Send for Memory {}
// SAFETY: concurrent access through `&self` is by raw copies and atomics, for which racing is the documented use; `memfd` is behind a lock.
unsafe impl Sync for Memory {}

enum Backing {
    Borrowed,
    Private { _mapping: Mapping },
    Shared { mapping: Mapping, memfd: Lent },
}

/// `len` in whole pages.
fn capacity(len: usize) -> io::Result<usize> {
    match len.checked_next_multiple_of(page_size()) {
        Some(capacity) if len > 0 && isize::try_from(capacity).is_ok() => Ok(capacity),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

const HUGE_PAGE: usize = 2 << 20;
