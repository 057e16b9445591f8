//! Access to memory: raw copies and atomics, each checked against the range.

use std::{error, fmt, mem::align_of};

use super::{Memory, Store, copy, prefetch_to_write};
use crate::sync::{
    Ordering,
    mapped::{AtomicU32, AtomicU64},
};

impl Memory {
    /// Copies `into.len()` bytes out.
    ///
    /// # Errors
    /// If they do not all lie in the memory.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.range(offset, into.len())?;
        // SAFETY: `range` checked the source; the target is a slice.
        unsafe { copy(into.as_mut_ptr(), from, into.len(), Store::Own) };
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
        unsafe { copy(words.as_mut_ptr().cast(), from, len, Store::Own) };
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

    /// Asks for lines that will be written at once, so that they come together and not one after the other. What lies outside is left out.
    #[inline]
    pub(crate) fn prefetch_to_write(&self, offset: usize, len: usize) {
        if let Ok(to) = self.range_mut(offset, len) {
            prefetch_to_write(to, len);
        }
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

/// The access is not wholly within the memory, is misaligned, or would write to read-only memory. Nothing was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outside the memory, misaligned, or read-only")
    }
}

impl error::Error for OutOfRange {}
