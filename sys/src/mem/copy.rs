//! Copies by plain and by streaming stores.

use std::ptr;

/// How a copy writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// As the C library does it, but where that is slow: right for memory that this core alone reads and writes.
    Own,
    /// Through the caches: right if this core, or one beside it, reads the bytes next.
    Plain,
    /// Past the caches: right from 4 KiB up if another core reads them, which plain stores make up to nine times slower
    /// where the cores do not share a cache.
    Streaming,
}

impl Store {
    /// What to use for `len` bytes that another core reads, by one who writes there too rarely to own a [`StoreChoice`](super::StoreChoice):
    /// wrong, streaming stores of 1 MiB are 1.8 times slower than plain ones (12.6 GB/s against 22.7), and plain ones up to nine times.
    pub const fn for_len(len: usize) -> Self {
        if len >= STREAM_MIN {
            Self::Streaming
        } else {
            Self::Plain
        }
    }
}

/// Copies `len` bytes; the ranges may overlap. Streaming stores are visible before any later store of this thread.
///
/// # Safety
/// Both ranges must be mapped and `to` writable. The bytes may be written by others at the same time: they are then read
/// as some mixture, which is why the callers never lend them out as references.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize, store: Store) {
    if len <= FEW_MAX {
        // SAFETY: the caller's contract.
        return unsafe { copy_few(to, from, len) };
    }
    let apart = to.addr().abs_diff(from.addr()) >= len;
    // SAFETY: the caller's contract; the ranges are apart where they must be, and `ptr::copy` allows overlap.
    unsafe {
        match store {
            // A streaming copy has a head, a tail and a fence to pay for; below this it cannot win.
            Store::Streaming if apart && len >= 4 * LINE => by_lines::<true>(to, from, len),
            Store::Plain if apart && len >= STREAM_MIN => by_lines::<false>(to, from, len),
            _ if apart && len >= MOVSB_MIN && is_close_in_page(to, from) => {
                by_lines::<false>(to, from, len);
            }
            _ => ptr::copy(from, to, len),
        }
    }
}

/// Whether the target begins so little after the source, but for their pages, that `rep movsb`, which `memcpy` uses, presumably takes loads for ones of what it has just stored:
/// on an AMD EPYC (Zen 4, glibc 2.36) it was measured to copy 3 to 4 GB/s then, and 50 to 100 otherwise.
#[inline]
fn is_close_in_page(to: *const u8, from: *const u8) -> bool {
    let after = to.addr().wrapping_sub(from.addr()) % 4096;
    after != 0 && after < 16
}

/// Copies up to [`FEW_MAX`] bytes, all of which are read before the first is written: in less time than the call of a function takes.
///
/// # Safety
/// As [`copy`].
#[inline]
unsafe fn copy_few(to: *mut u8, from: *const u8, len: usize) {
    /// As two pieces that have bytes in common, unless they are as long as both.
    ///
    /// # Safety
    /// As [`copy`], of at least as many bytes as a `T` has, and at most twice as many.
    #[inline(always)]
    unsafe fn in_two<T: Copy>(to: *mut u8, from: *const u8, len: usize) {
        let last = len - size_of::<T>();
        // SAFETY: both pieces lie in the range, as it is not shorter than one.
        unsafe {
            let pieces: (T, T) = (
                from.cast::<T>().read_unaligned(),
                from.add(last).cast::<T>().read_unaligned(),
            );
            to.cast::<T>().write_unaligned(pieces.0);
            to.add(last).cast::<T>().write_unaligned(pieces.1);
        }
    }
    // SAFETY: the caller's contract; each arm has at least the bytes of one piece, and at most those of two.
    unsafe {
        match len {
            0 => {}
            1 => in_two::<u8>(to, from, len),
            2..=3 => in_two::<u16>(to, from, len),
            4..=7 => in_two::<u32>(to, from, len),
            _ => in_two::<u64>(to, from, len),
        }
    }
}

