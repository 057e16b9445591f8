//! sendmmsg and recvmmsg: one message after the other.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use libc::{mmsghdr, msghdr, ssize_t, timespec};
use sockets::conn::Way;
use sys::errno::Errno;

use crate::buffers::is_memory;
use crate::outcome::{connection, fail};
use crate::receive::recvmsg;
use crate::send::sendmsg;
use crate::{extended, pass, real, via_socket};

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: u32,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's messages and its own promise, here and below.
    unsafe {
        let is_native = connection(fd).is_none() && !extended::is(fd) && !via_socket::is(fd);
        // Where there is no message the kernel looks at the flags all the same.
        if is_native || count == 0 {
            pass::before_sending_all(messages, count);
            return real::sendmmsg(fd, messages, count, flags);
        }
        one_by_one(messages, count, |message| {
            (sendmsg(fd, message, flags), true)
        })
    }
}

/// Linux. The time-out is looked at between messages, as the kernel does.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: u32,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // As long as it is there the kernel may be taking bytes past us.
    let under_way = connection(fd).map(|(conn, _)| conn.native(Way::In));
    let is_native = !matches!(under_way, Some(None)) && !extended::is(fd) && !via_socket::is(fd);
    if is_native || count == 0 {
        // SAFETY: as above.
        return unsafe {
            let received = real::recvmmsg(fd, messages, count, flags, timeout);
            for n in 0..u32::try_from(received).unwrap_or(0) {
                pass::received(&raw const (*messages.add(n as usize)).msg_hdr);
            }
            received
        };
    }
    if !timeout.is_null() && !is_memory(timeout) {
        return fail(Errno::FAULT) as c_int;
    }
    // SAFETY: the program's pointer, or null.
    let limit = match unsafe { timeout.as_ref() }.map(duration) {
        Some(None) => return fail(Errno::INVAL) as c_int,
        limit => limit.flatten(),
    };
    let begun = Instant::now();
    let mut flags_now = flags & !libc::MSG_WAITFORONE;
    let receive = |message| {
        // SAFETY: as above.
        let received = unsafe { recvmsg(fd, message, flags_now) };
        if flags & libc::MSG_WAITFORONE != 0 {
            flags_now |= libc::MSG_DONTWAIT;
        }
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        if let (Some(left), 0..) = (left, received) {
            // SAFETY: the program's pointer: there is a limit only if there is one.
            unsafe {
                (*timeout).tv_sec = left.as_secs().cast_signed();
                (*timeout).tv_nsec = left.subsec_nanos().into();
            }
        }
        (received, left.is_none_or(|left| !left.is_zero()))
    };
    // SAFETY: as above.
    unsafe { one_by_one(messages, count, receive) }
}

/// Has `transfer` move each message, and say how many bytes it moved and whether to go on. How many messages were moved, or -1 if not the first.
///
/// # Safety
/// There are `count` messages, as far as their place can be memory.
unsafe fn one_by_one(
    messages: *mut mmsghdr,
    count: u32,
    mut transfer: impl FnMut(*mut msghdr) -> (ssize_t, bool),
) -> c_int {
    let mut done = 0;
    while done < count.min(MESSAGES_MAX) {
        let message = messages.wrapping_add(done as usize);
        if !is_memory(message) {
            return fail(Errno::FAULT) as c_int;
        }
        // SAFETY: by the contract.
        let message = unsafe { &mut *message };
        let (moved, goes_on) = transfer(&raw mut message.msg_hdr);
        let Ok(moved) = u32::try_from(moved) else {
            return if done > 0 { done.cast_signed() } else { -1 };
        };
        message.msg_len = moved;
        done += 1;
        if !goes_on {
            break;
        }
    }
    done.cast_signed()
}

fn duration(time: &timespec) -> Option<Duration> {
    let nanos = u32::try_from(time.tv_nsec)
        .ok()
        .filter(|n| *n < 1_000_000_000)?;
    Some(Duration::new(time.tv_sec.try_into().ok()?, nanos))
}

/// `UIO_MAXIOV`: the kernel takes no more in one call.
pub(crate) const MESSAGES_MAX: u32 = 1024;
