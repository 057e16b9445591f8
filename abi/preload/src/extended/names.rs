//! The names of an extended socket are those of its TCP connection.

use std::ffi::c_int;
use std::os::fd::AsRawFd;

use libc::{sockaddr, socklen_t};

use super::{find, is};
use crate::outcome::fail;
use crate::{real, via_socket};

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the program's own call, here and below.
    unsafe { via_socket::peer_name(fd, address, len) }
        // SAFETY: as above.
        .or(|| named(fd, |fd| unsafe { real::getpeername(fd, address, len) }))
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockname(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    unsafe { via_socket::name(fd, address, len) }
        // SAFETY: as above.
        .or(|| named(fd, |fd| unsafe { real::getsockname(fd, address, len) }))
}

fn named(fd: c_int, ask: impl FnOnce(c_int) -> c_int) -> c_int {
    if !is(fd) {
        return ask(fd);
    }
    match find(fd) {
        Ok(extended) => ask(extended.tcp().as_raw_fd()),
        Err(errno) => fail(errno) as c_int,
    }
}
