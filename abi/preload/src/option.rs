//! fcntl, ioctl, socket options.

use std::ffi::{c_int, c_ulong, c_void};

use libc::socklen_t;
use sockets::reason::Reason;
use sockets::{ends, packet, table};
use sys::errno::Errno;
use sys::hidden;

use crate::buffers::is_memory;
use crate::outcome::{Outcome, connection, fail, keeping_errno, with_a_number, with_rings};
use crate::poll::reach;
use crate::stdio::standard;
use crate::{extended, real, settled, via_socket};

mod demand;
mod haste;

/// POSIX. The third argument, if there is one, is a number or a pointer: either fits a register.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the program's own call, here and below.
    control(fd, command, argument, || unsafe {
        real::fcntl(fd, command, argument)
    })
}

/// glibc, for large files.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: as above.
    control(fd, command, argument, || unsafe {
        real::fcntl64(fd, command, argument)
    })
}

fn control(fd: c_int, command: c_int, argument: *mut c_void, native: impl Fn() -> c_int) -> c_int {
    if hidden::is_hidden(fd) {
        return fail(Errno::BADF) as c_int;
    }
    if command == libc::F_SETFL && argument.addr() as c_int & libc::O_ASYNC != 0 {
        // The kernel's signals come with the kernel's bytes.
        via_socket::share(fd);
    }
    if matches!(command, libc::F_SETOWN | F_SETOWN_EX) {
        // SIGURG comes when urgent data do, not when the program calls.
        via_socket::watch(fd);
    }
    // Only a call that makes a descriptor says EMFILE.
    let result = with_a_number(native);
    if result >= 0 {
        match command {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                extended::duplicated(fd, result);
                reach::note(result);
                keeping_errno(|| {
                    let _section = via_socket::hold(fd);
                    packet::table::duplicate(fd, result);
                });
                let result = ends::duplicated(fd, result);
                standard::changed(result);
                return result;
            }
            libc::F_SETFL => {
                let flags = argument.addr() as c_int;
                note_nonblocking(fd, flags & libc::O_NONBLOCK != 0);
                note_signals(fd, flags & libc::O_ASYNC != 0);
            }
            libc::F_SETFD => keeping_errno(|| {
                ends::set_inherited(fd, argument.addr() as c_int & libc::FD_CLOEXEC == 0)
            }),
            _ => {}
        }
    }
    result
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if request == SIOCATMARK
        && is_memory(argument)
        && let Some((conn, borrowed)) = keeping_errno(|| with_rings(fd))
        && let Some(at) = keeping_errno(|| ends::at_mark(conn, borrowed))
    {
        // SAFETY: the program's pointer to an int.
        unsafe { argument.cast::<c_int>().write_unaligned(at.into()) };
        return 0;
    }
    // SAFETY: as above.
    let outcome = unsafe { via_socket::control(fd, request, argument) };
    if outcome != Outcome::NotOurs {
        return outcome.or(|| -1);
    }
    if request == libc::FIOASYNC {
        via_socket::share(fd);
    }
    // SAFETY: as above.
    let result = unsafe { real::ioctl(fd, request, argument) };
    if result < 0 {
        return result;
    }
    match request {
        libc::FIONBIO => {
            // SAFETY: the kernel has just read an int there.
            note_nonblocking(fd, unsafe { argument.cast::<c_int>().read() } != 0);
        }
        libc::FIOASYNC => {
            // SAFETY: as above.
            note_signals(fd, unsafe { argument.cast::<c_int>().read() } != 0);
        }
        libc::FIONREAD | libc::TIOCOUTQ | SIOCOUTQNSD => {
            if let Some((conn, borrowed)) = keeping_errno(|| with_rings(fd)) {
                // SAFETY: the kernel has just written an int there.
                let count = unsafe { &mut *argument.cast::<c_int>() };
                keeping_errno(|| {
                    *count = if request == libc::FIONREAD {
                        ends::readable_bytes(conn, borrowed, *count).unwrap_or(*count)
                    } else {
                        ends::unread_bytes(conn, borrowed, *count)
                    };
                });
            } else if extended::is(fd)
                && let Some(bytes) = keeping_errno(|| extended::readable_bytes(fd))
            {
                // What is sent leaves at once, or is refused.
                let bytes = if request == libc::FIONREAD { bytes } else { 0 };
                // SAFETY: as above.
                unsafe { argument.cast::<c_int>().write(bytes) };
            }
        }
        libc::FIOCLEX | libc::FIONCLEX => {
            keeping_errno(|| ends::set_inherited(fd, request == libc::FIONCLEX))
        }
        _ => {}
    }
    result
}

/// POSIX. The C library's asks the kernel by a call of its own, which knows only of bytes on TCP.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sockatmark(fd: c_int) -> c_int {
    let mut at: c_int = 0;
    // SAFETY: an int.
    match unsafe { ioctl(fd, SIOCATMARK, (&raw mut at).cast()) } {
        -1 => -1,
        _ => at,
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the program's own promises; here and below.
    unsafe {
        if is_switch(level, name) && table::has_no_rings(fd) {
            settled::setsockopt(fd, level, name, value, len)
        } else {
            set_any(fd, level, name, value, len)
        }
    }
}

/// What programs set with each answer. Only where there are rings do we care.
#[inline]
fn is_switch(level: c_int, name: c_int) -> bool {
    level == libc::IPPROTO_TCP && matches!(name, libc::TCP_NODELAY | libc::TCP_CORK)
}

/// The kernel has been told of a [switch](is_switch), and the connection has rings by now: for as long as that, perhaps.
#[cold]
pub(crate) unsafe extern "C-unwind" fn set_again(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: as above.
    let result = unsafe { set_any(fd, level, name, value, len) };
    keeping_errno(|| {
        if let Some((conn, fd)) = with_rings(fd) {
            conn.keep_options_again(fd);
        }
    });
    result
}

