//! Calls on a connection that stays on TCP, and that do not wait: the kernel's, and counted.
//!
//! They are functions of their own, to which the public ones jump, because one that makes room for all that the others need pays for it with each call.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, socklen_t, ssize_t};
use sockets::conn::{Conn, Way};
use sockets::io::passed;
use sockets::table::has_no_rings;

use crate::option::set_again;
use crate::real;

/// Defines a call that has the kernel move bytes of `conn`.
macro_rules! settled {
    ($($way:ident $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// The program vouches for the arguments, as it does to the kernel.
        #[inline(never)]
        pub(crate) unsafe extern "C-unwind" fn $name($($argument: $type,)* conn: &Conn) -> ssize_t {
            // SAFETY: by the contract.
            passed(conn, Way::$way, unsafe { real::$name($($argument),*) })
        }
    )*};
}

settled! {
    In recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int);
    In read(fd: c_int, buffer: *mut c_void, len: size_t);
    Out send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int);
    Out write(fd: c_int, buffer: *const c_void, len: size_t);
    Out writev(fd: c_int, buffers: *const iovec, count: c_int);
    Out sendfile(out: c_int, input: c_int, offset: *mut off_t, count: size_t);
}

/// `TCP_NODELAY` or `TCP_CORK`, where there were no rings when it was called.
///
/// # Safety
/// As the others.
#[inline(never)]
pub(crate) unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        let result = real::setsockopt(fd, level, name, value, len);
        if result == 0 && !has_no_rings(fd) {
            return set_again(fd, level, name, value, len);
        }
        result
    }
}
