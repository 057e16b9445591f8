//! send, write, and their kin.

use std::ffi::{c_int, c_void};
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use libc::{iovec, msghdr, off_t, size_t, sockaddr, sockaddr_storage, socklen_t, ssize_t};
use sockets::conn::{Conn, Way};
use sockets::reason::Reason;
use sockets::table::{self, newborn};
use sockets::{ends, io};
use sys::errno::Errno;

use crate::buffers::{self, Asked, is_memory};
use crate::outcome::{Outcome, checked, connection, connection_or, fail, keeping_errno};
use crate::receive::{message_flags, refused};
use crate::{cancel, extended, pass, real, settled, via_socket};

/// What only TCP can do. Other flags a stream does not heed; `MSG_MORE` promises more soon, and nothing is held back anyway.
const ONLY_TCP: c_int = libc::MSG_OOB | libc::MSG_ZEROCOPY | libc::MSG_FASTOPEN;

/// What changes nothing about whose call it is.
const PLAIN: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE;

/// What the kernel does beside `EPIPE`.
#[cold]
pub(crate) fn raise_pipe() {
    // SAFETY: signals the calling thread.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
}

/// `noted`: what one look at the table had, or none, if nobody has looked.
#[inline]
fn send_pieces(
    noted: Option<&'static Conn>,
    fd: c_int,
    pieces: &[IoSlice<'_>],
    asked: Asked,
    flags: c_int,
    native: impl FnMut(c_int) -> ssize_t,
) -> Outcome<usize> {
    let mut native = native;
    if noted.is_none()
        && newborn::is(fd)
        && flags & !PLAIN == 0
        && let Some(result) = newborn::pass(fd, Way::Out, || checked(native(flags)))
    {
        return result.into();
    }
    let Some((conn, borrowed)) = connection_or(noted, fd) else {
        return via_socket::send(fd, pieces, asked, flags)
            .otherwise(|| extended::send(fd, pieces, asked, flags));
    };
    if flags & ONLY_TCP != 0 {
        if flags & libc::MSG_FASTOPEN != 0 {
            // An error on any connection, for which the kernel looks at no byte.
            return checked(native(flags)).into();
        }
        if let Some(reason) = why_tcp(borrowed, flags) {
            return leave_for_tcp(conn, borrowed, reason, flags, || native(flags));
        }
    }
    if let Some(result) = io::pass(conn, borrowed, Way::Out, || checked(native(flags))) {
        return result.into();
    }
    let _deferred = cancel::point();
    let mut by_kernel = false;
    let mut result = io::send(
        conn,
        borrowed,
        pieces,
        flags & libc::MSG_DONTWAIT != 0,
        |more| {
            by_kernel = true;
            checked(native(flags | more))
        },
    );
    if asked.fault && result == Ok(0) {
        result = Err(Errno::FAULT);
    }
    if result == Err(Errno::PIPE) && !by_kernel && flags & libc::MSG_NOSIGNAL == 0 {
        raise_pipe();
    }
    result.into()
}

/// Why a call with such flags must go to the kernel, if it must.
#[cold]
fn why_tcp(fd: BorrowedFd<'_>, flags: c_int) -> Option<Reason> {
    if flags & libc::MSG_OOB != 0 {
        return Some(Reason::Urgent);
    }
    // Without the option the flag means nothing.
    sys::socket::zero_copies(fd).then_some(Reason::Option)
}

/// A call that only TCP can do.
#[cold]
fn leave_for_tcp(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    reason: Reason,
    flags: c_int,
    native: impl FnOnce() -> ssize_t,
) -> Outcome<usize> {
    match ends::leave_ring(conn, fd, reason) {
        Ok(()) => on_tcp(conn, native),
        Err(errno) => {
            if errno == Errno::PIPE && flags & libc::MSG_NOSIGNAL == 0 {
                raise_pipe();
            }
            Outcome::Failed(errno)
        }
    }
}

/// A call of the kernel's on a direction that has left the ring.
#[cold]
fn on_tcp(conn: &Conn, native: impl FnOnce() -> ssize_t) -> Outcome<usize> {
    let result = checked(native());
    if let Ok(sent) = result {
        conn.count(Way::Out, sent);
    }
    result.into()
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's buffer and its own promise, here and below.
    unsafe {
        match table::noted(fd) {
            Some(conn) if conn.is_settled() && flags & !PLAIN == 0 => {
                settled::send(fd, buffer, len, flags, conn)
            }
            noted => send_any(fd, buffer, len, flags, noted),
        }
    }
}

/// As [`send`], of any descriptor.
#[inline(never)]
unsafe extern "C-unwind" fn send_any(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    noted: Option<&'static Conn>,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = |flags| real::send(fd, buffer, len, flags);
        let (bytes, asked) = (buffers::bytes(buffer, len), Asked::one(buffer, len));
        send_pieces(noted, fd, &[bytes], asked, flags, native).or(|| native(flags))
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::noted(fd) {
            Some(conn) if conn.is_settled() => settled::write(fd, buffer, len, conn),
            noted => write_any(fd, buffer, len, noted),
        }
    }
}

