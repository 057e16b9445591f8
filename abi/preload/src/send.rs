//! send, write, and their kin.

use std::ffi::{c_int, c_void};
use std::io::IoSlice;

use libc::{iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use sockets::io;
use sys::errno::Errno;

use crate::buffers;
use crate::outcome::{Outcome, checked, connection};
use crate::{pass, real};

/// What we understand of the flags; with others a call goes to the kernel. `MSG_MORE` promises more soon, and nothing is held back anyway.
const FLAGS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_CONFIRM;

#[inline]
fn send_pieces(
    fd: c_int,
    pieces: &[IoSlice<'_>],
    flags: c_int,
    native: impl FnMut(c_int) -> ssize_t,
) -> Outcome<usize> {
    let Some((conn, borrowed)) = connection(fd) else {
        return Outcome::NotOurs;
    };
    if flags & !FLAGS != 0 {
        return Outcome::NotOurs;
    }
    let mut native = native;
    let mut by_kernel = false;
    let result = io::send(
        conn,
        borrowed,
        pieces,
        flags & libc::MSG_DONTWAIT != 0,
        |more| {
            by_kernel = true;
            checked(native(flags | more))
        },
    );
    if result == Err(Errno::PIPE) && !by_kernel && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: signals the calling thread, as the kernel does.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
    }
    result.into()
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn send(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's buffer and its own promise, here and below.
    unsafe {
        let native = |flags| real::send(fd, buffer, len, flags);
        send_pieces(fd, &[buffers::bytes(buffer, len)], flags, native).or(|| native(flags))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        send_pieces(fd, &[buffers::bytes(buffer, len)], 0, |flags| {
            real::send(fd, buffer, len, flags)
        })
        .or(|| real::write(fd, buffer, len))
    }
}

/// POSIX. A connected stream ignores the address, except that Linux refuses one where none belongs; that is the kernel's to say.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_len: socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = |flags| real::sendto(fd, buffer, len, flags, address, address_len);
        send_pieces(fd, &[buffers::bytes(buffer, len)], flags, native).or(|| native(flags))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn writev(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(pieces) = usize::try_from(count)
            .ok()
            .and_then(|count| buffers::pieces(buffers, count))
        else {
            return real::writev(fd, buffers, count);
        };
        send_pieces(fd, pieces, 0, |flags| {
            let mut message: msghdr = std::mem::zeroed();
            message.msg_iov = buffers.cast_mut();
            message.msg_iovlen = count as usize;
            real::sendmsg(fd, &raw const message, flags)
        })
        .or(|| real::writev(fd, buffers, count))
    }
}

/// Linux. An offset of -1 means the place where the descriptor is, which is all that a socket has.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pwritev2(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        if offset == -1 && flags == 0 {
            return writev(fd, buffers, count);
        }
        real::pwritev2(fd, buffers, count, offset, flags)
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        pass::before_sending(message);
        let native = |flags| real::sendmsg(fd, message, flags);
        let Some(header) = message.as_ref() else {
            return native(flags);
        };
        let Some(pieces) = buffers::pieces(header.msg_iov, header.msg_iovlen) else {
            return native(flags);
        };
        send_pieces(fd, pieces, flags, native).or(|| native(flags))
    }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: u32,
    flags: c_int,
) -> c_int {
    if connection(fd).is_none() {
        // SAFETY: as above.
        return unsafe {
            pass::before_sending_all(messages, count);
            real::sendmmsg(fd, messages, count, flags)
        };
    }
    let mut done = 0;
    while done < count.min(MESSAGES_MAX) {
        // SAFETY: the program promises `count` messages.
        let message = unsafe { &mut *messages.add(done as usize) };
        // SAFETY: as above.
        let sent = unsafe { sendmsg(fd, &raw const message.msg_hdr, flags) };
        let Ok(sent) = u32::try_from(sent) else {
            return if done > 0 { done.cast_signed() } else { -1 };
        };
        message.msg_len = sent;
        done += 1;
    }
    done.cast_signed()
}

/// `UIO_MAXIOV`: the kernel takes no more in one call.
pub(crate) const MESSAGES_MAX: u32 = 1024;
