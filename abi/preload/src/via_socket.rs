//! Sockets of type `SOCK_VIA`, which a program asks for by `socket(AF_INET, SOCK_VIA, 0)`.
//!
//! A program that never does pays for one load of a word that never changes.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use libc::{sockaddr, socklen_t};
use sockets::packet::calls;
use sockets::packet::stream::relay::BY_KERNEL;
use sockets::packet::table::{self, Held, sharing};
use sockets::packet::{SOCK_VIA, Socket, parse_over};
use sys::argument::{self, Family};
use sys::errno::Errno;
use sys::hidden;
use sys::mem::Memory;

use crate::buffers::is_memory;
use crate::connect::dissolves;
use crate::outcome::{Outcome, borrow, keeping_errno, with_a_number};
use crate::{connect, real, signal};

use self::section::{again, within};

mod options;
mod relayed;
mod section;
mod transfer;

pub(crate) use options::{control, get_option, left, set_option};
pub(crate) use section::{hold, hold_all};
pub(crate) use transfer::{put, receive, send};

/// To be called before the program begins.
pub(crate) fn begin() {
    hidden::hide_those_of_nics();
    sharing::allow_to_follow();
    // Read now: some programs clear their environment.
    if let Ok(words) = std::env::var("SOVIA_PACKET") {
        let _ = WORDS.set(words);
    }
}

/// Says where VIs are, before the first socket over one. A wrong `SOVIA_PACKET` leaves none: the program gets a VI as it asked for, or an error.
fn install() {
    if table::is_installed() {
        return;
    }
    let words = WORDS.get().map_or("", String::as_str);
    if let Ok((variant, driver)) = parse_over(words, &[&shm::DRIVER, &iwarp::DRIVER]) {
        table::install(driver, variant, Some(memory));
    }
}

/// `SOVIA_PACKET`.
static WORDS: OnceLock<String> = OnceLock::new();

fn memory(addr: usize, len: usize) -> Option<Memory> {
    // SAFETY: the program sends from there, and it stays mapped until the call returns; what is kept longer is looked at
    // only when the program sends from that address again.
    unsafe { Memory::borrowed(addr, len) }.ok()
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    if kind & !flags != SOCK_VIA {
        // SAFETY: the program's own call, here and below.
        let made = with_a_number(|| unsafe { real::socket(domain, kind, protocol) });
        return connect::made(made, domain, kind & !flags, protocol);
    }
    let made = match (domain, protocol) {
        (libc::AF_INET | libc::AF_INET6, 0) => keeping_errno(|| {
            signal::begin();
            install();
            let is_v4 = domain == libc::AF_INET;
            within(|| table::create(if is_v4 { Family::V4 } else { Family::V6 }))
        }),
        (libc::AF_INET | libc::AF_INET6, _) => Err(Errno::PROTONOSUPPORT),
        _ => Err(Errno::AFNOSUPPORT),
    };
    let made = made.inspect(|&fd| keeping_errno(|| set_flags(fd, kind)));
    Outcome::from(made).or(|| -1)
}

