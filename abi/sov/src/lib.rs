//! `libsov.so`: the paper's `sov_socket`, `sov_connect`, `sov_send` and their kin, on [`sockets::packet`].
//!
//! Each function is POSIX's of the same name, on sockets of type `SOCK_VIA` alone; `sov.h` says what differs.
#![allow(
    unsafe_code,
    reason = "the boundary to C: pointers and descriptors come from the program"
)]
#![allow(
    unreachable_pub,
    reason = "what C finds by name is public though no Rust program names it"
)]

mod call;
mod start;

use std::ffi::{c_int, c_void};
use std::io::{IoSlice, IoSliceMut};

use libc::{size_t, sockaddr, socklen_t, ssize_t};
use sockets::packet::calls::{self, How};
use sockets::packet::{SOCK_VIA, option, table};
use sys::argument;
use sys::errno::Errno;

use crate::call::{borrow, done, of, returned, socket, zero};

/// A socket of type `SOCK_VIA`.
#[unsafe(no_mangle)]
pub extern "C" fn sov_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    zero((|| {
        start::once()?;
        if domain != libc::AF_INET {
            return Err(Errno::AFNOSUPPORT);
        }
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        if kind & !flags != SOCK_VIA || protocol != 0 {
            return Err(Errno::PROTONOSUPPORT);
        }
        let fd = table::create(argument::Family::V4)?;
        if kind & libc::SOCK_NONBLOCK != 0 {
            // SAFETY: a flag of a descriptor that has just been made.
            unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Ok(fd)
    })())
}

/// As POSIX `bind`.
///
/// # Safety
/// `address_len` bytes at `address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    of(fd, |socket| {
        // SAFETY: by the contract.
        socket.bind(unsafe { argument::address(address.cast(), len) }?)?;
        Ok(0)
    })
}

/// As POSIX `listen`.
#[unsafe(no_mangle)]
pub extern "C" fn sov_listen(fd: c_int, backlog: c_int) -> c_int {
    of(fd, |socket| {
        socket.listen(usize::try_from(backlog).unwrap_or(0))?;
        Ok(0)
    })
}

/// As POSIX `accept`.
///
/// # Safety
/// Null, or room for `*len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    of(fd, |socket| {
        if !address.is_null() {
            // Before there is a connection that would be lost.
            argument::check(address)?;
            argument::check(len)?;
        }
        let (new, peer) = calls::accept(borrow(fd)?, socket, !address.is_null())?;
        if let Some(peer) = peer {
            // SAFETY: by the contract.
            unsafe { argument::put_address(peer, address.cast(), len) }?;
        }
        Ok(new)
    })
}

/// As POSIX `connect`; it succeeds when the peer listens, before it accepts. An address of `AF_UNSPEC` dissolves what there is.
///
/// # Safety
/// `len` bytes at `address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    zero((|| {
        let socket = socket(fd)?;
        // SAFETY: by the contract.
        if unsafe { argument::is_none(address.cast(), len) } {
            return table::dissolve(&socket).map(|()| 0);
        }
        // SAFETY: by the contract.
        let address = unsafe { argument::address(address.cast(), len) }?;
        socket.connect(address, fd.cast_unsigned())?;
        Ok(0)
    })())
}

/// As POSIX `send`, with MSG_DONTWAIT and MSG_NOSIGNAL; MSG_OOB is refused.
///
/// # Safety
/// `len` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_send(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    let result = (|| {
        let socket = socket(fd)?;
        if flags & libc::MSG_OOB != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        // SAFETY: by the contract.
        let bytes = unsafe { call::bytes(buffer, len) }?;
        let dont_wait = flags & libc::MSG_DONTWAIT != 0;
        calls::send(borrow(fd)?, &socket, &[IoSlice::new(bytes)], dont_wait)
    })();
    if result == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: signals the calling thread, as the kernel does.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
    }
    returned(result)
}

