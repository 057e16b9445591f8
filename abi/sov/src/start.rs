//! The first call, and the end of the program.

use std::ffi::c_int;
use std::sync::OnceLock;

use sockets::packet::{fork, parse_over, table};
use sys::errno::Errno;
use sys::mem::Memory;

/// Reads the environment.
///
/// # Errors
/// `EINVAL` for versions that there are not.
pub(crate) fn once() -> Result<(), Errno> {
    let known = KNOWN.get_or_init(|| {
        let words = std::env::var("SOVIA_PACKET").unwrap_or_default();
        let Ok((variant, driver)) = parse_over(&words, &[&shm::DRIVER, &iwarp::DRIVER]) else {
            return false;
        };
        table::install(driver, variant, Some(borrow));
        // SAFETY: registers functions of this library, which is never unloaded while it has threads.
        unsafe {
            libc::atexit(end);
            at_quick_exit(end);
            libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        }
        true
    });
    if *known { Ok(()) } else { Err(Errno::INVAL) }
}

extern "C" fn before_fork() {
    fork::before_unshared();
}

extern "C" fn after_fork() {
    fork::after();
}

extern "C" fn in_child() {
    fork::in_child();
}

extern "C" fn end() {
    table::finish();
}

unsafe extern "C" {
    fn at_quick_exit(function: extern "C" fn()) -> c_int;
}

/// As POSIX's, which calls nothing that `atexit` was given: the program's sockets are closed first.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn _exit(status: c_int) -> ! {
    end();
    // SAFETY: what the C library's does.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    std::process::abort()
}

/// C's name for the same.
#[allow(non_snake_case, reason = "its name")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

fn borrow(addr: usize, len: usize) -> Option<Memory> {
    // SAFETY: the program sends from there, and it stays mapped until the call returns; what is kept longer is looked at
    // only when the program sends from that address again.
    unsafe { Memory::borrowed(addr, len) }.ok()
}

static KNOWN: OnceLock<bool> = OnceLock::new();
