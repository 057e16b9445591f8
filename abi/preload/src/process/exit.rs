//! The end of a process.

use std::ffi::c_int;

use sockets::handover::departure::before_exit;
use sockets::packet;

use crate::outcome::keeping_errno;
use crate::real;

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    end();
    // SAFETY: the program's own call.
    unsafe { real::_exit(status) };
    std::process::abort()
}

/// C.
#[allow(non_snake_case, reason = "its name")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn _Exit(status: c_int) -> ! {
    // SAFETY: as above; they are the same.
    unsafe { _exit(status) }
}

/// C. What the program asked to be called at such an end may still use its connections.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn quick_exit(status: c_int) -> ! {
    // SAFETY: a plain function. Registered last it is called first, and does no harm to what comes after.
    unsafe { at_quick_exit(end) };
    // SAFETY: as above.
    unsafe { real::quick_exit(status) };
    std::process::abort()
}

extern "C" fn end() {
    keeping_errno(|| {
        packet::table::finish();
        before_exit();
    });
}

unsafe extern "C" {
    fn at_quick_exit(function: extern "C" fn()) -> c_int;
}

/// As [`end`], at the end of `exit`, where the C library would write out what is in its buffers afterwards.
extern "C" fn end_of_exit() {
    if packet::table::any() {
        // SAFETY: all streams of the C library's.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    }
    end();
}

/// Run at the end of `exit`, after what the program asked for.
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
#[used]
static END: extern "C" fn() = end_of_exit;