/// As [`setsockopt`], of any descriptor and option.
#[inline(never)]
unsafe extern "C-unwind" fn set_any(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: as above.
    let outcome = unsafe { via_socket::set_option(fd, level, name, value, len) };
    if outcome != Outcome::NotOurs {
        return outcome.or(|| -1);
    }
    // SAFETY: as above.
    unsafe { demand::before_set(fd, level, name, value, len) };
    if is_switch(level, name)
        && len.cast_signed() >= size_of::<c_int>() as c_int
        && is_memory(value)
        && let Some((conn, _)) = keeping_errno(|| with_rings(fd))
    {
        // SAFETY: the program promises `len` bytes.
        let on = unsafe { value.cast::<c_int>().read_unaligned() } != 0;
        let kept = match name {
            libc::TCP_NODELAY => conn.set_nodelay(on),
            _ => conn.set_cork(on),
        };
        if kept {
            return 0;
        }
    }
    // SAFETY: as above.
    let outcome = unsafe { extended::set(fd, level, name, value, len) };
    if (level, name) == (libc::SOL_SOCKET, libc::SO_RCVLOWAT) {
        sockets::conn::low_water_is_used();
    }
    // SAFETY: as above.
    let result = outcome.or(|| unsafe { real::setsockopt(fd, level, name, value, len) });
    if result == 0
        && (level, name) == (libc::SOL_SOCKET, libc::SO_RCVLOWAT)
        && let Some((conn, borrowed)) = keeping_errno(|| connection(fd))
    {
        keeping_errno(|| conn.note_low_water(borrowed));
    }
    if result == 0 {
        // SAFETY: as above; the kernel has just read it.
        unsafe { haste::after_set(fd, level, name, value) };
    }
    if result == 0
        && (level, name) == (libc::IPPROTO_TCP, libc::TCP_INQ)
        && let Some(conn) = table::known(fd)
    {
        conn.forget_what_it_says();
    }
    result
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    let outcome = unsafe { via_socket::get_option(fd, level, name, value, len) };
    if outcome != Outcome::NotOurs {
        return outcome.or(|| -1);
    }
    demand::before_get(fd, level, name);
    // SAFETY: as above.
    let outcome = unsafe { extended::get(fd, level, name, value, len) };
    // SAFETY: as above.
    let result = outcome.or(|| unsafe { real::getsockopt(fd, level, name, value, len) });
    if result == 0
        && (level, name) == (libc::IPPROTO_TCP, libc::TCP_INFO)
        && let Some((conn, borrowed)) = keeping_errno(|| with_rings(fd))
        // SAFETY: the kernel has just written there how much it wrote.
        && unsafe { len.read() } > 0
    {
        // SAFETY: the kernel has just written at least one byte there: the state is the first.
        let state = unsafe { &mut *value.cast::<u8>() };
        *state = keeping_errno(|| ends::told_state(conn, borrowed, *state));
    }
    if result == 0
        && (level, name) == (libc::SOL_SOCKET, libc::SO_ERROR)
        && let Some((conn, borrowed)) = keeping_errno(|| with_rings(fd))
        // SAFETY: the kernel has just written there how much it wrote.
        && unsafe { len.read() } as usize == size_of::<c_int>()
    {
        // SAFETY: the kernel has just written an int there, as below.
        let error = unsafe { &mut *value.cast::<c_int>() };
        *error = keeping_errno(|| ends::told_error(conn, borrowed, *error));
    }
    if result == 0
        && level == libc::IPPROTO_TCP
        && let Some(on) = keeping_errno(|| with_rings(fd)).and_then(|(conn, _)| match name {
            libc::TCP_NODELAY => conn.nodelay(),
            libc::TCP_CORK => conn.cork(),
            _ => None,
        })
    {
        // SAFETY: as the caller says.
        unsafe { tell(value, len, c_int::from(on)) };
    }
    if result == 0
        && (level, name) == (libc::SOL_SOCKET, libc::SO_RCVLOWAT)
        && let Some(bytes) = keeping_errno(|| with_rings(fd)).and_then(|(conn, _)| conn.low_water())
    {
        // SAFETY: as the caller says.
        unsafe { tell(value, len, bytes.cast_signed()) };
    }
    result
}

/// Puts `said` where the kernel has told an option: an int, or so many bytes of one as there was room for.
///
/// # Safety
/// The kernel has just filled both.
unsafe fn tell(value: *mut c_void, len: *const socklen_t, said: c_int) {
    let bytes = said.to_ne_bytes();
    // SAFETY: by the contract; the length is what it has written.
    unsafe {
        let room = bytes.len().min(len.read() as usize);
        value.cast::<u8>().copy_from(bytes.as_ptr(), room);
    }
}

fn note_signals(fd: c_int, on: bool) {
    if !on && table::known(fd).is_none() {
        return;
    }
    keeping_errno(|| {
        let Some((conn, borrowed)) = connection(fd) else {
            return;
        };
        conn.set_signals(on);
        if on {
            conn.stay_on_tcp(Reason::Option);
            ends::ask_for_signal(conn, borrowed);
        }
    });
}

fn note_nonblocking(fd: c_int, on: bool) {
    // One that is not known yet is asked when it is.
    if let Some(conn) = table::known(fd) {
        conn.set_nonblocking(on);
    }
}

/// `asm-generic/fcntl.h`.
const F_SETOWN_EX: c_int = 15;
/// `asm-generic/sockios.h`.
const SIOCATMARK: c_ulong = 0x8905;
/// `linux/sockios.h`: what has not been sent yet. What there is no room for natively waits there.
const SIOCOUTQNSD: c_ulong = 0x894B;
