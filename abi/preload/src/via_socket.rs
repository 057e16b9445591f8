//! Sockets of type `SOCK_VIA`, which a program asks for by `socket(AF_INET, SOCK_VIA, 0)`.
//!
//! A program that never does pays for one load of a word that never changes.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use libc::{sockaddr, socklen_t};
use sockets::ends;
use sockets::packet::calls::{self, How};
use sockets::packet::stream::relay::BY_KERNEL;
use sockets::packet::table::{self, Held, sharing};
use sockets::packet::{SOCK_VIA, Socket, option, parse_over};
use sys::argument;
use sys::errno::Errno;
use sys::hidden;
use sys::mem::Memory;

use crate::buffers::{Asked, is_memory};
use crate::outcome::{Outcome, borrow, keeping_errno};
use crate::{cancel, real, send::raise_pipe};

mod relayed;

/// Says where VIs are. A wrong `SOVIA_PACKET` leaves none: the program gets a VI as it asked for, or an error.
pub(crate) fn install() {
    hidden::hide_those_of_nics();
    sharing::allow_to_follow();
    let words = std::env::var("SOVIA_PACKET").unwrap_or_default();
    if let Ok((variant, driver)) = parse_over(&words, &[&shm::DRIVER, &iwarp::DRIVER]) {
        table::install(driver, variant, Some(memory));
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
        let made = unsafe { real::socket(domain, kind, protocol) };
        return keeping_errno(|| ends::given_out(made));
    }
    let made = match (domain, protocol) {
        (libc::AF_INET, 0) => keeping_errno(table::create),
        (libc::AF_INET, _) => Err(Errno::PROTONOSUPPORT),
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
    if table::is_relayed(fd) && table::known(fd).is_some_and(|socket| socket.is_offered()) {
        return 0;
    }
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
    of_known(fd, |socket| {
        // SAFETY: the program's room.
        unsafe { argument::put_address(socket.local(), address.cast(), len) }?;
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
        unsafe { argument::put_address(socket.peer()?, address.cast(), len) }?;
        Ok(0)
    })
}

pub(crate) unsafe fn accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Outcome<c_int> {
    if table::is_relayed(fd) {
        // SAFETY: by the caller's promise.
        return unsafe { relayed::accept(fd, address, len, flags) };
    }
    let outcome = of(fd, |socket| {
        let listening = borrow(fd).ok_or(Errno::BADF)?;
        if is_memory(address) {
            // Before there is a connection that would be lost.
            argument::check(len)?;
        }
        let (new, peer) = calls::accept(listening, socket, is_memory(address))?;
        set_flags(new, flags);
        if let Some(peer) = peer {
            // SAFETY: the program's room.
            unsafe { argument::put_address(peer, address.cast(), len) }?;
        }
        Ok(new)
    });
    match outcome {
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
    let (socket, borrowed) = match find(fd) {
        Outcome::Done(found) => found,
        Outcome::NotOurs => return Outcome::NotOurs,
        Outcome::Failed(errno) => return Outcome::Failed(errno),
    };
    // SAFETY: the program promises `len` bytes.
    let address = match unsafe { argument::address(address.cast(), len) } {
        Ok(address) => address,
        Err(errno) => return Outcome::Failed(errno),
    };
    let connected = keeping_errno(|| calls::connect(borrowed, &socket, address));
    connected.map(|()| 0).into()
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

/// `send` and its kin.
#[inline]
pub(crate) fn send(
    fd: c_int,
    pieces: &[IoSlice<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    if table::any() {
        send_on(fd, pieces, asked, flags)
    } else {
        Outcome::NotOurs
    }
}

fn send_on(fd: c_int, pieces: &[IoSlice<'_>], asked: Asked, flags: c_int) -> Outcome<usize> {
    let (socket, borrowed) = match find(fd) {
        Outcome::Done(found) => found,
        Outcome::NotOurs => return Outcome::NotOurs,
        Outcome::Failed(errno) => return Outcome::Failed(errno),
    };
    if flags & libc::MSG_FASTOPEN != 0 {
        return Outcome::Failed(Errno::OPNOTSUPP);
    }
    cancel::point();
    let dont_wait = flags & libc::MSG_DONTWAIT != 0;
    let is_urgent = flags & libc::MSG_OOB != 0;
    let mut result = keeping_errno(|| {
        if is_urgent {
            calls::send_urgent(borrowed, &socket, pieces, dont_wait)
        } else {
            calls::send(borrowed, &socket, pieces, dont_wait)
        }
    });
    if result == Err(BY_KERNEL) {
        return Outcome::NotOurs;
    }
    if let Ok(sent) = result
        && socket.is_relayed()
        && !dont_wait
    {
        result = Ok(relayed::send_rest(fd, pieces, sent, flags & libc::MSG_OOB));
    }
    if asked.fault && result == Ok(0) {
        result = Err(Errno::FAULT);
    }
    if result == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        raise_pipe();
    }
    result.into()
}

/// Bytes of a file's.
pub(crate) fn put(fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    let asked = Asked::one(bytes.as_ptr().cast(), bytes.len());
    match send_on(fd, &[IoSlice::new(bytes)], asked, 0) {
        Outcome::Done(sent) => Ok(sent),
        Outcome::NotOurs => relayed::send(fd, bytes),
        Outcome::Failed(errno) => Err(errno),
    }
}

/// `recv` and its kin.
#[inline]
pub(crate) fn receive(
    fd: c_int,
    rooms: &mut [IoSliceMut<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    if table::any() {
        receive_on(fd, rooms, asked, flags)
    } else {
        Outcome::NotOurs
    }
}

fn receive_on(
    fd: c_int,
    rooms: &mut [IoSliceMut<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    let (socket, borrowed) = match find(fd) {
        Outcome::Done(found) => found,
        Outcome::NotOurs => return Outcome::NotOurs,
        Outcome::Failed(errno) => return Outcome::Failed(errno),
    };
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Outcome::Failed(Errno::AGAIN);
    }
    if flags & libc::MSG_OOB != 0 {
        let is_there = keeping_errno(|| becomes_urgent(fd, &socket));
        return if is_there {
            Outcome::NotOurs
        } else {
            Outcome::Failed(Errno::INVAL)
        };
    }
    cancel::point();
    let how = How {
        dont_wait: flags & libc::MSG_DONTWAIT != 0,
        peek: flags & libc::MSG_PEEK != 0,
        wait_all: flags & libc::MSG_WAITALL != 0,
        skip: (flags & libc::MSG_TRUNC != 0).then_some(asked.len),
        begun: false,
    };
    let nowhere = how.skip.is_none() && rooms.iter().all(|room| room.is_empty());
    if !nowhere {
        let received = match keeping_errno(|| calls::receive(borrowed, &socket, rooms, how)) {
            Ok(first) if how.wait_all && !how.peek && how.skip.is_none() && socket.is_relayed() => {
                Ok(relayed::receive_rest(fd, rooms, first))
            }
            received => received,
        };
        return if received == Err(BY_KERNEL) {
            Outcome::NotOurs
        } else {
            received.into()
        };
    }
    // The kernel waits all the same, and looks at the buffer when there is something.
    let (mut scratch, how) = (
        [0],
        How {
            peek: true,
            wait_all: false,
            ..how
        },
    );
    let rooms = &mut [IoSliceMut::new(&mut scratch)];
    match keeping_errno(|| calls::receive(borrowed, &socket, rooms, how)) {
        Ok(1..) if asked.fault => Outcome::Failed(Errno::FAULT),
        Ok(_) => Outcome::Done(0),
        Err(BY_KERNEL) => Outcome::NotOurs,
        Err(errno) => Outcome::Failed(errno),
    }
}

/// Urgent data have come, for which the kernel has the calls: the connection is relayed when this returns.
fn becomes_urgent(fd: c_int, socket: &Socket) -> bool {
    let is_there = socket.stream().is_ok_and(|stream| stream.has_urgent());
    if is_there {
        sharing::one(fd);
    }
    is_there
}

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
        if let Outcome::Done((socket, _)) = find(fd) {
            keeping_errno(|| becomes_urgent(fd, &socket));
        }
        return Outcome::NotOurs;
    }
    of(fd, |socket| {
        if socket.is_listening() {
            return Err(Errno::INVAL);
        }
        let bytes = match (socket.stream(), request) {
            (Ok(stream), libc::FIONREAD) => stream.readable(),
            (Ok(stream), _) => stream.held(),
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
pub(crate) unsafe fn set_option(
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

pub(crate) unsafe fn get_option(
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
        if let Some(answer) = option::get_long(socket, level, name) {
            // SAFETY: the program's room, as long as it says.
            unsafe { argument::put_bytes(&answer, value, len) }?;
            return Ok(0);
        }
        let answer = option::get(socket, level, name)?;
        // SAFETY: the program's room, as long as it says.
        unsafe { argument::put_int(answer, value, len) }?;
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
    keeping_errno(|| {
        let socket = table::get(fd)?;
        option::left(&socket)
    })
}

/// Whether a descriptor is such a socket.
#[inline]
pub(crate) fn is(fd: c_int) -> bool {
    table::is(fd)
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
        keeping_errno(|| sharing::one(fd));
    }
}

fn of_known(fd: c_int, act: impl FnOnce(&Socket) -> Result<c_int, Errno>) -> Outcome<c_int> {
    if !table::is_relayed(fd) {
        return of(fd, act);
    }
    match table::known(fd) {
        Some(socket) => keeping_errno(|| act(&socket)).into(),
        None => Outcome::NotOurs,
    }
}

fn of(fd: c_int, act: impl FnOnce(&Socket) -> Result<c_int, Errno>) -> Outcome<c_int> {
    match find(fd) {
        Outcome::Done((socket, _)) => keeping_errno(|| act(&socket)).into(),
        Outcome::NotOurs => Outcome::NotOurs,
        Outcome::Failed(errno) => Outcome::Failed(errno),
    }
}

/// `asm-generic/sockios.h`.
const SIOCATMARK: libc::c_ulong = 0x8905;
