//! Options that only TCP can honour: the connection goes back there before the kernel hears of them. What was set by other ways is asked when a
//! connection would leave TCP.

use std::ffi::{c_int, c_void};

use libc::socklen_t;
use sockets::ends;
use sockets::handover::go_back;
use sockets::reason::Reason;
use sys::tcp::STAMPS_SENT;

use crate::buffers::is_memory;
use crate::outcome::{connection, keeping_errno};

/// The program is about to set an option.
///
/// # Safety
/// There are `len` bytes at `value`, if that can be memory.
pub(super) unsafe fn before_set(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) {
    // SAFETY: by the contract, here and below.
    let head = || unsafe { head(value, len) };
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF)
        | (libc::IPPROTO_TCP, libc::TCP_REPAIR) => leave(fd, Reason::Option),
        (libc::SOL_SOCKET, libc::SO_PEEK_OFF) if head().is_some_and(|at| at as c_int >= 0) => {
            leave(fd, Reason::Option);
        }
        // What is received need not wait for it.
        (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE) if head() != Some(u32::MAX) => {
            leave_with_what_is_sent(fd);
        }
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPING | SO_TIMESTAMPING_NEW)
            if head().is_some_and(|flags| flags & STAMPS_SENT != 0) =>
        {
            leave_with_what_is_sent(fd);
        }
        // TLS changes nothing before it has keys.
        (libc::IPPROTO_TCP, libc::TCP_ULP) if head().is_some_and(|name| name != TLS) => {
            leave(fd, Reason::NotTcp);
        }
        (libc::SOL_TLS, _) => leave(fd, Reason::NotTcp),
        _ => {}
    }
}

/// The program is about to ask for an option.
pub(super) fn before_get(fd: c_int, level: c_int, name: c_int) {
    // Which receives.
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE) {
        leave(fd, Reason::Option);
    }
}

#[cold]
fn leave(fd: c_int, reason: Reason) {
    keeping_errno(|| {
        if let Some((conn, fd)) = connection(fd) {
            go_back(conn, fd, reason);
        }
    });
}

#[cold]
fn leave_with_what_is_sent(fd: c_int) {
    keeping_errno(|| {
        if let Some((conn, fd)) = connection(fd) {
            // What is wrong with the connection the next call tells.
            let _ = ends::leave_ring(conn, fd, Reason::Option);
        }
    });
}

/// The first bytes of a value, the others zero.
unsafe fn head(value: *const c_void, len: socklen_t) -> Option<u32> {
    if !is_memory(value) || len.cast_signed() <= 0 {
        return None;
    }
    let mut head = [0; size_of::<u32>()];
    for (at, byte) in head.iter_mut().enumerate().take(len as usize) {
        // SAFETY: by the caller's contract.
        *byte = unsafe { value.cast::<u8>().add(at).read() };
    }
    Some(u32::from_ne_bytes(head))
}

/// `asm-generic/socket.h`.
const SO_TIMESTAMPING_NEW: c_int = 65;
/// `TCP_ULP`'s name of it, with or without a zero at its end.
const TLS: u32 = u32::from_ne_bytes(*b"tls\0");
