//! stdio on sockets.
//!
//! The C library's stdio reads and writes by calls of its own, which nobody sees. So a `FILE` on a connection is made of a cookie, whose
//! functions are ours (`stdio::file`); where `stdin`, `stdout` or `stderr` is a connection, from the start or by `dup2`, the variable gets such a
//! `FILE` ([`standard`]). Where there cannot be one, the connection goes back to TCP.

use std::ffi::{c_char, c_int, c_void};

use libc::{FILE, size_t};
use sockets::ends;
use sockets::handover::go_back;
use sockets::reason::Reason;
use sockets::{share, table};
use sys::errno::Errno;
use sys::socket;

use crate::outcome::{borrow, connection, errno, fail, keeping_errno};
use crate::{extended, real, via_socket};

mod carried;
mod cplusplus;
mod file;
pub(crate) mod native;
mod print;
pub(crate) mod standard;

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    let is_ours = extended::is(fd) || connection(fd).is_some() || via_socket::is(fd);
    if is_ours || keeping_errno(|| may_be_connected_later(fd)) {
        // SAFETY: the program's string, here and below.
        let file = unsafe { file::open(fd, mode) };
        if !file.is_null() {
            return file;
        }
        keeping_errno(|| leave_to_kernel(fd));
    }
    // SAFETY: the program's own call.
    unsafe { real::fdopen(fd, mode) }
}

/// A descriptor has been put at a number of the program's choice, which one of the C library's own streams may have.
#[inline]
pub(crate) fn put_at(fd: c_int) {
    if fd > 2 && (via_socket::is(fd) || table::known(fd).is_some()) {
        keeping_errno(|| leave_to_native(fd));
    }
}

#[cold]
fn leave_to_native(fd: c_int) {
    if share::is_home() && native::is_at(fd) {
        leave_to_kernel(fd);
    }
}

/// From now on others than our calls may move its bytes.
fn leave_to_kernel(fd: c_int) {
    match connection(fd) {
        Some((conn, borrowed)) => {
            go_back(conn, borrowed, Reason::Stdio);
        }
        None => via_socket::share(fd),
    }
}

/// Nobody sees the C library's own stream then.
fn may_be_connected_later(fd: c_int) -> bool {
    !table::is_retired()
        && borrow(fd).is_some_and(|fd| socket::is_tcp(fd) && !socket::is_connected(fd))
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fileno(stream: *mut FILE) -> c_int {
    match file::number(stream) {
        Some(fd) => fd,
        // SAFETY: the program's own call.
        None => unsafe { real::fileno(stream) },
    }
}

/// GNU.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    match file::number(stream) {
        Some(fd) => fd,
        // SAFETY: the program's own call.
        None => unsafe { real::fileno_unlocked(stream) },
    }
}

/// C. The C library closes the descriptor inside.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fclose(stream: *mut FILE) -> c_int {
    if stream.is_null() || file::number(stream).is_some() {
        standard::forget(stream);
        // SAFETY: the program's own call; the cookie's `close` is ours.
        let result = unsafe { real::fclose(stream) };
        file::forget(stream);
        return result;
    }
    // SAFETY: the program's own call.
    let (result, lost) = unsafe { closing(stream, |stream| real::fclose(stream)) };
    match lost {
        None => result,
        Some(errno) => fail(errno) as c_int,
    }
}

/// C.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: the program's own call, here and below.
    unsafe {
        reopen(path, mode, stream, |stream| {
            real::freopen(path, mode, stream)
        })
    }
}

/// glibc, for large files.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn freopen64(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: as above.
    unsafe {
        reopen(path, mode, stream, |stream| {
            real::freopen64(path, mode, stream)
        })
    }
}

unsafe fn reopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
    native: impl FnOnce(*mut FILE) -> *mut FILE,
) -> *mut FILE {
    if stream.is_null() {
        return native(stream);
    }
    if let Some(original) = standard::give_back(stream) {
        // SAFETY: a stream of the C library's.
        return unsafe { closing(original, native) }.0;
    }
    if file::number(stream).is_some() {
        standard::let_go(stream);
        // SAFETY: the program's own call.
        return unsafe { file::reopen(path, mode, stream) };
    }
    // SAFETY: as above.
    unsafe { closing(stream, native) }.0
}

/// Has `native` close the stream's descriptor. Also why what was in its buffer is lost, if `native` knows nothing of that.
///
/// # Safety
/// The program's stream.
unsafe fn closing<R>(stream: *mut FILE, native: impl FnOnce(*mut FILE) -> R) -> (R, Option<Errno>) {
    let (fd, lost) = keeping_errno(|| {
        // SAFETY: the caller's promise.
        let fd = unsafe { real::fileno(stream) };
        let mut lost = None;
        if fd >= 0 {
            // A connection is closed first of all here. Of anything else the C library does as it likes: whether it could write, it tells once.
            if connection(fd).is_some() || via_socket::is(fd) {
                // SAFETY: as above.
                let flushed = unsafe { libc::fflush(stream) };
                lost = (flushed != 0).then(errno);
            }
            ends::before_close(fd);
        }
        (fd, lost)
    });
    let result = native(stream);
    ends::closed(fd);
    (result, lost)
}

/// What a cookie's functions are, to `fopencookie`.
#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, size_t) -> libc::ssize_t>,
    write: Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> libc::ssize_t>,
    seek: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<unsafe extern "C-unwind" fn(*mut c_void) -> c_int>,
}