/// Asks for the lines of a range that will be read, without waiting for them. A hint: any address will do.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch(from: *const u8, len: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    let mut at = 0;
    while at < len {
        // SAFETY: a prefetch changes nothing that can be seen and does not fault. SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast()) };
        at += LINE;
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch(_: *const u8, _: usize) {}

/// Asks for all lines of something, without waiting for them.
#[inline]
pub fn fetch<T>(what: &T) {
    prefetch(ptr::from_ref(what).cast(), size_of::<T>());
}

/// Takes all lines of something for writing, without waiting for them.
#[inline]
pub fn fetch_to_write<T>(what: &T) {
    prefetch_to_write(ptr::from_ref(what).cast_mut().cast(), size_of::<T>());
}

/// Takes the lines of a range for writing, without waiting for them. A hint: any address will do.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch_to_write(to: *const u8, len: usize) {
    let mut at = 0;
    while at < len {
        // `_mm_prefetch` compiles to PREFETCHT0, which takes the line to read only, unless the target is a newer one than x86-64.
        // SAFETY: PREFETCHW changes nothing that can be seen and does not fault; processors without it ignore it.
        unsafe {
            core::arch::asm!(
                "prefetchw byte ptr [{}]",
                in(reg) to.wrapping_add(at),
                options(readonly, nostack, preserves_flags),
            );
        }
        at += LINE;
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch_to_write(_: *const u8, _: usize) {}

/// Line by line, with streaming stores or with plain ones. These ask for each line before they come to it: the reader had it last, and where many are wanted at
/// once the wait for each is short. What `memcpy` uses, `rep movsb`, waits longer: pieces of 64 KiB pass at 18.5 GB/s, and with it at 13 where the reader is close
/// behind; there and back they take 15.5 us for 17.5.
///
/// # Safety
/// As [`copy`], of at least a line, and the ranges are apart.
#[cfg(target_arch = "x86_64")]
unsafe fn by_lines<const STREAMING: bool>(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{_mm_loadu_si128, _mm_sfence, _mm_store_si128, _mm_stream_si128};

    let head = to.addr().wrapping_neg() % LINE;
    let lines = (len - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: `head < LINE <= len`: the piece lies in the caller's ranges, which are apart.
    unsafe { ptr::copy_nonoverlapping(from, to, head) };
    for line in 0..lines {
        let at = head + line * LINE;
        if !STREAMING && at + AHEAD < tail {
            prefetch_to_write(to.wrapping_add(at + AHEAD), 1);
        }
        // SAFETY: `at + LINE <= tail <= len`, and `to + at` is aligned to a line. SSE2 is part of x86-64.
        unsafe {
            let (from, to) = (from.add(at).cast(), to.add(at).cast());
            let (a, b) = (_mm_loadu_si128(from), _mm_loadu_si128(from.add(1)));
            let (c, d) = (_mm_loadu_si128(from.add(2)), _mm_loadu_si128(from.add(3)));
            if STREAMING {
                _mm_stream_si128(to, a);
                _mm_stream_si128(to.add(1), b);
                _mm_stream_si128(to.add(2), c);
                _mm_stream_si128(to.add(3), d);
            } else {
                _mm_store_si128(to, a);
                _mm_store_si128(to.add(1), b);
                _mm_store_si128(to.add(2), c);
                _mm_store_si128(to.add(3), d);
                // Else the compiler knows the loop again, and calls `memcpy`.
                core::arch::asm!("", options(nostack, preserves_flags));
            }
        }
    }
    // Last, so that a region fills from the front, as the target of an RDMA write may watch.
    // SAFETY: `tail <= len`, as above.
    unsafe { ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail) };
    if STREAMING {
        // Streaming stores are weakly ordered: without this a later release store could be seen before them.
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn by_lines<const STREAMING: bool>(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's contract; the ranges are apart.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
}

/// How far ahead of the store a line is asked for: 512 to 4096 B do about the same.
const AHEAD: usize = 1024;

/// Bytes that are copied without a call.
const FEW_MAX: usize = 16;

/// The shortest piece for another core that is written with streaming stores, or line by line.
pub const STREAM_MIN: usize = 4096;

/// `memcpy` begins to use `rep movsb` no sooner.
const MOVSB_MIN: usize = 2048;

/// A cache line, which streaming stores must fill as a whole to be cheap.
const LINE: usize = 64;
