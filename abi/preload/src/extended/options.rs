//! Socket options at the level `SOL_SOVIA`, and those of the TCP connection under an extended socket.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, RawFd};

use libc::socklen_t;
use sys::errno::Errno;

use super::convert::{IWARP_MODE, VI_MODE, convert, could_be_converted};
use super::{find, is};
use crate::buffers::is_memory;
use crate::outcome::Outcome;
use crate::real;

/// `SOL_SOVIA`: "SO".
const LEVEL: c_int = 0x534f;

/// `setsockopt`, as far as it is about extended sockets.
///
/// # Safety
/// As `setsockopt`.
pub(crate) unsafe fn set(
    fd: RawFd,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> Outcome<c_int> {
    if level == LEVEL {
        if !matches!(name, VI_MODE | IWARP_MODE) {
            return Outcome::Failed(Errno::NOPROTOOPT);
        }
        if (len as usize) < size_of::<c_int>() {
            return Outcome::Failed(Errno::INVAL);
        }
        if !is_memory(value) {
            return Outcome::Failed(Errno::FAULT);
        }
        // SAFETY: the program promises `len` bytes.
        return match unsafe { value.cast::<c_int>().read_unaligned() } {
            // There is no way back.
            0 if is(fd) => Outcome::Failed(Errno::INVAL),
            0 => could_be_converted(fd).map(|()| 0).into(),
            1 => convert(fd, name).map(|()| 0).into(),
            _ => Outcome::Failed(Errno::INVAL),
        };
    }
    beneath(fd, level, name, |tcp| {
        // SAFETY: the program's own call, on the connection that it means.
        unsafe { real::setsockopt(tcp, level, name, value, len) }
    })
}

/// `getsockopt`, as far as it is about extended sockets.
///
/// # Safety
/// As `getsockopt`.
pub(crate) unsafe fn get(
    fd: RawFd,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    if level != LEVEL {
        return beneath(fd, level, name, |tcp| {
            // SAFETY: as above.
            unsafe { real::getsockopt(tcp, level, name, value, len) }
        });
    }
    if !matches!(name, VI_MODE | IWARP_MODE) {
        return Outcome::Failed(Errno::NOPROTOOPT);
    }
    if !is_memory(value) || !is_memory(len) {
        return Outcome::Failed(Errno::FAULT);
    }
    // SAFETY: the program's pointer to a length.
    if (unsafe { len.read_unaligned() } as usize) < size_of::<c_int>() {
        return Outcome::Failed(Errno::INVAL);
    }
    if !sys::socket::is_open(fd) {
        return Outcome::Failed(Errno::BADF);
    }
    let on = is(fd) && find(fd).is_ok_and(|extended| extended.mode == name);
    // SAFETY: the program promises as many bytes as it says.
    unsafe {
        value.cast::<c_int>().write_unaligned(c_int::from(on));
        len.write_unaligned(size_of::<c_int>() as socklen_t);
    }
    Outcome::Done(0)
}

/// Options of the TCP connection; how long calls wait is kept with the stand-in.
fn beneath(
    fd: RawFd,
    level: c_int,
    name: c_int,
    on_tcp: impl FnOnce(RawFd) -> c_int,
) -> Outcome<c_int> {
    let waits = level == libc::SOL_SOCKET && matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO);
    if !is(fd) || waits {
        return Outcome::NotOurs;
    }
    match find(fd) {
        Ok(extended) => Outcome::Done(on_tcp(extended.tcp().as_raw_fd())),
        Err(errno) => Outcome::Failed(errno),
    }
}
