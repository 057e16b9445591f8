//! close and dup.

use std::ffi::c_int;

use sockets::table::newborn;
use sockets::{ends, packet};
use sys::errno::Errno;
use sys::{fds, hidden, limits};

use crate::outcome::{fail, keeping_errno, with_a_number};
use crate::poll::reach;
use crate::stdio::standard;
use crate::{extended, filter, real, stdio, uring, via_socket};

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if newborn::end(fd) || is_for_table(fd) && ends::before_close_other(fd) {
        // SAFETY: the program's own call.
        let closed = unsafe { real::close(fd) };
        ends::closed(fd);
        return closed;
    }
    close_any(fd)
}

/// Whether nobody but the table may have something at that number.
#[inline]
fn is_for_table(fd: c_int) -> bool {
    let is_apart = hidden::is_hidden(fd) || standard::is(fd) || extended::is(fd);
    !is_apart && !uring::own::any() && !packet::table::any()
}

/// As [`close`], of any descriptor.
#[inline(never)]
extern "C-unwind" fn close_any(fd: c_int) -> c_int {
    if hidden::is_hidden(fd) {
        // To the program there is nothing at this number.
        return fail(Errno::BADF) as c_int;
    }
    standard::before_change(fd);
    uring::own::closed(fd);
    let _section = via_socket::hold(fd);
    let removed = keeping_errno(|| {
        extended::before_close(fd);
        ends::before_close(fd);
        packet::table::remove(fd)
    });
    // SAFETY: the program's own call.
    let closed = unsafe { real::close(fd) };
    ends::closed(fd);
    keeping_errno(|| drop(removed));
    closed
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
    if flags & CLOSE_RANGE_UNSHARE != 0 {
        filter::before_unsharing(libc::CLONE_FILES);
    }
    let _section = via_socket::hold_all();
    let mut removed = Vec::new();
    let closes = flags & !CLOSE_RANGE_UNSHARE == 0 && first <= last && may_close_ranges();
    if closes {
        keeping_errno(|| {
            uring::own::closed_range(first, last);
            extended::before_close_range(first, last);
            removed = packet::table::remove_range(first, last);
        });
    }
    // SAFETY: the program's own call, in pieces that leave out what is ours.
    let closed = ends::close_range(
        first,
        last,
        |first, last| unsafe { real::close_range(first, last, flags) },
        closes,
    );
    keeping_errno(|| drop(removed));
    closed
}

/// Whether there is such a call, and no filter refuses it: what would be lost with a descriptor must not be if that stays.
fn may_close_ranges() -> bool {
    // SAFETY: no descriptor has that number.
    keeping_errno(|| unsafe { real::close_range(u32::MAX, u32::MAX, 0) } == 0)
}

/// BSD, and glibc from 2.34.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let first = first.max(0);
    // SAFETY: as above.
    if unsafe { close_range(first.cast_unsigned(), u32::MAX, 0) } != 0 {
        close_each(first);
    }
}

/// As [`closefrom`], where the kernel has no call for it, or a filter refuses that. Natively the C library does the same, and ends the program where it cannot look.
#[cold]
fn close_each(first: c_int) {
    let listed = fds::each(|fd| {
        if fd >= first {
            close_any(fd);
        }
    });
    if listed.is_err() {
        // Those above the limit, if it was lower once, are not found.
        let end = limits::descriptors().and_then(|end| c_int::try_from(end).ok());
        for fd in first..end.unwrap_or(FDS_MAX) {
            close_any(fd);
        }
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    if hidden::is_hidden(fd) {
        return fail(Errno::BADF) as c_int;
    }
    // SAFETY: the program's own call.
    let new = ends::duplicated(fd, with_a_number(|| unsafe { real::dup(fd) }));
    extended::duplicated(fd, new);
    keeping_errno(|| {
        let _section = via_socket::hold(fd);
        packet::table::duplicate(fd, new);
    });
    standard::changed(new);
    new
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, new: c_int) -> c_int {
    if fd == new {
        if hidden::is_hidden(fd) {
            return fail(Errno::BADF) as c_int;
        }
        // SAFETY: the program's own call.
        return unsafe { real::dup2(fd, new) };
    }
    // SAFETY: as above.
    replaced(fd, new, || unsafe { real::dup2(fd, new) })
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
    if fd == new {
        // SAFETY: the program's own call.
        return unsafe { real::dup3(fd, new, flags) };
    }
    if flags & !libc::O_CLOEXEC != 0 {
        // To be refused, and what is at `new` stays.
        return fail(Errno::INVAL) as c_int;
    }
    // SAFETY: as above.
    replaced(fd, new, || unsafe { real::dup3(fd, new, flags) })
}

/// POSIX. As far as two new descriptors go, like [`pipe2`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pipe(made: *mut c_int) -> c_int {
    // SAFETY: the program's room for two, here and below.
    unsafe { two(made, with_a_number(|| real::pipe(made))) }
}

/// POSIX. Where something was closed by ways that we did not see, its number is another's now.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pipe2(made: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { two(made, with_a_number(|| real::pipe2(made, flags))) }
}

/// POSIX. As [`pipe2`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    made: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    let pair = || unsafe { real::socketpair(domain, kind, protocol, made) };
    // SAFETY: as above.
    unsafe { two(made, with_a_number(pair)) }
}

unsafe fn two(made: *const c_int, result: c_int) -> c_int {
    if result == 0 {
        keeping_errno(|| {
            for at in 0..2 {
                // SAFETY: the kernel has just written both.
                let fd = unsafe { made.add(at).read() };
                via_socket::given_out(fd);
                ends::given_out(fd);
            }
        });
    }
    result
}

fn replaced(fd: c_int, new: c_int, replace: impl FnOnce() -> c_int) -> c_int {
    // A call that will fail changes nothing. The kernel gives no number from the limit on, and what was there before that was lowered stays.
    let is_number = limits::descriptors().is_none_or(|end| u64::from(new.cast_unsigned()) < end);
    let may_be = !hidden::is_hidden(fd) && (is_number || !hidden::is_hidden(new));
    if !may_be || !keeping_errno(|| ends::step_aside(new)) {
        return fail(Errno::BADF) as c_int;
    }
    standard::before_change(new);
    let _section = via_socket::hold_all();
    let is_open = is_number && sys::socket::is_open(fd);
    let removed = keeping_errno(|| {
        let mut removed = None;
        if is_open {
            uring::own::closed(new);
            extended::before_close(new);
            removed = packet::table::replace(fd, new);
            ends::before_close(new);
        }
        removed
    });
    let result = ends::duplicated(fd, replace());
    keeping_errno(|| {
        drop(removed);
        if result < 0 && is_open {
            ends::closed(new);
            drop(packet::table::remove(new));
        }
    });
    extended::duplicated(fd, result);
    reach::note(result);
    standard::changed(new);
    stdio::put_at(result);
    result
}

/// What the kernel allows by default (`fs.nr_open`).
const FDS_MAX: c_int = 1 << 20;
/// `linux/close_range.h`: among threads that share the table this one has a copy from now on.
const CLOSE_RANGE_UNSHARE: c_int = 2;
