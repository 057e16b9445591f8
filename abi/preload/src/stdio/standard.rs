//! `stdin`, `stdout` and `stderr` that are connections.

use std::ffi::{CStr, c_int};
use std::os::fd::RawFd;

use libc::FILE;
use sockets::handover::go_back;
use sockets::reason::Reason;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

use super::file;
use crate::outcome::{connection, keeping_errno};
use crate::via_socket;

unsafe extern "C" {
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
}

/// What descriptor `fd` is has changed: if it is a standard one, its stream follows.
#[inline]
pub(crate) fn changed(fd: RawFd) {
    if (0..3).contains(&fd) {
        keeping_errno(|| follow(fd));
    }
}

/// Whether that is a number of standard streams.
#[inline]
pub(crate) fn is(fd: RawFd) -> bool {
    (0..3).contains(&fd)
}

/// What a descriptor is is about to change: what is in the stream's buffer goes where the program thinks.
#[inline]
pub(crate) fn before_change(fd: RawFd) {
    if is(fd) && original(fd).load(Ordering::Relaxed) != 0 && sockets::share::is_home() {
        keeping_errno(|| leave(fd));
    }
}

#[cold]
fn follow(fd: RawFd) {
    let is_ours = original(fd).load(Ordering::Relaxed) != 0;
    if !sockets::share::is_home() {
        return;
    }
    let known = connection(fd);
    if known.is_none() && !via_socket::is(fd) {
        if is_ours {
            leave(fd);
        }
        return;
    }
    if is_ours {
        return;
    }
    let mode: &CStr = if fd == 0 { c"r" } else { c"w" };
    // SAFETY: a string; the variable is the C library's, and the program may change it as well.
    unsafe {
        let variable = variable(fd);
        if fd != 0 {
            libc::fflush(*variable);
        }
        let file = file::open(fd, mode.as_ptr());
        if file.is_null() {
            if let Some((conn, borrowed)) = known {
                go_back(conn, borrowed, Reason::Stdio);
            }
            return;
        }
        if fd == 2 {
            libc::setvbuf(file, std::ptr::null_mut(), libc::_IONBF, 0);
        }
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
            if fd != 0 {
                libc::fflush(ours);
            }
            *variable = std::ptr::with_exposed_provenance_mut(before as usize);
            file::forget(ours);
        }
    }
}

/// The program reopens one of these streams: what it gets instead.
pub(super) fn give_back(stream: *mut FILE) -> Option<*mut FILE> {
    let fd = standard_number(stream)?;
    keeping_errno(|| leave(fd));
    // SAFETY: as above.
    Some(unsafe { *variable(fd) })
}

/// The program closes one of these streams, which is not a variable's any more.
pub(super) fn forget(stream: *mut FILE) {
    if let Some(fd) = standard_number(stream) {
        let before = original(fd).swap(0, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { *variable(fd) = std::ptr::with_exposed_provenance_mut(before as usize) };
    }
}

fn standard_number(stream: *mut FILE) -> Option<c_int> {
    (0..3).find(|fd| {
        // SAFETY: as above.
        original(*fd).load(Ordering::Relaxed) != 0 && unsafe { *variable(*fd) } == stream
    })
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

/// The C library's own streams, as addresses, where ours are in their place.
static ORIGINALS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