/// SOCK_NONBLOCK and SOCK_CLOEXEC.
fn set_flags(fd: c_int, flags: c_int) {
    // SAFETY: flags of a descriptor that has just been made.
    unsafe {
        if flags & libc::SOCK_NONBLOCK != 0 {
            libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK);
        }
        if flags & libc::SOCK_CLOEXEC != 0 {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    of(fd, |socket| {
        // SAFETY: the program promises `len` bytes.
        let address = unsafe { socket.family().address(address.cast(), len) };
        socket.bind(address.map_err(|errno| match errno {
            Errno::NETUNREACH => Errno::ADDRNOTAVAIL,
            errno => errno,
        })?)?;
        Ok(0)
    })
    // SAFETY: as above.
    .or(|| unsafe { real::bind(fd, address, len) })
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let is_offered = || table::known(fd).is_some_and(|socket| socket.is_offered());
    if table::is_relayed(fd) && within(is_offered) {
        return 0;
    }
    of(fd, |socket| {
        // As Linux has it: as many as there may be.
        socket.listen(usize::try_from(backlog).unwrap_or(usize::MAX))?;
        Ok(0)
    })
    // SAFETY: as above.
    .or(|| connect::listens(fd, unsafe { real::listen(fd, backlog) }))
}

pub(crate) unsafe fn name(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    of_known(fd, |socket| {
        // SAFETY: the program's room.
        unsafe {
            socket
                .family()
                .put_address(socket.local(), address.cast(), len)
        }?;
        Ok(0)
    })
}

pub(crate) unsafe fn peer_name(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> Outcome<c_int> {
    of_known(fd, |socket| {
        // SAFETY: the program's room.
        unsafe {
            socket
                .family()
                .put_address(socket.peer()?, address.cast(), len)
        }?;
        Ok(0)
    })
}

#[inline]
pub(crate) unsafe fn accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Outcome<c_int> {
    if !table::any() {
        return Outcome::NotOurs;
    }
    // SAFETY: by the caller's promise.
    unsafe { accept_there(fd, address, len, flags) }
}

unsafe fn accept_there(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Outcome<c_int> {
    if table::is_relayed(fd) {
        // SAFETY: by the caller's promise.
        return unsafe { relayed::accept(fd, address, len, flags) };
    }
    if !table::is(fd) {
        return Outcome::NotOurs;
    }
    let accept = |socket: &Socket| {
        let listening = borrow(fd).ok_or(Errno::BADF)?;
        if is_memory(address) {
            // Before there is a connection that would be lost.
            argument::check(len)?;
        }
        let (new, peer) = calls::accept(listening, socket, is_memory(address))?;
        set_flags(new, flags);
        if let Some(peer) = peer {
            // SAFETY: the program's room.
            unsafe { socket.family().put_address(peer, address.cast(), len) }?;
        }
        Ok(new)
    };
    match again(|| of(fd, accept)) {
        // Another thread has forked meanwhile.
        // SAFETY: as above.
        Outcome::Failed(BY_KERNEL) => unsafe { relayed::accept(fd, address, len, flags) },
        outcome => outcome,
    }
}

pub(crate) unsafe fn connect(
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> Outcome<c_int> {
    if !table::is(fd) {
        return Outcome::NotOurs;
    }
    // SAFETY: by the caller's promise.
    within(|| unsafe { connect_now(fd, address, len) })
}

unsafe fn connect_now(fd: c_int, address: *const sockaddr, len: socklen_t) -> Outcome<c_int> {
    let (socket, borrowed) = match find(fd) {
        Outcome::Done(found) => found,
        Outcome::NotOurs => return Outcome::NotOurs,
        Outcome::Failed(errno) => return Outcome::Failed(errno),
    };
    // SAFETY: as above.
    if unsafe { dissolves(address, len) } {
        return keeping_errno(|| table::dissolve(&socket))
            .map(|()| 0)
            .into();
    }
    // SAFETY: the program promises `len` bytes.
    let address = match unsafe { socket.family().address(address.cast(), len) } {
        Ok(address) => address,
        Err(errno) => return Outcome::Failed(errno),
    };
    let connected = keeping_errno(|| calls::connect(borrowed, &socket, address));
    connected.map(|()| 0).into()
}

/// Before a call that may send: with `MSG_FASTOPEN` a socket is connected by it, here as over TCP to a peer of which no cookie is known, by a `connect` before it. The flags
/// of what then sends.
///
/// # Errors
/// As of `connect`; `EOPNOTSUPP` for an address that dissolves a connection.
pub(crate) unsafe fn open_by_sending(
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
    flags: c_int,
) -> Result<c_int, Errno> {
    if flags & libc::MSG_FASTOPEN == 0 || !table::is(fd) {
        return Ok(flags);
    }
    if !is_memory(address) {
        // Who sends knows why not.
        return Ok(flags);
    }
    // SAFETY: by the caller's promise.
    if unsafe { dissolves(address, len) } {
        return Err(Errno::OPNOTSUPP);
    }
    // SAFETY: as above.
    match unsafe { connect(fd, address, len) } {
        Outcome::Failed(errno) => Err(errno),
        Outcome::Done(_) | Outcome::NotOurs => Ok(flags & !libc::MSG_FASTOPEN),
    }
}

pub(crate) fn shutdown(fd: c_int, how: c_int) -> Outcome<c_int> {
    let outcome = of(fd, |socket| {
        let (input, output) = argument::directions(how)?;
        socket.shutdown(input, output)?;
        Ok(0)
    });
    match outcome {
        // Another thread has it relayed meanwhile.
        Outcome::Failed(BY_KERNEL) => Outcome::NotOurs,
        outcome => outcome,
    }
}

/// Somebody polls `fd`.
#[inline]
pub(crate) fn watch(fd: c_int) {
    if table::any() {
        keeping_errno(|| within(|| table::watch(fd)));
    }
}

/// Somebody polls many descriptors.
#[inline]
pub(crate) fn watch_all() {
    if table::any() {
        keeping_errno(|| within(table::watch_all));
    }
}

/// The kernel has just given the program `fd`, unless that is an error: a socket that was known by it was closed by ways that we did not see.
#[inline]
pub(crate) fn given_out(fd: c_int) {
    if table::any() {
        let _section = hold(fd);
        keeping_errno(|| drop(table::remove(fd)));
    }
}

/// Whether a descriptor is such a socket.
#[inline]
pub(crate) fn is(fd: c_int) -> bool {
    table::is(fd)
}

/// Whether it is one, though it may be relayed.
#[inline]
pub(crate) fn is_any(fd: c_int) -> bool {
    table::is(fd) || table::is_relayed(fd)
}

fn find<'a>(fd: c_int) -> Outcome<(Arc<Held>, BorrowedFd<'a>)> {
    match (table::get(fd), borrow(fd)) {
        // A child of fork has copies, which it can only close.
        (Some(socket), _) if !socket.is_home() => Outcome::Failed(Errno::NOTCONN),
        (Some(socket), Some(borrowed)) => Outcome::Done((socket, borrowed)),
        _ => Outcome::NotOurs,
    }
}

/// It is about to be given to another process, or to be used where we cannot follow.
#[inline]
pub(crate) fn share(fd: c_int) {
    if table::any() {
        keeping_errno(|| within(|| sharing::one(fd)));
    }
}

/// This thread is to have a table of descriptors of its own.
pub(crate) fn part_thread() {
    keeping_errno(|| within(sharing::part_thread));
}

fn of_known(fd: c_int, act: impl FnOnce(&Socket) -> Result<c_int, Errno>) -> Outcome<c_int> {
    if !table::is_relayed(fd) {
        return of(fd, act);
    }
    within(|| match table::known(fd) {
        Some(socket) => keeping_errno(|| act(&socket)).into(),
        None => Outcome::NotOurs,
    })
}

fn of(fd: c_int, act: impl FnOnce(&Socket) -> Result<c_int, Errno>) -> Outcome<c_int> {
    if !table::is(fd) {
        return Outcome::NotOurs;
    }
    within(|| match find(fd) {
        Outcome::Done((socket, _)) => keeping_errno(|| act(&socket)).into(),
        Outcome::NotOurs => Outcome::NotOurs,
        Outcome::Failed(errno) => Outcome::Failed(errno),
    })
}
