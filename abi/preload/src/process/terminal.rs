//! Programs on a terminal of their own. The C library's put it over the standard numbers by calls that we do not see.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use libc::pid_t;
use sys::errno::Errno;

use super::{exit, fork};
use crate::outcome::{errno, keeping_errno};
use crate::{descriptor, option, real};

/// BSD.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn forkpty(
    leader: *mut c_int,
    name: *mut c_char,
    settings: *const c_void,
    size: *const c_void,
) -> pid_t {
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: the program's own room, or null, and ours; plain calls on its behalf, here and below.
    unsafe {
        if real::openpty(&raw mut ours, &raw mut theirs, name, settings, size) < 0 {
            return -1;
        }
        match fork() {
            0 => {
                descriptor::close(ours);
                if login_tty(theirs) != 0 {
                    exit::_exit(1);
                }
                0
            }
            child => {
                keeping_errno(|| descriptor::close(theirs));
                if child < 0 {
                    keeping_errno(|| descriptor::close(ours));
                } else {
                    leader.write(ours);
                }
                child
            }
        }
    }
}

/// BSD.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn login_tty(terminal: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        libc::setsid();
        if option::ioctl(terminal, libc::TIOCSCTTY, ptr::null_mut()) < 0 {
            return -1;
        }
        for standard in 0..3 {
            while descriptor::dup2(terminal, standard) < 0 && errno() == Errno::BUSY {}
        }
        if terminal > 2 {
            descriptor::close(terminal);
        }
    }
    0
}
