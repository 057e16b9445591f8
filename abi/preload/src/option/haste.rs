//! Time-outs of less than no time, of which the kernel does not say that it has them.

use std::ffi::{c_int, c_void};

use sockets::conn::Way;
use sockets::haste;

use crate::outcome::keeping_errno;

/// The kernel has taken an option.
///
/// # Safety
/// It has read the value there.
pub(super) unsafe fn after_set(fd: c_int, level: c_int, name: c_int, value: *const c_void) {
    let way = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO | SO_RCVTIMEO_NEW) => Way::In,
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO | SO_SNDTIMEO_NEW) => Way::Out,
        _ => return,
    };
    // SAFETY: by the contract: of either structure the seconds are the first, and have 64 bits.
    let seconds = unsafe { value.cast::<i64>().read_unaligned() };
    keeping_errno(|| {
        sys::socket::with_borrowed(fd, |fd| haste::note(fd, way, seconds < 0));
    });
}

/// `asm-generic/socket.h`.
const SO_RCVTIMEO_NEW: c_int = 66;
const SO_SNDTIMEO_NEW: c_int = 67;
