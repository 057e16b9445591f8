//! accept, connect, shutdown.

use std::ffi::c_int;

use libc::{sockaddr, socklen_t};
use sockets::conn::{Origin, Way};
use sockets::{ends, table};

use crate::buffers::is_memory;
use crate::outcome::{Outcome, borrow, connection, keeping_errno};
use crate::{extended, real, via_socket};

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the program's pointers, passed on; here and below.
    unsafe { via_socket::accept(fd, address, len, 0) }
        // SAFETY: as above.
        .or(|| accepted(unsafe { real::accept(fd, address, len) }, 0))
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { via_socket::accept(fd, address, len, flags) }
        // SAFETY: as above.
        .or(|| accepted(unsafe { real::accept4(fd, address, len, flags) }, flags))
}

/// POSIX. Some programs call it again to ask whether it is done.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the program promises `len` bytes.
    let outcome = unsafe { via_socket::connect(fd, address, len) };
    if outcome != Outcome::NotOurs {
        return outcome.or(|| -1);
    }
    // SAFETY: as above.
    if unsafe { dissolves(address, len) }
        && let Some(borrowed) = borrow(fd)
    {
        keeping_errno(|| ends::before_disconnect(borrowed));
    }
    // SAFETY: as above.
    let result = unsafe { real::connect(fd, address, len) };
    keeping_errno(|| {
        if let Some(fd) = borrow(fd)
            && sys::socket::is_tcp(fd)
        {
            table::insert(fd, Origin::Connected);
        }
    });
    result
}

/// Whether it is no address: what there is, is dissolved.
///
/// # Safety
/// `len` bytes are at `address`, if it is memory.
pub(crate) unsafe fn dissolves(address: *const sockaddr, len: socklen_t) -> bool {
    let family = size_of::<libc::sa_family_t>();
    is_memory(address)
        && (family..=size_of::<libc::sockaddr_storage>()).contains(&(len as usize))
        // SAFETY: by the caller's contract, so much is there.
        && i32::from(unsafe { (&raw const (*address).sa_family).read_unaligned() }) == libc::AF_UNSPEC
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
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

/// Asks the kernel as little as can be: servers of short connections would notice.
fn accepted(fd: c_int, flags: c_int) -> c_int {
    keeping_errno(|| ends::given_out(fd));
    if let Some(borrowed) = borrow(fd) {
        keeping_errno(|| {
            if sys::socket::has_protocol_tcp(borrowed) {
                // What was accepted is a stream, and inherits no `O_NONBLOCK`.
                table::insert_accepted(borrowed, flags & libc::SOCK_NONBLOCK != 0);
            }
        });
    }
    fd
}
