//! recv, read, and their kin.

use std::ffi::{c_int, c_void};
use std::io::IoSliceMut;

use libc::{iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use sockets::io::{self, Receive};

use crate::buffers;
use crate::outcome::{Outcome, checked, connection, keeping_errno};
use crate::{pass, real};

/// What we understand of the flags; with others a call goes to the kernel.
const FLAGS: c_int = libc::MSG_DONTWAIT
    | libc::MSG_PEEK
    | libc::MSG_WAITALL
    | libc::MSG_TRUNC
    | libc::MSG_NOSIGNAL
    | libc::MSG_CMSG_CLOEXEC;

#[inline]
fn receive(
    fd: c_int,
    into: &mut [IoSliceMut<'_>],
    flags: c_int,
    native: impl FnMut(c_int) -> ssize_t,
) -> Outcome<usize> {
    let Some((conn, borrowed)) = connection(fd) else {
        return Outcome::NotOurs;
    };
    if flags & !FLAGS != 0 {
        return Outcome::NotOurs;
    }
    let how = Receive {
        dont_wait: flags & libc::MSG_DONTWAIT != 0,
        peek: flags & libc::MSG_PEEK != 0,
        wait_all: flags & libc::MSG_WAITALL != 0,
        skip: (flags & libc::MSG_TRUNC != 0 && flags & libc::MSG_PEEK == 0)
            .then(|| into.iter().map(|room| room.len()).sum()),
    };
    let mut native = native;
    io::receive(conn, borrowed, into, how, |more| {
        // The attempts before one that succeeds leave no trace.
        keeping_errno(|| checked(native(flags | more)))
    })
    .into()
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's buffer and its own promise, here and below.
    unsafe {
        let native = |flags| real::recv(fd, buffer, len, flags);
        receive(fd, &mut [buffers::room(buffer, len)], flags, native).or(|| native(flags))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        receive(fd, &mut [buffers::room(buffer, len)], 0, |flags| {
            real::recv(fd, buffer, len, flags)
        })
        .or(|| real::read(fd, buffer, len))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = |flags| real::recvfrom(fd, buffer, len, flags, address, address_len);
        let outcome = receive(fd, &mut [buffers::room(buffer, len)], flags, native);
        if let (Outcome::Done(_), false) = (outcome, address.is_null())
            && let Some(address_len) = address_len.as_mut()
        {
            // A stream's sender is whom one is connected to: the kernel leaves the address alone and says so.
            *address_len = 0;
        }
        outcome.or(|| native(flags))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn readv(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(rooms) = usize::try_from(count)
            .ok()
            .and_then(|count| buffers::rooms(buffers, count))
        else {
            return real::readv(fd, buffers, count);
        };
        receive(fd, rooms, 0, |flags| {
            let mut message: msghdr = std::mem::zeroed();
            message.msg_iov = buffers.cast_mut();
            message.msg_iovlen = count as usize;
            real::recvmsg(fd, &raw mut message, flags)
        })
        .or(|| real::readv(fd, buffers, count))
    }
}

/// Linux. An offset of -1 means the place where the descriptor is, which is all that a socket has.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn preadv2(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        if offset == -1 && flags == 0 {
            return readv(fd, buffers, count);
        }
        real::preadv2(fd, buffers, count, offset, flags)
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = |flags| {
            let received = real::recvmsg(fd, message, flags);
            if received >= 0 {
                pass::received(message);
            }
            received
        };
        let Some(header) = message.as_mut() else {
            return native(flags);
        };
        let Some(rooms) = buffers::rooms(header.msg_iov, header.msg_iovlen) else {
            return native(flags);
        };
        let Some((conn, _)) = connection(fd) else {
            return native(flags);
        };
        let mapped = conn.is_mapped();
        let outcome = receive(fd, rooms, flags, native);
        if let (Outcome::Done(_), true) = (outcome, mapped) {
            header.msg_namelen = 0;
            header.msg_controllen = 0;
            header.msg_flags = 0;
        }
        outcome.or(|| native(flags))
    }
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
) -> ssize_t {
    check(len, room);
    // SAFETY: as above.
    unsafe { read(fd, buffer, len) }
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check(len, room);
    // SAFETY: as above.
    unsafe { recv(fd, buffer, len, flags) }
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    check(len, room);
    // SAFETY: as above.
    unsafe { recvfrom(fd, buffer, len, flags, address, address_len) }
}

/// What the C library does when a program that was built with checks is about to overrun a buffer.
#[inline]
pub(crate) fn check(len: size_t, room: size_t) {
    if len > room {
        std::process::abort();
    }
}

/// Linux. The time-out is looked at between messages, as the kernel does.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: u32,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    if connection(fd).is_none_or(|(conn, _)| !conn.is_mapped()) {
        // SAFETY: as above.
        return unsafe {
            let received = real::recvmmsg(fd, messages, count, flags, timeout);
            for n in 0..u32::try_from(received).unwrap_or(0) {
                pass::received(&raw const (*messages.add(n as usize)).msg_hdr);
            }
            received
        };
    }
    // SAFETY: the program's pointer, or null.
    let limit = unsafe { timeout.as_ref() }
        .map(|limit| std::time::Duration::new(limit.tv_sec.unsigned_abs(), limit.tv_nsec as u32));
    let begun = std::time::Instant::now();
    let mut flags_now = flags & !libc::MSG_WAITFORONE;
    let mut done = 0;
    while done < count.min(crate::send::MESSAGES_MAX) {
        // SAFETY: the program promises `count` messages.
        let message = unsafe { &mut *messages.add(done as usize) };
        // SAFETY: as above.
        let received = unsafe { recvmsg(fd, &raw mut message.msg_hdr, flags_now) };
        let Ok(received) = u32::try_from(received) else {
            return if done > 0 { done.cast_signed() } else { -1 };
        };
        message.msg_len = received;
        done += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            flags_now |= libc::MSG_DONTWAIT;
        }
        if received == 0 || limit.is_some_and(|limit| begun.elapsed() >= limit) {
            break;
        }
    }
    done.cast_signed()
}