/// As POSIX `recv`, with MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC and MSG_WAITALL; MSG_OOB is refused, as there is nothing urgent ever, nor errors to be told of (MSG_ERRQUEUE).
///
/// # Safety
/// Room for `len` bytes at `buffer`, unless they go nowhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_recv(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    returned((|| {
        let socket = socket(fd)?;
        if flags & libc::MSG_OOB != 0 {
            return Err(Errno::INVAL);
        }
        if flags & libc::MSG_ERRQUEUE != 0 {
            return Err(Errno::AGAIN);
        }
        let goes_nowhere = flags & libc::MSG_TRUNC != 0;
        let room = if goes_nowhere {
            &mut []
        } else {
            // SAFETY: by the contract.
            unsafe { call::room(buffer, len) }?
        };
        let how = How {
            dont_wait: flags & libc::MSG_DONTWAIT != 0,
            peek: flags & libc::MSG_PEEK != 0,
            wait_all: flags & libc::MSG_WAITALL != 0,
            skip: goes_nowhere.then_some(len),
            begun: false,
        };
        calls::receive(borrow(fd)?, &socket, &mut [IoSliceMut::new(room)], how)
    })())
}

/// As POSIX `shutdown`. Of the receiving direction nothing is told to the peer.
#[unsafe(no_mangle)]
pub extern "C" fn sov_shutdown(fd: c_int, how: c_int) -> c_int {
    of(fd, |socket| {
        let (input, output) = argument::directions(how)?;
        socket.shutdown(input, output)?;
        Ok(0)
    })
}

/// As POSIX `close`: it returns at once.
#[unsafe(no_mangle)]
pub extern "C" fn sov_close(fd: c_int) -> c_int {
    let Some(socket) = table::remove(fd) else {
        return zero(Err(Errno::BADF));
    };
    // SAFETY: the descriptor that `sov_socket` or `sov_accept` made.
    let closed = unsafe { libc::close(fd) };
    drop(socket);
    closed
}

/// As POSIX `setsockopt`: TCP_NODELAY, SO_RCVTIMEO, SO_SNDTIMEO, and SO_LINGER of no time; what else a TCP socket has is kept to be read back, and means nothing.
///
/// # Safety
/// `len` bytes at `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    of(fd, |socket| {
        // SAFETY: by the contract.
        let bytes = || unsafe { argument::value(value, len) };
        option::set(socket, level, name, bytes)?;
        if !option::is_of_stand_in(level, name) {
            return Ok(0);
        }
        // SAFETY: the program's own arguments.
        done(unsafe { libc::setsockopt(fd, level, name, value, len) })
    })
}

/// As POSIX `getsockopt`: TCP_NODELAY, SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_RCVTIMEO, SO_SNDTIMEO and SO_LINGER, and what else a TCP socket has, as it was set.
///
/// # Safety
/// Room for `*len` bytes at `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    of(fd, |socket| {
        // SAFETY: by the contract.
        let wanted = unsafe { argument::room(len) }?;
        match option::get(socket, level, name, wanted) {
            Err(Errno::NOPROTOOPT) if option::is_of_stand_in(level, name) => {
                // SAFETY: the program's own arguments.
                done(unsafe { libc::getsockopt(fd, level, name, value, len) })
            }
            answer => {
                // SAFETY: by the contract.
                unsafe { argument::put_bytes(&answer?, value, len) }?;
                Ok(0)
            }
        }
    })
}

/// As POSIX `getsockname`.
///
/// # Safety
/// Room for `*len` bytes at `address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_getsockname(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    of(fd, |socket| {
        // SAFETY: by the contract.
        unsafe { argument::put_address(socket.local(), address.cast(), len) }?;
        Ok(0)
    })
}

/// As POSIX `getpeername`.
///
/// # Safety
/// Room for `*len` bytes at `address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sov_getpeername(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    of(fd, |socket| {
        // SAFETY: by the contract.
        unsafe { argument::put_address(socket.peer()?, address.cast(), len) }?;
        Ok(0)
    })
}
