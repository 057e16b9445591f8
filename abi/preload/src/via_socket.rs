//! Sockets of type `SOCK_VIA`, which a program asks for by `socket(AF_INET, SOCK_VIA, 0)`.
//!
//! A program that never does pays for one load of a word that never changes.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};

use libc::{sockaddr, socklen_t};
use sockets::packet::calls::{self, How};
use sockets::packet::{SOCK_VIA, Socket, Variant, option, table};
use sys::argument;
use sys::errno::Errno;
use sys::mem::Memory;

use crate::buffers::is_memory;
use crate::outcome::{Outcome, borrow, keeping_errno};
use crate::real;

/// Says where VIs are. A wrong `SOVIA_PACKET` leaves none: the program gets a VI as it asked for, or an error.
pub(crate) fn install() {
    let words = std::env::var("SOVIA_PACKET").unwrap_or_default();
    if let Ok(variant) = Variant::parse(&words) {
        table::install(&shm::DRIVER, variant, Some(memory));
    }
}

fn memory(addr: usize, len: usize) -> Option<Memory> {
    // SAFETY: the program sends from there, and it stays mapped until the call returns; what is kept longer is looked at
    // only when the program sends from that address again.
    unsafe { Memory::borrowed(addr, len) }.ok()
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    if kind & !flags != SOCK_VIA {
        // SAFETY: the program's own call, here and below.
        return unsafe { real::socket(domain, kind, protocol) };
    }
    let made = match (domain, protocol) {
        (libc::AF_INET, 0) => keeping_errno(table::create),
        (libc::AF_INET, _) => Err(Errno::PROTONOSUPPORT),
        _ => Err(Errno::AFNOSUPPORT),
    };
    let made = made.inspect(|&fd| {
        if kind & libc::SOCK_NONBLOCK != 0 {
            // SAFETY: a flag of a descriptor that has just been made.
            keeping_errno(|| unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) });
        }
    });
    Outcome::from(made).or(|| -1)
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    of(fd, |socket| {
        // SAFETY: the program promises `len` bytes.
        socket.bind(unsafe { argument::address(address.cast(), len) }?)?;
        Ok(0)
    })
    // SAFETY: as above.
    .or(|| unsafe { real::bind(fd, address, len) })
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    of(fd, |socket| {
        socket.listen(usize::try_from(backlog).unwrap_or(0))?;
        Ok(0)
    })
    // SAFETY: as above.
    .or(|| unsafe { real::listen(fd, backlog) })
}

pub(crate) unsafe fn name(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    of(fd, |socket| {
        // SAFETY: the program's room.
        unsafe { argument::put_address(socket.local(), address.cast(), len) };
        Ok(0)
    })
}

pub(crate) unsafe fn peer_name(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    of(fd, |socket| {
        // SAFETY: the program's room.
        unsafe { argument::put_address(socket.peer()?, address.cast(), len) };
        Ok(0)
    })
}

pub(crate) unsafe fn accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Outcome<c_int> {
    of(fd, |socket| {
        let listening = borrow(fd).ok_or(Errno::BADF)?;
        let (new, peer) = calls::accept(listening, socket, is_memory(address))?;
        if flags & libc::SOCK_NONBLOCK != 0 {
            // SAFETY: a flag of a descriptor that has just been made.
            unsafe { libc::fcntl(new, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        if let Some(peer) = peer {
            // SAFETY: the program's room.
            unsafe { argument::put_address(peer, address.cast(), len) };
        }
        Ok(new)
    })
}

pub(crate) unsafe fn connect(
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> Outcome<c_int> {
    of(fd, |socket| {
        // SAFETY: the program promises `len` bytes.
        let address = unsafe { argument::address(address.cast(), len) }?;
        socket.connect(address, fd.cast_unsigned())?;
        Ok(0)
    })
}

pub(crate) fn shutdown(fd: c_int, how: c_int) -> Outcome<c_int> {
    of(fd, |socket| {
        let stream = socket.stream()?;
        if how != libc::SHUT_RD {
            stream.end(|| true)?;
        }
        Ok(0)
    })
}

/// Somebody polls `fd`.
#[inline]
pub(crate) fn watch(fd: c_int) {
    if table::any() {
        keeping_errno(|| table::watch(fd));
    }
}

/// Somebody polls many descriptors.
#[inline]
pub(crate) fn watch_all() {
    if table::any() {
        keeping_errno(table::watch_all);
    }
}

#[inline]
pub(crate) fn send(fd: c_int, pieces: &[IoSlice<'_>], flags: c_int) -> Outcome<usize> {
    if !table::any() {
        return Outcome::NotOurs;
    }
    let (Some(socket), Some(borrowed)) = (table::get(fd), borrow(fd)) else {
        return Outcome::NotOurs;
    };
    let dont_wait = flags & libc::MSG_DONTWAIT != 0;
    let result = keeping_errno(|| calls::send(borrowed, &socket, pieces, dont_wait));
    if result == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: signals the calling thread, as the kernel does.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
    }
    result.into()
}

#[inline]
pub(crate) fn receive(fd: c_int, rooms: &mut [IoSliceMut<'_>], flags: c_int) -> Outcome<usize> {
    if !table::any() {
        return Outcome::NotOurs;
    }
    let (Some(socket), Some(borrowed)) = (table::get(fd), borrow(fd)) else {
        return Outcome::NotOurs;
    };
    let how = How {
        dont_wait: flags & libc::MSG_DONTWAIT != 0,
        peek: flags & libc::MSG_PEEK != 0,
        wait_all: flags & libc::MSG_WAITALL != 0,
    };
    keeping_errno(|| calls::receive(borrowed, &socket, rooms, how)).into()
}

/// TCP_NODELAY counts; what else a TCP socket has is accepted and means nothing.
pub(crate) unsafe fn set_option(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const std::ffi::c_void,
    len: socklen_t,
) -> Outcome<c_int> {
    of(fd, |socket| {
        // SAFETY: the program promises `len` bytes.
        let value = || unsafe { argument::int(value, len) };
        option::set(socket, level, name, value)?;
        Ok(0)
    })
}

pub(crate) unsafe fn get_option(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut std::ffi::c_void,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    of(fd, |socket| {
        let answer = option::get(socket, level, name)?;
        // SAFETY: the program's room, as long as it says.
        unsafe { argument::put_int(answer, value, len) }?;
        Ok(0)
    })
}

fn of(fd: c_int, act: impl FnOnce(&Socket) -> Result<c_int, Errno>) -> Outcome<c_int> {
    match table::get(fd) {
        Some(socket) => keeping_errno(|| act(&socket)).into(),
        None => Outcome::NotOurs,
    }
}
