//! setsockopt, getsockopt and ioctl on a socket of type `SOCK_VIA`.

use std::ffi::c_int;

use libc::socklen_t;
use sockets::packet::{option, table};
use sys::argument;
use sys::errno::Errno;

use super::section::within;
use super::transfer::becomes_urgent;
use super::{find, of, of_known, relayed};
use crate::buffers::is_memory;
use crate::outcome::{Outcome, keeping_errno};

/// What `ioctl` says of a socket's queues, and of the mark.
pub(crate) unsafe fn control(
    fd: c_int,
    request: libc::c_ulong,
    argument: *mut std::ffi::c_void,
) -> Outcome<c_int> {
    if !table::any() || !matches!(request, libc::FIONREAD | libc::TIOCOUTQ | SIOCATMARK) {
        return Outcome::NotOurs;
    }
    if request == SIOCATMARK {
        // Then the kernel knows; a stand-in through which nothing passes is at no mark.
        within(|| {
            if let Outcome::Done((socket, _)) = find(fd) {
                keeping_errno(|| becomes_urgent(fd, &socket));
            }
        });
        return Outcome::NotOurs;
    }
    of(fd, |socket| {
        if socket.is_listening() {
            return Err(Errno::INVAL);
        }
        let bytes = match (socket.stream(), request) {
            (Ok(stream), libc::FIONREAD) => stream.readable(),
            (Ok(stream), _) => stream.outstanding(),
            (Err(_), _) => 0,
        };
        if !is_memory(argument) {
            return Err(Errno::FAULT);
        }
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the program's pointer to an int.
        unsafe { argument.cast::<c_int>().write_unaligned(bytes) };
        Ok(0)
    })
}

/// What [`option::set`] does, and what the stand-in keeps.
#[inline]
pub(crate) unsafe fn set_option(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const std::ffi::c_void,
    len: socklen_t,
) -> Outcome<c_int> {
    if !table::any() {
        return Outcome::NotOurs;
    }
    // SAFETY: by the caller's promise.
    unsafe { set_option_there(fd, level, name, value, len) }
}

unsafe fn set_option_there(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const std::ffi::c_void,
    len: socklen_t,
) -> Outcome<c_int> {
    if relayed::is_elsewhere(fd) {
        return relayed::set_option(level, name);
    }
    let outcome = of_known(fd, |socket| {
        // SAFETY: the program promises `len` bytes.
        let value = || unsafe { argument::value(value, len) };
        option::set(socket, level, name, value)?;
        Ok(0)
    });
    match outcome {
        Outcome::Done(_) if option::is_of_stand_in(level, name) => Outcome::NotOurs,
        outcome => outcome,
    }
}

#[inline]
pub(crate) unsafe fn get_option(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut std::ffi::c_void,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    if !table::any() {
        return Outcome::NotOurs;
    }
    // SAFETY: by the caller's promise.
    unsafe { get_option_there(fd, level, name, value, len) }
}

unsafe fn get_option_there(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut std::ffi::c_void,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    if relayed::is_elsewhere(fd) && !option::is_of_the_kind(level, name) {
        return Outcome::NotOurs;
    }
    if table::is_relayed(fd) && (level, name) == (libc::SOL_SOCKET, libc::SO_ERROR) {
        return Outcome::NotOurs;
    }
    let outcome = of_known(fd, |socket| {
        // SAFETY: the program's.
        let wanted = unsafe { argument::room(len) }?;
        let answer = option::get(socket, level, name, wanted)?;
        // SAFETY: the program's room, as long as it says.
        unsafe { argument::put_bytes(&answer, value, len) }?;
        Ok(0)
    });
    match outcome {
        Outcome::Failed(Errno::NOPROTOOPT) if option::is_of_stand_in(level, name) => {
            Outcome::NotOurs
        }
        outcome => outcome,
    }
}

/// What is left to be read after a message, where the program has asked for that.
pub(crate) fn left(fd: c_int) -> Option<c_int> {
    if !table::is(fd) {
        return None;
    }
    keeping_errno(|| within(|| option::left(&*table::get(fd)?)))
}

/// `asm-generic/sockios.h`.
const SIOCATMARK: libc::c_ulong = 0x8905;
