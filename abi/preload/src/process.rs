//! fork and its kin: a process becomes two.

use std::ffi::{c_int, c_void};

use libc::pid_t;
use sockets::packet::table::sharing;
use sockets::table::{newborn, share_sockets};
use sockets::{packet, share};
use sys::errno::Errno;

use crate::outcome::{fail, keeping_errno};
use crate::{descriptor, real};

mod environment;
pub(crate) mod exec;
pub(crate) mod exit;
mod image;
mod spawn;
mod terminal;
mod vfork;

/// POSIX. What must be done on the way is done by handlers, so that it is also done where the C library forks by itself; here is seen only whether it succeeded.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fork() -> pid_t {
    // SAFETY: the program's own call.
    let pid = unsafe { real::fork() };
    if pid < 0 {
        keeping_errno(share::take_back_fork);
    }
    pid
}

/// BSD. The C library's own ends the parent where we do not see it, and what this one has to leave to others would be lost.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn daemon(stays: c_int, keeps: c_int) -> c_int {
    // SAFETY: plain calls on the program's behalf, here and below.
    match unsafe { fork() } {
        0 => {}
        -1 => return -1,
        // SAFETY: as above.
        _ => unsafe { exit::_exit(0) },
    }
    // SAFETY: as above.
    if unsafe { libc::setsid() } < 0 {
        return -1;
    }
    if stays == 0 {
        // SAFETY: a path of ours. The C library's does not ask either.
        unsafe { libc::chdir(c"/".as_ptr()) };
    }
    if keeps != 0 {
        return 0;
    }
    // SAFETY: as above.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null < 0 {
        return -1;
    }
    if !is_null(null) {
        // SAFETY: opened above.
        unsafe { descriptor::close(null) };
        return fail(Errno::NODEV) as c_int;
    }
    for standard in 0..3 {
        // SAFETY: the program's numbers.
        unsafe { descriptor::dup2(null, standard) };
    }
    if null > 2 {
        // SAFETY: opened above.
        unsafe { descriptor::close(null) };
    }
    0
}

/// Whether `fd` is the device that `/dev/null` should be, as the C library asks: a folder made by hand may have a file there.
fn is_null(fd: c_int) -> bool {
    // SAFETY: zeros are a valid stat.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: room for one.
    let known = unsafe { libc::fstat(fd, &raw mut found) } == 0;
    known && found.st_mode & libc::S_IFMT == libc::S_IFCHR && found.st_rdev == libc::makedev(1, 3)
}

/// POSIX. The C library runs no handlers for it.
#[allow(non_snake_case, reason = "its name")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn _Fork() -> pid_t {
    // SAFETY: the program's own call.
    forking(|| unsafe { real::_Fork() })
}

/// Linux. A thread, and a process that shares memory or is a guest in it as after `vfork`, need nothing.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn clone(
    start: extern "C" fn(*mut c_void) -> c_int,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_tid: *mut pid_t,
    tls: *mut c_void,
    child_tid: *mut pid_t,
) -> c_int {
    if flags & libc::CLONE_VM != 0 {
        before_sharer(flags);
        // SAFETY: the program's own call. Those of the last three that it did not pass it does not ask for by the flags.
        return unsafe { real::clone(start, stack, flags, argument, parent_tid, tls, child_tid) };
    }
    before_clone(flags);
    let inner = Start { start, argument };
    let inner = (&raw const inner).cast_mut().cast();
    forking(|| {
        // SAFETY: as above. The child has a copy of this stack, though it runs on another.
        unsafe { real::clone(begin, stack, flags, inner, parent_tid, tls, child_tid) }
    })
}

/// Before there is a child with memory of its own.
pub(crate) fn before_clone(flags: c_int) {
    if flags & libc::CLONE_FILES != 0 {
        share::before_uncounted();
    }
}

/// Before there is a thread that the C library does not make, or a child with this process's memory.
pub(crate) fn before_sharer(flags: c_int) {
    if flags & libc::CLONE_VFORK == 0 {
        sys::alone::expect_others();
    }
    if flags & libc::CLONE_THREAD == 0 {
        keeping_errno(before_guest);
        if flags & libc::CLONE_VFORK == 0 {
            // It may go on when this process has closed what both have.
            share::before_uncounted();
        }
    }
}

/// Before there is a child with this process's memory.
pub(crate) fn before_guest() {
    newborn::settle();
    share_sockets(None);
    sys::fork::expect_guest();
    sharing::before_vfork();
}

/// What the program wants its child to run.
struct Start {
    start: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
}

extern "C" fn begin(inner: *mut c_void) -> c_int {
    in_child();
    // SAFETY: `clone` passed it, and its memory is copied.
    let inner = unsafe { &*inner.cast::<Start>() };
    (inner.start)(inner.argument)
}

/// Does what fork handlers do, around a call that makes a child and runs none.
pub(crate) fn forking<P: Into<i64> + Copy>(fork: impl FnOnce() -> P) -> P {
    before();
    let pid = fork();
    match pid.into() {
        0 => in_child(),
        pid => keeping_errno(|| {
            after();
            if pid < 0 {
                share::take_back_fork();
            }
        }),
    }
    pid
}

extern "C" fn before() {
    keeping_errno(|| {
        share::before_fork();
        packet::fork::before();
    });
}

extern "C" fn after() {
    keeping_errno(|| {
        packet::fork::after();
        share::after_fork();
    });
}

extern "C" fn in_child() {
    keeping_errno(|| {
        packet::fork::in_child();
        share::in_child();
    });
}

/// Around the C library's `fork`, which holds its list of streams from after this on: who has that, as `fflush(NULL)`, may wait for the turn of a connection
/// that [`before`] takes. So the list comes first.
extern "C" fn before_fork() {
    crate::stdio::native::hold_list();
    before();
}

extern "C" fn after_fork() {
    after();
    crate::stdio::native::release_list();
}

extern "C" fn in_forked_child() {
    in_child();
    crate::stdio::native::reset_list();
}

extern "C" fn start() {
    keeping_errno(|| {
        // First: what is taken over below is a connection, to which all this applies.
        crate::host::start();
        sys::fork::settle();
        // SAFETY: plain functions that live as long as the program. If the C library has no memory for them the program will not get far.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_forked_child)) };
        // A socket there is of who started this program, as inetd does.
        if sockets::handover::arrival::take_over() {
            crate::stdio::standard::begin();
        }
    });
}

/// Run by the dynamic linker before the program begins. The only one: those of one library run in an order that nobody has promised.
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
#[used]
static START: extern "C" fn() = start;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn not_all_that_can_be_opened_is_null() {
        for (path, is_null) in [
            ("/dev/null", true),
            ("/dev/zero", false),
            ("/proc/self/exe", false),
        ] {
            let file = File::open(path).expect("there");
            assert_eq!(super::is_null(file.as_raw_fd()), is_null, "{path}");
        }
    }
}