/// As [`write()`], of any descriptor.
#[inline(never)]
unsafe extern "C-unwind" fn write_any(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    noted: Option<&'static Conn>,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        if buffers::is_beyond(buffer, len) {
            return real::write(fd, buffer, len);
        }
        let (bytes, asked) = (buffers::bytes(buffer, len), Asked::one(buffer, len));
        send_pieces(noted, fd, &[bytes], asked, 0, |flags| {
            real::send(fd, buffer, len, flags)
        })
        .or(|| real::write(fd, buffer, len))
    }
}

/// POSIX. A connected stream ignores the address, except that Linux refuses one where none belongs; that is the kernel's to say.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendto(
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
        if !address.is_null() && !may_be_address(address, address_len) {
            return native(flags);
        }
        let flags = match via_socket::open_by_sending(fd, address, address_len, flags) {
            Ok(flags) => flags,
            Err(errno) => return fail(errno),
        };
        let (bytes, asked) = (buffers::bytes(buffer, len), Asked::one(buffer, len));
        send_pieces(None, fd, &[bytes], asked, flags, native).or(|| native(flags))
    }
}

/// Whether the kernel may take it; else it refuses the call before it looks at the socket.
#[inline]
fn may_be_address(address: *const sockaddr, len: socklen_t) -> bool {
    len == 0 || (len as usize <= size_of::<sockaddr_storage>() && is_memory(address))
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match table::noted(fd) {
            Some(conn) if conn.is_settled() => settled::writev(fd, buffers, count, conn),
            noted => writev_any(fd, buffers, count, noted),
        }
    }
}

/// As [`writev`], of any descriptor.
#[inline(never)]
unsafe extern "C-unwind" fn writev_any(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    noted: Option<&'static Conn>,
) -> ssize_t {
    // SAFETY: as above.
    let native = || unsafe { real::writev(fd, buffers, count) };
    if noted.is_none()
        && newborn::is(fd)
        && let Some(result) = newborn::pass(fd, Way::Out, || checked(native()))
    {
        return Outcome::from(result).or(native);
    }
    // SAFETY: as above.
    unsafe { gather(noted, fd, buffers, count, 0).or(native) }
}

unsafe fn gather(
    noted: Option<&'static Conn>,
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    flags: c_int,
) -> Outcome<usize> {
    let Ok(count) = usize::try_from(count) else {
        return Outcome::NotOurs;
    };
    // SAFETY: as above.
    unsafe {
        buffers::with_pieces(buffers, count, |pieces, asked| {
            if asked.len == 0 {
                // The kernel does not look at the socket, which may have ended.
                return Outcome::NotOurs;
            }
            send_pieces(noted, fd, pieces, asked, flags, |flags| {
                if flags == 0 {
                    // The kernel has no header to copy.
                    return real::writev(fd, buffers, count as c_int);
                }
                let mut message: msghdr = std::mem::zeroed();
                message.msg_iov = buffers.cast_mut();
                message.msg_iovlen = count;
                real::sendmsg(fd, &raw const message, flags)
            })
        })
        .unwrap_or(Outcome::NotOurs)
    }
}

/// Linux. An offset of -1 means the place where the descriptor is, which is all that a socket has.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pwritev2(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = || real::pwritev2(fd, buffers, count, offset, flags);
        match message_flags(offset, flags) {
            Some(flags) => gather(None, fd, buffers, count, flags).or(native),
            None => refused(fd, offset, flags, native),
        }
    }
}

/// glibc, for large files; the same on 64 bits.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pwritev64v2(
    fd: c_int,
    buffers: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { pwritev2(fd, buffers, count, offset, flags) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let native = |flags| real::sendmsg(fd, message, flags);
        if !is_memory(message) {
            return native(flags);
        }
        pass::before_sending(message);
        let header = &*message;
        if !may_be_name(header.msg_name, header.msg_namelen) {
            return native(flags);
        }
        if header.msg_controllen != 0
            && let Err(errno) = ask_about_control(fd, header)
        {
            return fail(errno);
        }
        let (address, len) = (header.msg_name.cast(), header.msg_namelen);
        let flags = match via_socket::open_by_sending(fd, address, len, flags) {
            Ok(flags) => flags,
            Err(errno) => return fail(errno),
        };
        let outcome = buffers::with_pieces(header.msg_iov, header.msg_iovlen, |pieces, asked| {
            send_pieces(None, fd, pieces, asked, flags, native)
        });
        outcome.unwrap_or(Outcome::NotOurs).or(|| native(flags))
    }
}

/// The same of a message's. Of a long one the kernel takes the beginning.
#[inline]
fn may_be_name(name: *const c_void, len: socklen_t) -> bool {
    name.is_null() || len == 0 || (len.cast_signed() > 0 && is_memory(name))
}

/// What the kernel says of control data to a connection with rings, or to a stand-in: a message without bytes tells.
#[cold]
unsafe fn ask_about_control(fd: c_int, header: &msghdr) -> Result<(), Errno> {
    let mapped = connection(fd).is_some_and(|(conn, _)| conn.is_mapped());
    if !mapped && !via_socket::is(fd) {
        return Ok(());
    }
    let mut empty = *header;
    empty.msg_iovlen = 0;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the program's own message, without its bytes.
    let answer = keeping_errno(|| checked(unsafe { real::sendmsg(fd, &raw const empty, flags) }));
    match answer {
        Err(errno @ (Errno::INVAL | Errno::FAULT | Errno::PERM)) => Err(errno),
        // What else is wrong shows when the bytes are sent.
        _ => Ok(()),
    }
}
