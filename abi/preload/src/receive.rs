//! recv, read, and their kin.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use libc::{cmsghdr, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use sockets::conn::{Conn, Way};
use sockets::ends;
use sockets::io::{self, Receive};
use sockets::table::{self, newborn};
use sys::errno::Errno;

use crate::buffers::{self, Asked, is_memory};
use crate::outcome::{
    Outcome, checked, connection, connection_or, fail, keeping_errno, with_rings,
};
use crate::{cancel, extended, pass, real, settled, via_socket};

/// What takes nothing from the stream, and is the kernel's. Other flags that we do not know a stream does not heed.
const BESIDE: c_int = libc::MSG_OOB | libc::MSG_ERRQUEUE;

/// `noted`: what one look at the table had, or none, if nobody has looked.
#[inline]
fn receive(
    noted: Option<&'static Conn>,
    fd: c_int,
    into: &mut [IoSliceMut<'_>],
    asked: Asked,
    flags: c_int,
    native: impl FnMut(c_int) -> ssize_t,
) -> Outcome<usize> {
    let mut native = native;
    if noted.is_none()
        && newborn::is(fd)
        && flags & !libc::MSG_DONTWAIT == 0
        && let Some(result) = newborn::pass(fd, Way::In, || checked(native(flags)))
    {
        return result.into();
    }
    let Some((conn, borrowed)) = connection_or(noted, fd) else {
        return via_socket::receive(fd, into, asked, flags)
            .otherwise(|| extended::receive(fd, into, asked, flags));
    };
    if flags & BESIDE != 0 {
        return Outcome::NotOurs;
    }
    if flags & libc::MSG_PEEK == 0
        && let Some(result) = io::pass(conn, borrowed, Way::In, || checked(native(flags)))
    {
        return result.into();
    }
    let _deferred = cancel::point();
    let how = Receive {
        dont_wait: flags & libc::MSG_DONTWAIT != 0,
        peek: flags & libc::MSG_PEEK != 0,
        wait_all: flags & libc::MSG_WAITALL != 0,
        skip: (flags & libc::MSG_TRUNC != 0).then_some(asked.len),
    };
    if (asked.len == 0 || asked.fault) && how.skip.is_none_or(|len| len == 0) && conn.is_mapped() {
        let nothing = into.iter().all(|room| room.is_empty());
        if nothing {
            return wait_only(conn, borrowed, asked, how);
        }
    }
    let received = io::receive(conn, borrowed, into, how, |more| {
        // The attempts before one that succeeds leave no trace.
        keeping_errno(|| checked(native(flags | more)))
    });
    if conn.signals() {
        ends::ask_for_signal(conn, borrowed);
    }
    received.into()
}

/// There is nowhere to receive into: the kernel waits all the same, and looks at the buffer when there is something.
#[cold]
fn wait_only(conn: &Conn, fd: BorrowedFd<'_>, asked: Asked, how: Receive) -> Outcome<usize> {
    let mut scratch = [0];
    let how = Receive {
        dont_wait: how.dont_wait,
        peek: true,
        ..Receive::default()
    };
    let there = io::receive(conn, fd, &mut [IoSliceMut::new(&mut scratch)], how, |_| {
        Err(Errno::AGAIN)
    });
    match there {
        Ok(1..) if asked.fault => Outcome::Failed(Errno::FAULT),
        Ok(_) => Outcome::Done(0),
        Err(errno) => Outcome::Failed(errno),
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's buffer and its own promise, here and below.
    unsafe {
        match table::noted(fd) {
            Some(conn) if conn.is_settled() && flags & !libc::MSG_DONTWAIT == 0 => {
                settled::recv(fd, buffer, len, flags, conn)
            }
            noted => recv_any(fd, buffer, len, flags, noted),
        }
    }
}

/// As [`recv`], of any descriptor.
#[inline(never)]
unsafe extern "C-unwind" fn recv_any(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    noted: Option<&'static Conn>,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = |flags| real::recv(fd, buffer, len, flags);
        let (room, asked) = (buffers::room(buffer, len), Asked::one(buffer, len));
        receive(noted, fd, &mut [room], asked, flags, native).or(|| native(flags))
    }
}

/// POSIX. No bytes are none, whatever has come: the kernel does not look at the socket.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::noted(fd) {
            Some(conn) if conn.is_settled() => settled::read(fd, buffer, len, conn),
            noted => read_any(fd, buffer, len, noted),
        }
    }
}

/// As [`read`], of any descriptor.
#[inline(never)]
unsafe extern "C-unwind" fn read_any(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    noted: Option<&'static Conn>,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        if len == 0 || buffers::is_beyond(buffer, len) {
            return real::read(fd, buffer, len);
        }
        let (room, asked) = (buffers::room(buffer, len), Asked::one(buffer, len));
        receive(noted, fd, &mut [room], asked, 0, |flags| {
            real::recv(fd, buffer, len, flags)
        })
        .or(|| real::read(fd, buffer, len))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvfrom(
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
        let (room, asked) = (buffers::room(buffer, len), Asked::one(buffer, len));
        let outcome = receive(None, fd, &mut [room], asked, flags, native);
        if matches!(outcome, Outcome::Done(_)) && !address.is_null() {
            // By now the bytes are taken, as by the kernel's.
            if let Err(errno) = say_no_address(address_len) {
                return fail(errno);
            }
        }
        outcome.or(|| native(flags))
    }
}

