//! Memory that others may change under us, and copies into, out of and within it.

use std::{
    error, fmt,
    io::{self, ErrorKind},
    mem::align_of,
    os::fd::{AsFd, OwnedFd},
    ptr,
};

use rustix::{
    mm::{Advice, madvise},
    param::page_size,
};

use crate::sync::{
    Ordering,
    mapped::{AtomicU32, AtomicU64},
};

pub use choice::{SAMPLE, StoreChoice};
pub use copy::{STREAM_MIN, Store};

pub(crate) use copy::{copy, prefetch, prefetch_to_write};
pub(crate) use lease::Lease;
pub(crate) use mapping::Mapping;

use lent::{Lent, Memfd};

mod choice;
mod copy;
mod lease;
mod lent;
mod mapping;
pub(crate) mod memfd;
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
        let populate = |advice| loop {
            // SAFETY: populating only faults pages in; it changes no contents and fails on what is not mapped.
            match unsafe { madvise(ptr::with_exposed_provenance_mut(first), end - first, advice) } {
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                result => return result,
            }
        };
        let writable = populate(Advice::LinuxPopulateWrite).is_ok();
        if !writable && populate(Advice::LinuxPopulateRead).is_err() {
            return Err(ErrorKind::InvalidInput.into());
        }
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
            Backing::Shared { memfd, .. } => memfd.lock().fd.duplicate(),
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

    /// Copies `into.len()` bytes out.
    ///
    /// # Errors
    /// If they do not all lie in the memory.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.range(offset, into.len())?;
        // SAFETY: `range` checked the source; the target is a slice.
        unsafe { copy(into.as_mut_ptr(), from, into.len(), Store::Plain) };
        Ok(())
    }

    /// Adds `len` bytes to a checksum, where they lie.
    ///
    /// # Errors
    /// If they do not all lie in the memory.
    #[inline]
    pub fn digest(
        &self,
        offset: usize,
        len: usize,
        digest: &mut crc_fast::Digest,
    ) -> Result<(), OutOfRange> {
        let from = self.range(offset, len)?;
        // SAFETY: `range` checked the bytes, and the borrow ends with the call. Others may write meanwhile, as during `read`: a checksum
        // loads each byte and decides nothing by it, so it is then that of some mixture, and no more than that.
        digest.update(unsafe { std::slice::from_raw_parts(from, len) });
        Ok(())
    }

    /// Copies `from` in, with plain stores.
    ///
    /// # Errors
    /// If it does not all fit into the memory, or the memory is read-only.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfRange> {
        self.write_with(offset, from, Store::Plain)
    }

    /// As [`Memory::write`], with the stores asked for.
    ///
    /// # Errors
    /// As [`Memory::write`].
    #[inline]
    pub fn write_with(&self, offset: usize, from: &[u8], store: Store) -> Result<(), OutOfRange> {
        let to = self.range_mut(offset, from.len())?;
        // SAFETY: `range_mut` checked the target; the source is a slice.
        unsafe { copy(to, from.as_ptr(), from.len(), store) };
        Ok(())
    }

    /// Copies out up to 16 bytes, into as many of the two words as they fill, the first in the first word.
    ///
    /// # Errors
    /// If they are more, or do not all lie in the memory.
    #[inline]
    pub fn read_short(&self, offset: usize, len: usize) -> Result<[u64; 2], OutOfRange> {
        let from = self.range(offset, len)?;
        if len == size_of::<u64>() {
            // Most are, and stay in a register.
            // SAFETY: `range` checked the source.
            return Ok([unsafe { from.cast::<u64>().read_unaligned() }, 0]);
        }
        let mut words = [0; 2];
        if len > size_of_val(&words) {
            return Err(OutOfRange);
        }
        // SAFETY: `range` checked the source; the target is as long.
        unsafe { copy(words.as_mut_ptr().cast(), from, len, Store::Plain) };
        Ok(words)
    }

    /// Copies in the first `len` bytes of the two words.
    ///
    /// # Errors
    /// If there are not as many, they do not all fit into the memory, or it is read-only.
    #[inline]
    pub fn write_short(
        &self,
        offset: usize,
        words: [u64; 2],
        len: usize,
    ) -> Result<(), OutOfRange> {
        let to = self.range_mut(offset, len)?;
        if len == size_of::<u64>() {
            // SAFETY: `range_mut` checked the target.
            unsafe { to.cast::<u64>().write_unaligned(words[0]) };
            return Ok(());
        }
        if len > size_of_val(&words) {
            return Err(OutOfRange);
        }
        // SAFETY: `range_mut` checked the target; the source is as long.
        unsafe { copy(to, words.as_ptr().cast(), len, Store::Plain) };
        Ok(())
    }

    /// Copies between two memories, or within one: the ranges may overlap.
    ///
    /// # Errors
    /// If a range does not lie in its memory, or the target is read-only. Nothing is copied then.
    #[inline]
    pub fn copy(
        to: &Self,
        to_offset: usize,
        from: &Self,
        from_offset: usize,
        len: usize,
        store: Store,
    ) -> Result<(), OutOfRange> {
        let source = from.range(from_offset, len)?;
        let target = to.range_mut(to_offset, len)?;
        // SAFETY: both ranges were checked.
        unsafe { copy(target, source, len, store) };
        Ok(())
    }

    /// Loads an aligned 32-bit word.
    ///
    /// # Errors
    /// If it is misaligned or outside.
    ///
    /// # Panics
    /// If `order` is not one for loads.
    #[inline]
    pub fn load_u32(&self, offset: usize, order: Ordering) -> Result<u32, OutOfRange> {
        let word: *mut AtomicU32 = self.aligned(offset)?;
        // SAFETY: `aligned` checked range and alignment; the mapping outlives the call, and an atomic load may race.
        Ok(unsafe { &*word }.load(order))
    }

    /// Stores an aligned 32-bit word.
    ///
    /// # Errors
    /// If it is misaligned, outside or read-only.
    ///
    /// # Panics
    /// If `order` is not one for stores.
    #[inline]
    pub fn store_u32(&self, offset: usize, value: u32, order: Ordering) -> Result<(), OutOfRange> {
        self.range_mut(offset, 0)?;
        let word: *mut AtomicU32 = self.aligned(offset)?;
        // SAFETY: as in `load_u32`; `range_mut` checked that the memory is writable.
        unsafe { &*word }.store(value, order);
        Ok(())
    }

    /// Loads an aligned 64-bit word.
    ///
    /// # Errors
    /// If it is misaligned or outside.
    ///
    /// # Panics
    /// If `order` is not one for loads.
    #[inline]
    pub fn load_u64(&self, offset: usize, order: Ordering) -> Result<u64, OutOfRange> {
        let word: *mut AtomicU64 = self.aligned(offset)?;
        // SAFETY: as in `load_u32`.
        Ok(unsafe { &*word }.load(order))
    }

    /// Stores an aligned 64-bit word.
    ///
    /// # Errors
    /// If it is misaligned, outside or read-only.
    ///
    /// # Panics
    /// If `order` is not one for stores.
    #[inline]
    pub fn store_u64(&self, offset: usize, value: u64, order: Ordering) -> Result<(), OutOfRange> {
        self.range_mut(offset, 0)?;
        let word: *mut AtomicU64 = self.aligned(offset)?;
        // SAFETY: as in `store_u32`.
        unsafe { &*word }.store(value, order);
        Ok(())
    }

    /// Replaces the pages, at the same address, by fresh ones with the same contents, so that those who mapped the old memfd
    /// no longer reach this memory. [`Memory::try_clone_fd`] gives the new memfd from then on, which nobody [lends](Memory::lend) yet.
    ///
    /// What another thread writes while this runs may be lost, and a process that shares the mapping after `fork` keeps the old pages.
    ///
    /// # Errors
    /// `Unsupported` if the memory is not shared, else the kernel's; nothing has changed then.
    pub fn unshare(&self) -> io::Result<()> {
        let Backing::Shared { mapping, memfd } = &self.backing else {
            return Err(ErrorKind::Unsupported.into());
        };
        let mut memfd = memfd.lock();
        let fresh = memfd::create(mapping.len())?;
        let copied = Mapping::shared(fresh.as_fd(), mapping.len())?;
        for (start, end) in memfd::extents(memfd.fd.as_fd(), mapping.len()) {
            // SAFETY: `extents` yields ranges below the length of both mappings, which do not overlap.
            unsafe {
                copy(
                    copied.start().add(start),
                    mapping.start().add(start),
                    end - start,
                    Store::Plain,
                )
            };
        }
        mapping.replace(fresh.as_fd())?;
        *memfd = Memfd::new(fresh);
        Ok(())
    }

    /// Asks for lines that will be written at once, so that they come together and not one after the other. What lies outside is left out.
    #[inline]
    pub(crate) fn prefetch_to_write(&self, offset: usize, len: usize) {
        if let Ok(to) = self.range_mut(offset, len) {
            prefetch_to_write(to, len);
        }
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

    #[inline]
    fn range(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfRange> {
        if offset > self.len || len > self.len - offset {
            return Err(OutOfRange);
        }
        Ok(self.start.wrapping_add(offset))
    }

    #[inline]
    fn range_mut(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfRange> {
        if self.writable {
            self.range(offset, len)
        } else {
            Err(OutOfRange)
        }
    }

    #[inline]
    fn aligned<T>(&self, offset: usize) -> Result<*mut T, OutOfRange> {
        let word = self.range(offset, size_of::<T>())?.cast::<T>();
        if word.addr().is_multiple_of(align_of::<T>()) {
            Ok(word)
        } else {
            Err(OutOfRange)
        }
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

/// The access is not wholly within the memory, is misaligned, or would write to read-only memory. Nothing was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outside the memory, misaligned, or read-only")
    }
}

impl error::Error for OutOfRange {}

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
