//! `stdin`, `stdout` and `stderr` that are connections.

use std::ffi::{CStr, c_int};
use std::os::fd::RawFd;
use std::ptr;

use libc::FILE;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

use super::{carried, cplusplus, file, leave_to_kernel};
use crate::outcome::{connection, keeping_errno};
use crate::via_socket;

unsafe extern "C" {
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;

    fn __fpurge(stream: *mut FILE);
    fn clearerr_unlocked(stream: *mut FILE);
}

/// What descriptor `fd` is has changed: if it is a standard one, its stream follows.
#[inline]
pub(crate) fn changed(fd: RawFd) {
    if (0..3).contains(&fd) {
        keeping_errno(|| follow(fd, false));
    }
}

/// The program was started with these.
pub(crate) fn begin() {
    (0..3).for_each(|fd| keeping_errno(|| follow(fd, true)));
}

/// Whether that is a number of standard streams.
#[inline]
pub(crate) fn is(fd: RawFd) -> bool {
    (0..3).contains(&fd)
}

/// What a descriptor is is about to change.
#[inline]
pub(crate) fn before_change(fd: RawFd) {
    if is(fd) && original(fd).load(Ordering::Relaxed) != 0 && sockets::share::is_home() {
        keeping_errno(|| leave(fd));
    }
}

#[cold]
fn follow(fd: RawFd, since_the_start: bool) {
    let is_ours = original(fd).load(Ordering::Relaxed) != 0;
    if !sockets::share::is_home() {
        return;
    }
    if connection(fd).is_none() && !via_socket::is(fd) {
        if is_ours {
            leave(fd);
        }
        return;
    }
    if is_ours {
        return;
    }
    // SAFETY: the variable is the C library's, and the program may change it as well.
    unsafe {
        let variable = variable(fd);
        if cplusplus::hold_on(since_the_start) || carried::is_wide(*variable) {
            leave_to_kernel(fd);
            return;
        }
        let file = kept(fd, Buffering::of(*variable));
        if file.is_null() {
            leave_to_kernel(fd);
            return;
        }
        carried::carry(*variable, file);
        original(fd).store((*variable).addr() as u64, Ordering::Relaxed);
        (*variable).expose_provenance();
        *variable = file;
    }
}

/// The variable gets the C library's own stream back. Ours stays what it is, in case somebody has it.
#[cold]
fn leave(fd: RawFd) {
    let before = original(fd).swap(0, Ordering::Relaxed);
    if before != 0 {
        // SAFETY: as above; it is the address that was there, exposed then.
        unsafe {
            let variable = variable(fd);
            let ours = *variable;
            *variable = ptr::with_exposed_provenance_mut(before as usize);
            Buffering::of(ours).set(*variable);
            carried::carry(ours, *variable);
        }
    }
}

/// The program reopens one of these streams: what it gets instead.
pub(super) fn give_back(stream: *mut FILE) -> Option<*mut FILE> {
    let fd = standard_number(stream)?;
    keeping_errno(|| {
        // SAFETY: ours; what it cannot write now is lost, as natively.
        unsafe {
            libc::fflush(stream);
            __fpurge(stream);
        }
        leave(fd);
    });
    // SAFETY: as above.
    Some(unsafe { *variable(fd) })
}

/// The program closes one of these streams, which is not a variable's any more.
pub(super) fn forget(stream: *mut FILE) {
    if let Some(fd) = standard_number(stream) {
        let before = original(fd).swap(0, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { *variable(fd) = ptr::with_exposed_provenance_mut(before as usize) };
    }
    let_go(stream);
}

/// A stream is about to be something else, or to be no more: it is kept no longer.
pub(super) fn let_go(stream: *mut FILE) {
    let address = stream.addr() as u64;
    for place in KEPT.iter().flatten() {
        // One that is not kept is in no place.
        let _ = place.compare_exchange(address, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn standard_number(stream: *mut FILE) -> Option<c_int> {
    (0..3).find(|fd| {
        // SAFETY: as above.
        original(*fd).load(Ordering::Relaxed) != 0 && unsafe { *variable(*fd) } == stream
    })
}

/// The stream of ours for such a number; null if there can be none. There is one for each number, for whoever has it may go on using it; and one more
/// without a buffer, for a stream that has once lost its buffer gets none again.
///
/// # Safety
/// `fd` is a standard number.
unsafe fn kept(fd: RawFd, buffering: Buffering) -> *mut FILE {
    let is_unbuffered = buffering == Buffering::None;
    let place = &KEPT[fd.cast_unsigned() as usize % KEPT.len()][usize::from(is_unbuffered)];
    let address = place.load(Ordering::Relaxed);
    if address != 0 {
        let file = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: who closes it lets it go first; here and below.
        if (unsafe { Buffering::of(file) } == Buffering::None) == is_unbuffered {
            // SAFETY: as above.
            unsafe {
                if fd == 0 {
                    __fpurge(file);
                }
                clearerr_unlocked(file);
                buffering.set(file);
            }
            return file;
        }
        place.store(0, Ordering::Relaxed);
        file::forget(file);
    }
    let mode: &CStr = if fd == 0 { c"r" } else { c"w" };
    // SAFETY: a string; a stream that is new.
    unsafe {
        let file = file::open(fd, mode.as_ptr());
        if !file.is_null() {
            buffering.set(file);
            place.store(file.expose_provenance() as u64, Ordering::Relaxed);
        }
        file
    }
}

/// When a stream passes on what it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffering {
    None,
    ByLine,
    Full,
}

impl Buffering {
    /// The first word of a stream says it; that is in the C library's binary interface.
    ///
    /// # Safety
    /// Null, or a stream.
    pub(super) unsafe fn of(stream: *mut FILE) -> Self {
        // SAFETY: by the contract.
        let state = unsafe { stream.cast::<c_int>().as_ref() };
        match state {
            Some(state) if state & UNBUFFERED != 0 => Self::None,
            Some(state) if state & BY_LINE != 0 => Self::ByLine,
            _ => Self::Full,
        }
    }

    /// # Safety
    /// As [`Buffering::of`].
    pub(super) unsafe fn set(self, stream: *mut FILE) {
        // SAFETY: by the contract.
        unsafe {
            if !stream.is_null() && Self::of(stream) != self {
                let mode = match self {
                    Self::None => libc::_IONBF,
                    Self::ByLine => libc::_IOLBF,
                    Self::Full => libc::_IOFBF,
                };
                libc::setvbuf(stream, ptr::null_mut(), mode, 0);
            }
        }
    }
}

fn variable(fd: RawFd) -> *mut *mut FILE {
    match fd {
        0 => &raw mut stdin,
        1 => &raw mut stdout,
        _ => &raw mut stderr,
    }
}

fn original(fd: RawFd) -> &'static AtomicU64 {
    match fd {
        0 => &ORIGINALS[0],
        1 => &ORIGINALS[1],
        _ => &ORIGINALS[2],
    }
}

/// Of the C library's stream.
const UNBUFFERED: c_int = 2;
const BY_LINE: c_int = 0x200;
/// The C library's own streams, as addresses, where ours are in their place.
static ORIGINALS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Ours, as addresses, by number, with a buffer and without.
static KEPT: [[AtomicU64; 2]; 3] = [const { [const { AtomicU64::new(0) }; 2] }; 3];
