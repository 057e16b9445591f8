//! The program's buffers.
//!
//! Where the kernel would say `EFAULT` a copy of ours ends the program. What is plainly no memory, as a null pointer and its neighbours, is found here;
//! all else would cost each call a question to the kernel.

use std::ffi::c_void;
use std::io::{IoSlice, IoSliceMut};
use std::ptr;

use libc::iovec;

/// What the program asked for, beside the buffers that can be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Bytes in all.
    pub len: usize,
    /// After the buffers comes one that is no memory.
    pub fault: bool,
}

impl Asked {
    /// One buffer.
    #[inline]
    pub(crate) fn one(buffer: *const c_void, len: usize) -> Self {
        Self {
            len: len.min(MOST),
            fault: len != 0 && !is_memory(buffer),
        }
    }
}

/// One buffer to receive into.
///
/// # Safety
/// The program vouches for `len` bytes at `buffer`, as it does to the kernel.
#[inline]
pub(crate) unsafe fn room<'a>(buffer: *mut c_void, len: usize) -> IoSliceMut<'a> {
    if len == 0 || !is_memory(buffer) {
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
    if len == 0 || !is_memory(buffer) {
        return IoSlice::new(&[]);
    }
    // SAFETY: by the contract.
    IoSlice::new(unsafe { std::slice::from_raw_parts(buffer.cast(), len.min(MOST)) })
}

/// Calls `act` with the program's array of buffers to receive into: `IoSliceMut` has the layout of `iovec`. `None` for what the kernel should refuse.
///
/// # Safety
/// As [`room`], for each element and for the array, which is not written.
#[inline]
pub(crate) unsafe fn with_rooms<R>(
    buffers: *const iovec,
    count: usize,
    act: impl FnOnce(&mut [IoSliceMut<'_>], Asked) -> R,
) -> Option<R> {
    // SAFETY: by the contract.
    match unsafe { Array::of(buffers, count) } {
        Array::Refused => None,
        Array::Sound(_) if count == 0 => Some(act(&mut [], NOTHING)),
        Array::Sound(asked) => {
            // SAFETY: by the contract; std guarantees the layout, and there is no null pointer.
            let rooms = unsafe { std::slice::from_raw_parts_mut(buffers.cast_mut().cast(), count) };
            Some(act(rooms, asked))
        }
        // SAFETY: as above.
        Array::Odd => unsafe {
            mended(buffers, count, |copy, asked| {
                act(
                    std::slice::from_raw_parts_mut(copy.as_mut_ptr().cast(), copy.len()),
                    asked,
                )
            })
        },
    }
}

/// Calls `act` with the program's array of buffers to send from.
///
/// # Safety
/// As [`with_rooms`].
#[inline]
pub(crate) unsafe fn with_pieces<R>(
    buffers: *const iovec,
    count: usize,
    act: impl FnOnce(&[IoSlice<'_>], Asked) -> R,
) -> Option<R> {
    // SAFETY: by the contract.
    match unsafe { Array::of(buffers, count) } {
        Array::Refused => None,
        Array::Sound(_) if count == 0 => Some(act(&[], NOTHING)),
        Array::Sound(asked) => {
            // SAFETY: as in `with_rooms`.
            let pieces = unsafe { std::slice::from_raw_parts(buffers.cast(), count) };
            Some(act(pieces, asked))
        }
        // SAFETY: as above.
        Array::Odd => unsafe {
            mended(buffers, count, |copy, asked| {
                // The kernel copies several in one go, and none of them if one cannot be read.
                let sound = if asked.fault { 0 } else { copy.len() };
                act(
                    std::slice::from_raw_parts(copy.as_ptr().cast(), sound),
                    asked,
                )
            })
        },
    }
}

/// Whether a pointer may lead to memory of a program: nothing is mapped in the first page, nor in the last.
#[inline]
pub(crate) fn is_memory<T>(pointer: *const T) -> bool {
    (PAGE..usize::MAX - PAGE).contains(&pointer.addr())
}

/// Whether `read` and `write` find that the end of a buffer is not the program's, and say `EFAULT`: -1 for a length, say, which another call has returned.
/// `recv` and `send` cut it.
#[inline]
pub(crate) fn is_beyond(buffer: *const c_void, len: usize) -> bool {
    (len | buffer.addr().wrapping_add(len)).cast_signed() < 0
}

/// How an array of buffers is.
enum Array {
    /// It can be used as it is.
    Sound(Asked),
    /// Some element is null, or no memory, or too much.
    Odd,
    /// The kernel says what is wrong, before it looks at the socket.
    Refused,
}

impl Array {
    #[inline]
    unsafe fn of(buffers: *const iovec, count: usize) -> Self {
        if count > ELEMENTS_MAX || (count > 0 && !is_memory(buffers)) {
            return Self::Refused;
        }
        let mut len = 0usize;
        let mut sound = true;
        for index in 0..count {
            // SAFETY: by the contract of the callers there are `count` elements.
            let element = unsafe { &*buffers.add(index) };
            if element.iov_len.cast_signed() < 0 {
                return Self::Refused;
            }
            len = len.saturating_add(element.iov_len);
            sound &= is_memory(element.iov_base);
        }
        if sound && len <= MOST {
            Self::Sound(Asked { len, fault: false })
        } else {
            Self::Odd
        }
    }
}

/// Calls `act` with a copy of an array that leaves out what is empty, and ends where the kernel would.
///
/// The copy is not on the heap, for a signal handler may be sending; and a long one not on the stack, of which a thread may have no more than 16 KiB.
#[cold]
#[inline(never)]
unsafe fn mended<R>(
    buffers: *const iovec,
    count: usize,
    act: impl FnOnce(&mut [iovec], Asked) -> R,
) -> Option<R> {
    // SAFETY: by the contract of the callers, here and below.
    unsafe {
        if count <= FEW {
            return mend(buffers, count, &mut [EMPTY; FEW], act);
        }
        match Pages::new() {
            Some(mut pages) => mend(buffers, count, pages.elements(), act),
            None => mended_on_the_stack(buffers, count, act),
        }
    }
}

/// Where there is no memory to be had.
#[inline(never)]
unsafe fn mended_on_the_stack<R>(
    buffers: *const iovec,
    count: usize,
    act: impl FnOnce(&mut [iovec], Asked) -> R,
) -> Option<R> {
    // SAFETY: by the contract of the callers.
    unsafe { mend(buffers, count, &mut [EMPTY; ELEMENTS_MAX], act) }
}

#[inline]
unsafe fn mend<R>(
    buffers: *const iovec,
    count: usize,
    copy: &mut [iovec],
    act: impl FnOnce(&mut [iovec], Asked) -> R,
) -> Option<R> {
    let mut asked = NOTHING;
    let mut used = 0;
    for index in 0..count {
        // SAFETY: by the contract of the callers there are `count` elements.
        let mut element = unsafe { *buffers.add(index) };
        element.iov_len = element.iov_len.min(MOST - asked.len);
        if element.iov_len == 0 {
            continue;
        }
        asked.len += element.iov_len;
        asked.fault |= !is_memory(element.iov_base);
        if !asked.fault {
            *copy.get_mut(used)? = element;
            used += 1;
        }
    }
    copy.get_mut(..used).map(|copy| act(copy, asked))
}

/// Room for an array of any length, of the kernel's.
struct Pages(*mut iovec);

impl Pages {
    fn new() -> Option<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: new memory, wherever there is some.
        let start = unsafe { libc::mmap(ptr::null_mut(), PAGES_LEN, access, kind, -1, 0) };
        (start != libc::MAP_FAILED).then_some(Self(start.cast()))
    }

    fn elements(&mut self) -> &mut [iovec] {
        // SAFETY: so much was mapped, for `self` alone, and zeros are null pointers and lengths.
        unsafe { std::slice::from_raw_parts_mut(self.0, ELEMENTS_MAX) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and borrowed by nobody any more.
        unsafe { libc::munmap(self.0.cast(), PAGES_LEN) };
    }
}

const NOTHING: Asked = Asked {
    len: 0,
    fault: false,
};
const EMPTY: iovec = iovec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};
/// So many are copied to the stack: 1 KiB.
const FEW: usize = 64;
const PAGES_LEN: usize = ELEMENTS_MAX * size_of::<iovec>();
/// `UIO_MAXIOV`.
const ELEMENTS_MAX: usize = libc::UIO_MAXIOV as usize;
/// What one call moves at most (`MAX_RW_COUNT`).
const MOST: usize = 0x7fff_f000;
const PAGE: usize = 4096;
