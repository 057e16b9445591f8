//! Programs in which nothing may be done beside their own calls: connections go back to TCP, and every call is the C library's.
//!
//! One that says by seccomp which system calls it will make knows nothing of ours, and would be killed for one. And a thread that takes a table of descriptors of its own (`unshare`) means other files by the
//! same numbers than the other threads, which no table here can tell.

use std::ffi::c_int;

use libc::c_long;
use sockets::host::host;
use sockets::reason::Reason;
use sockets::{epoll, handover};

use crate::outcome::keeping_errno;
use crate::{real, via_socket};

/// Linux. In C it takes what each option wants; whoever passes fewer arguments leaves something in the other registers.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn prctl(
    option: c_int,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
) -> c_int {
    before(libc::SYS_prctl, [option as usize, a, b]);
    // SAFETY: the program's own call.
    unsafe { real::prctl(option, a, b, c, d) }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unshare(flags: c_int) -> c_int {
    before_unsharing(flags);
    // SAFETY: as above.
    unsafe { real::unshare(flags) }
}

/// Before a thread has what `flags` say to itself.
pub(crate) fn before_unsharing(flags: c_int) {
    if flags & libc::CLONE_FILES != 0 && host().is_some_and(|host| host.has_threads()) {
        via_socket::part_thread();
        keeping_errno(|| {
            epoll::given::give_all();
            handover::retire(Reason::RawCalls);
        });
    }
}

/// Before a call by number.
pub(crate) fn before(number: c_long, arguments: [usize; 3]) {
    if is_binding(number, arguments) {
        keeping_errno(|| handover::retire(Reason::Filtered));
    } else if number == libc::SYS_unshare {
        before_unsharing(arguments[0] as c_int);
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