/// A stream's sender is whom one is connected to: the kernel leaves the address alone and says so.
unsafe fn say_no_address(len: *mut socklen_t) -> Result<(), Errno> {
    if !is_memory(len) {
        return Err(Errno::FAULT);
    }
    // SAFETY: the program's length.
    unsafe {
        if len.read_unaligned().cast_signed() < 0 {
            return Err(Errno::INVAL);
        }
        len.write_unaligned(0);
    }
    Ok(())
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readv(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe { scatter(fd, buffers, count, 0).or(|| real::readv(fd, buffers, count)) }
}

unsafe fn scatter(fd: c_int, buffers: *const iovec, count: c_int, flags: c_int) -> Outcome<usize> {
    let Ok(count) = usize::try_from(count) else {
        return Outcome::NotOurs;
    };
    // SAFETY: as above.
    unsafe {
        buffers::with_rooms(buffers, count, |rooms, asked| {
            if asked.len == 0 {
                return Outcome::NotOurs;
            }
            receive(None, fd, rooms, asked, flags, |flags| {
                let mut message: msghdr = std::mem::zeroed();
                message.msg_iov = buffers.cast_mut();
                message.msg_iovlen = count;
                real::recvmsg(fd, &raw mut message, flags)
            })
        })
        .unwrap_or(Outcome::NotOurs)
    }
}

/// Linux. An offset of -1 means the place where the descriptor is, which is all that a socket has.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn preadv2(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = || real::preadv2(fd, buffers, count, offset, flags);
        match message_flags(offset, flags) {
            Some(flags) => scatter(fd, buffers, count, flags).or(native),
            None => refused(fd, offset, flags, native),
        }
    }
}

/// glibc, for large files; the same on 64 bits.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn preadv64v2(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { preadv2(fd, buffers, count, offset, flags) }
}

/// What `preadv2` and `pwritev2` mean on a socket, as flags of a message; `None` for what the kernel refuses.
#[inline]
pub(crate) fn message_flags(offset: off_t, flags: c_int) -> Option<c_int> {
    let both = libc::RWF_APPEND | RWF_NOAPPEND;
    if offset != -1 || flags & !RWF_KNOWN != 0 || flags & both == both {
        return None;
    }
    let meant = |flag, message| if flags & flag == 0 { 0 } else { message };
    Some(meant(libc::RWF_NOWAIT, libc::MSG_DONTWAIT) | meant(RWF_NOSIGNAL, libc::MSG_NOSIGNAL))
}

/// The kernel is to refuse it. One that knows more flags than we do may not: it would move bytes past the rings.
#[cold]
pub(crate) fn refused(
    fd: c_int,
    offset: off_t,
    flags: c_int,
    native: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let known = offset != -1 || flags & !RWF_KNOWN == 0;
    if known || keeping_errno(|| with_rings(fd)).is_none() {
        return native();
    }
    fail(Errno::OPNOTSUPP)
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let header = message;
        let by_kernel = Cell::new(false);
        let native = |flags| {
            by_kernel.set(true);
            let received = real::recvmsg(fd, message, flags);
            if received >= 0 {
                pass::received(message);
            }
            received
        };
        if !is_memory(message) {
            return native(flags);
        }
        let header = &mut *header;
        if header.msg_namelen.cast_signed() < 0 && !header.msg_name.is_null() {
            return native(flags);
        }
        let known = connection(fd);
        if known.is_none() && !extended::is(fd) && !via_socket::is(fd) {
            return native(flags);
        }
        let outcome = buffers::with_rooms(header.msg_iov, header.msg_iovlen, |rooms, asked| {
            receive(None, fd, rooms, asked, flags, native)
        });
        let Some(outcome) = outcome else {
            return native(flags);
        };
        if let (Outcome::Done(_), false) = (outcome, by_kernel.get()) {
            header.msg_namelen = 0;
            header.msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
            match known {
                Some((conn, fd)) if conn.says_what_is_left(fd) => {
                    say_left(header, ends::left(conn, fd));
                }
                None if let Some(left) = via_socket::left(fd) => say_left(header, left),
                _ => header.msg_controllen = 0,
            }
        }
        outcome.or(|| native(flags))
    }
}

/// `TCP_INQ`, as the kernel puts it into a message's control data: as much of it as there is room for.
#[cold]
unsafe fn say_left(header: &mut msghdr, left: c_int) {
    let head = size_of::<cmsghdr>();
    let (whole, aligned) = (head + size_of::<c_int>(), head + size_of::<usize>());
    let room = header.msg_controllen;
    if room < head || !is_memory(header.msg_control) {
        header.msg_flags |= libc::MSG_CTRUNC;
        header.msg_controllen = 0;
        return;
    }
    if room < whole {
        header.msg_flags |= libc::MSG_CTRUNC;
    }
    // SAFETY: plain data, for which zeros are valid.
    let mut said: cmsghdr = unsafe { std::mem::zeroed() };
    said.cmsg_len = whole.min(room);
    said.cmsg_level = libc::IPPROTO_TCP;
    said.cmsg_type = libc::TCP_CM_INQ;
    // SAFETY: the program promises `room` bytes, and the head fits; of the number goes what fits behind it.
    unsafe {
        header.msg_control.cast::<cmsghdr>().write_unaligned(said);
        let to = header.msg_control.byte_add(head);
        std::ptr::copy_nonoverlapping((&raw const left).cast(), to, whole.min(room) - head);
    }
    header.msg_controllen = aligned.min(room);
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __read_chk(
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
pub unsafe extern "C-unwind" fn __recv_chk(
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
pub unsafe extern "C-unwind" fn __recvfrom_chk(
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

const RWF_KNOWN: c_int = libc::RWF_HIPRI
    | libc::RWF_DSYNC
    | libc::RWF_SYNC
    | libc::RWF_NOWAIT
    | libc::RWF_APPEND
    | RWF_NOAPPEND
    | RWF_NOSIGNAL;
/// `linux/fs.h`.
const RWF_NOAPPEND: c_int = 0x20;
const RWF_NOSIGNAL: c_int = 0x100;
