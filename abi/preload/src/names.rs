//! glibc's other names for calls of ours, which it exports for programs that were written to them, and for other libraries of its own.
//!
//! Those that only glibc's own libraries may use (`GLIBC_PRIVATE`) are left alone.

use std::ffi::{c_int, c_void};

use libc::{fd_set, nfds_t, pid_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval};

use crate::{connect, descriptor, option, poll, process, receive, send};

/// Declares names that are others for functions of ours.
macro_rules! names {
    ($($other:ident = $ours:path: ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("glibc: [`", stringify!($ours), "`].")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $other($($argument: $type),*) -> $result {
            // SAFETY: the program's own call, which is the same by either name.
            unsafe { $ours($($argument),*) }
        }
    )*};
}

names! {
    __close = descriptor::close: (fd: c_int) -> c_int;
    __dup2 = descriptor::dup2: (fd: c_int, new: c_int) -> c_int;
    __fcntl = option::fcntl: (fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
    __connect = connect::connect: (fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int;
    __read = receive::read: (fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t;
    __write = send::write: (fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t;
    __send = send::send: (fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    __poll = poll::poll: (fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    __select = poll::select: (count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    __fork = process::fork: () -> pid_t;
    __clone = process::clone: (start: extern "C" fn(*mut c_void) -> c_int, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent_tid: *mut pid_t, tls: *mut c_void, child_tid: *mut pid_t) -> c_int;
}
