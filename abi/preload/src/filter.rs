//! seccomp: a program that says which system calls it will make.
//!
//! It knows nothing of ours, and would be killed for one. So before it binds itself we retire: connections go back to TCP, and every call is
//! the C library's, as the program made it.

use std::ffi::c_int;

use libc::c_long;
use sockets::handover;

use crate::outcome::keeping_errno;
use crate::real;

/// Linux. In C it takes what each option wants; whoever passes fewer arguments leaves something in the other registers.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    before(libc::SYS_prctl, [option as usize, a, b]);
    // SAFETY: the program's own call.
    unsafe { real::prctl(option, a, b, c, d) }
}

/// Before a call by number.
pub(crate) fn before(number: c_long, arguments: [usize; 3]) {
    if is_binding(number, arguments) {
        keeping_errno(handover::retire);
    }
}

/// Whether a call binds the program. Without a filter it only asks whether there could be one.
fn is_binding(number: c_long, [a, b, c]: [usize; 3]) -> bool {
    match number {
        libc::SYS_prctl if a as c_int == libc::PR_SET_SECCOMP => {
            b as u32 == libc::SECCOMP_MODE_STRICT || c != 0
        }
        libc::SYS_seccomp if a as u32 == libc::SECCOMP_SET_MODE_FILTER => c != 0,
        libc::SYS_seccomp => a as u32 == libc::SECCOMP_SET_MODE_STRICT,
        _ => false,
    }
}
