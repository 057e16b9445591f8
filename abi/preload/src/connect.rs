//! accept, connect, shutdown; and what is noted where socket and listen have done their part.

use std::ffi::c_int;

use libc::{sockaddr, socklen_t};
use sockets::conn::Way;
use sockets::{accept, ends, table};
use sys::errno::Errno;

use crate::outcome::{
    Outcome, borrow, checked, connection, errno, fail, keeping_errno, with_a_number,
};
use crate::{extended, real, via_socket};

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the program's pointers, passed on; here and below.
    unsafe { via_socket::accept(fd, address, len, 0) }
        // SAFETY: as above.
        .or(|| accept_by(fd, || unsafe { real::accept(fd, address, len) }, 0))
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { via_socket::accept(fd, address, len, flags) }
        // SAFETY: as above.
        .or(|| accept_by(fd, || unsafe { real::accept4(fd, address, len, flags) }, flags))
}

/// POSIX. Some programs call it again to ask whether it is done.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn connect(
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: the program promises `len` bytes.
    let outcome = unsafe { via_socket::connect(fd, address, len) };
    if outcome != Outcome::NotOurs {
        return outcome.or(|| -1);
    }
    // SAFETY: as above.
    let dissolves = unsafe { dissolves(address, len) };
    if dissolves && let Some(borrowed) = borrow(fd) {
        keeping_errno(|| ends::before_disconnect(borrowed));
    }
    // SAFETY: as above.
    let result = unsafe { real::connect(fd, address, len) };
    if result < 0 && !dissolves && extended::is(fd) && errno() == Errno::INVAL {
        // Of the stand-in, which has no addresses of IP.
        return fail(Errno::ISCONN) as c_int;
    }
    if !dissolves && let Some(borrowed) = borrow(fd) {
        keeping_errno(|| table::connected(borrowed, checked(result as isize).map(drop)));
    }
    result
}

/// Whether it is no address: what there is, is dissolved.
///
/// # Safety
/// `len` bytes are at `address`, if it is memory.
pub(crate) unsafe fn dissolves(address: *const sockaddr, len: socklen_t) -> bool {
    // SAFETY: the same contract.
    unsafe { sys::argument::is_none(address.cast(), len) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    let known = connection(fd);
    // Until it is done nobody moves to the ring.
    let under_way = known.map(|(conn, _)| conn.native(Way::Out));
    let outcome: Outcome<c_int> = match (known, &under_way) {
        (Some((conn, borrowed)), Some(None)) => match ends::shutdown(conn, borrowed, how) {
            Ok(true) => Outcome::Done(0),
            Ok(false) => Outcome::NotOurs,
            Err(errno) => Outcome::Failed(errno),
        },
        _ => extended::shutdown(fd, how).otherwise(|| via_socket::shutdown(fd, how)),
    };
    // SAFETY: as above.
    outcome.or(|| unsafe { real::shutdown(fd, how) })
}

/// `socket` has returned `fd`. What is noted is what a short connection need not ask later.
pub(crate) fn made(fd: c_int, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let is_tcp = matches!(domain, libc::AF_INET | libc::AF_INET6)
        && kind == libc::SOCK_STREAM
        && matches!(protocol, 0 | libc::IPPROTO_TCP);
    via_socket::given_out(fd);
    keeping_errno(|| ends::made(fd, is_tcp))
}

/// `listen` has returned `result`.
pub(crate) fn listens(fd: c_int, result: c_int) -> c_int {
    if result == 0 {
        table::listens(fd);
    }
    result
}

/// What is accepted inherits no `O_NONBLOCK`.
fn accept_by(listener: c_int, native: impl Fn() -> c_int, flags: c_int) -> c_int {
    let fd = accept::patiently(listener, || with_a_number(native));
    via_socket::given_out(fd);
    keeping_errno(|| ends::accepted(listener, fd, flags & libc::SOCK_NONBLOCK != 0))
}
