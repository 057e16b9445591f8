//! The program's buffers.

use std::ffi::c_void;
use std::io::{IoSlice, IoSliceMut};

use libc::iovec;

/// One buffer to receive into.
///
/// # Safety
/// The program vouches for `len` bytes at `buffer`, as it does to the kernel.
#[inline]
pub(crate) unsafe fn room<'a>(buffer: *mut c_void, len: usize) -> IoSliceMut<'a> {
    if buffer.is_null() || len == 0 {
        return IoSliceMut::new(&mut []);
    }
    // SAFETY: by the contract; bytes have no invalid values, and nothing reads them before they are written.
    IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), len.min(MOST)) })
}

/// One buffer to send from.
///
/// # Safety
/// As [`room`].
#[inline]
pub(crate) unsafe fn bytes<'a>(buffer: *const c_void, len: usize) -> IoSlice<'a> {
    if buffer.is_null() || len == 0 {
        return IoSlice::new(&[]);
    }
    // SAFETY: by the contract.
    IoSlice::new(unsafe { std::slice::from_raw_parts(buffer.cast(), len.min(MOST)) })
}

/// The program's array of buffers to receive into: `IoSliceMut` has the layout of `iovec`. `None` for what the kernel should refuse.
///
/// # Safety
/// As [`room`], for each element and for the array, which is not written.
#[inline]
pub(crate) unsafe fn rooms<'a>(
    buffers: *const iovec,
    count: usize,
) -> Option<&'a mut [IoSliceMut<'a>]> {
    // SAFETY: by the contract.
    if !unsafe { is_sound(buffers, count) } {
        return None;
    }
    if count == 0 {
        return Some(&mut []);
    }
    // SAFETY: by the contract; std guarantees the layout, and `is_sound` saw no null pointer.
    Some(unsafe { std::slice::from_raw_parts_mut(buffers.cast_mut().cast(), count) })
}

/// The program's array of buffers to send from.
///
/// # Safety
/// As [`rooms`].
#[inline]
pub(crate) unsafe fn pieces<'a>(buffers: *const iovec, count: usize) -> Option<&'a [IoSlice<'a>]> {
    // SAFETY: by the contract.
    if !unsafe { is_sound(buffers, count) } {
        return None;
    }
    if count == 0 {
        return Some(&[]);
    }
    // SAFETY: as in `rooms`.
    Some(unsafe { std::slice::from_raw_parts(buffers.cast(), count) })
}

/// Whether the kernel would take the array: not too many, not too long, no null among them that is not empty (it would say EFAULT).
unsafe fn is_sound(buffers: *const iovec, count: usize) -> bool {
    if count > libc::UIO_MAXIOV as usize || (buffers.is_null() && count > 0) {
        return false;
    }
    let mut total = 0usize;
    (0..count).all(|index| {
        // SAFETY: by the contract of the callers there are `count` elements.
        let element = unsafe { &*buffers.add(index) };
        total = total.saturating_add(element.iov_len);
        total <= MOST && !element.iov_base.is_null()
    })
}

/// What one call moves at most (`MAX_RW_COUNT`).
const MOST: usize = 0x7fff_f000;
