//! C's arguments and results.

use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use libc::ssize_t;
use sockets::packet::Socket;
use sockets::packet::table::{self, Held};
use sys::argument;
use sys::errno::Errno;

pub(crate) fn socket(fd: c_int) -> Result<Arc<Held>, Errno> {
    let socket = table::get(fd).ok_or(Errno::BADF)?;
    // A child of fork has copies, which it can only close.
    if socket.is_home() {
        Ok(socket)
    } else {
        Err(Errno::NOTCONN)
    }
}

/// A call on a socket that returns a number or fails.
pub(crate) fn of(fd: c_int, act: impl FnOnce(&Socket) -> Result<c_int, Errno>) -> c_int {
    zero(socket(fd).and_then(|socket| act(&socket)))
}

pub(crate) fn zero(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| fail(errno) as c_int)
}

/// What a call of the C library's said.
pub(crate) fn done(result: c_int) -> Result<c_int, Errno> {
    match result {
        -1 => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_raw_os_error(
                error.raw_os_error().unwrap_or(libc::EIO),
            ))
        }
        result => Ok(result),
    }
}

pub(crate) fn returned(result: Result<usize, Errno>) -> ssize_t {
    result.map_or_else(fail, usize::cast_signed)
}

fn fail(errno: Errno) -> ssize_t {
    // SAFETY: the C library's errno of this thread is always there.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
    -1
}

pub(crate) fn borrow<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Errno> {
    if fd < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: used for system calls in the course of the program's own call with this number.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// # Safety
/// `len` bytes at `buffer`, which others may change meanwhile only if the program does not mind.
pub(crate) unsafe fn bytes<'a>(buffer: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    if len == 0 {
        return Ok(&[]);
    }
    argument::check(buffer)?;
    // SAFETY: by the contract.
    Ok(unsafe { std::slice::from_raw_parts(buffer.cast(), len.min(MOST)) })
}

/// # Safety
/// Room for `len` bytes at `buffer`.
pub(crate) unsafe fn room<'a>(buffer: *mut c_void, len: usize) -> Result<&'a mut [u8], Errno> {
    if len == 0 {
        return Ok(&mut []);
    }
    argument::check(buffer)?;
    // SAFETY: by the contract; bytes have no invalid values, and nothing reads them before they are written.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), len.min(MOST)) })
}

/// As many bytes as Linux moves in one call.
const MOST: usize = 0x7fff_f000;
