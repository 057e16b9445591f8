//! Extended sockets: descriptors of the program that have become VIs, by [`setsockopt`](convert::convert), and what plain calls do on them.
//!
//! In place of the TCP socket, which goes to a number of ours, stands a stand-in that shows what there is to see, so that `poll`, `select`, `epoll`, `dup` and
//! `fork` are the kernel's own affair. Calls on ordinary connections never come here, and all others look at one bit.

pub(crate) mod calls;
mod convert;
mod memory;
mod names;
mod options;

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sockets::extended::{Directions, Region, Socket, Wait};
use sys::errno::Errno;
use sys::fork::{self, Own, Place};
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicBool, Ordering};

use crate::buffers::Asked;
use crate::outcome::{Outcome, borrow};
use crate::send::raise_pipe;

pub(crate) use options::{get, set};

/// A socket of the program's, with all its descriptors in this process.
pub(crate) struct Extended {
    pub(crate) socket: Socket,
    /// [`convert::VI_MODE`] or [`convert::IWARP_MODE`].
    pub(crate) mode: c_int,
    /// The TCP connection, for its names and options.
    tcp: OwnedFd,
    /// Registered by C, by number.
    pub(crate) regions: Mutex<BTreeMap<u32, Region>>,
}

/// Whether a descriptor is one of an extended socket.
#[inline]
pub(crate) fn is(fd: RawFd) -> bool {
    let Ok(fd) = usize::try_from(fd) else {
        return false;
    };
    BITS.get(fd / 64)
        .is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (fd % 64)) != 0)
}

/// The socket behind a descriptor for which [`is`] is true.
///
/// # Errors
/// `ENOTCONN` in a forked child: the parent has it.
pub(crate) fn find(fd: RawFd) -> Result<Arc<Extended>, Errno> {
    if is_child() {
        return Err(Errno::NOTCONN);
    }
    let sockets = SOCKETS.get().read().unwrap_or_else(PoisonError::into_inner);
    match sockets.get(&fd) {
        Some(extended) => Ok(Arc::clone(extended)),
        // Of the parent's, in a child that has sockets of its own.
        None if is(fd) => Err(Errno::NOTCONN),
        None => Err(Errno::BADF),
    }
}

fn insert(fd: RawFd, extended: Arc<Extended>) {
    if is_guest() {
        return;
    }
    let sockets = SOCKETS.get();
    let mut sockets = sockets.write().unwrap_or_else(PoisonError::into_inner);
    HOME.store(fork::generation(), Ordering::Relaxed);
    sockets.insert(fd, extended);
    mark(fd, true);
    ANY.store(true, Ordering::Relaxed);
}

/// Whether this is a child with its parent's memory and descriptors of its own, as after `vfork`: what it does with those is no concern of its parent's sockets.
fn is_guest() -> bool {
    !fork::seems_home() && fork::place() == Place::Guest
}

/// Whether the sockets are those of a process that has forked this one.
fn is_child() -> bool {
    fork::generation() != HOME.load(Ordering::Relaxed)
}

fn mark(fd: RawFd, on: bool) {
    let Ok(fd) = usize::try_from(fd) else {
        return;
    };
    if let Some(word) = BITS.get(fd / 64) {
        let bit = 1 << (fd % 64);
        if on {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// The program is about to close `fd`, or to replace it.
#[inline]
pub(crate) fn before_close(fd: RawFd) {
    if is(fd) {
        end(fd);
    }
}

#[cold]
fn end(fd: RawFd) {
    if is_guest() {
        return;
    }
    mark(fd, false);
    if is_child() {
        return;
    }
    let sockets = SOCKETS.get();
    let mut sockets = sockets.write().unwrap_or_else(PoisonError::into_inner);
    let Some(extended) = sockets.remove(&fd) else {
        return;
    };
    let last = !sockets.values().any(|other| Arc::ptr_eq(other, &extended));
    drop(sockets);
    if last {
        extended.close();
    }
}

/// As [`before_close`], for each from `first` to `last`.
pub(crate) fn before_close_range(first: u32, last: u32) {
    if !any() {
        return;
    }
    let top = u32::try_from(BITS.len() * 64 - 1).unwrap_or(u32::MAX);
    for fd in first..=last.min(top) {
        before_close(fd.cast_signed());
    }
}

/// The program has made `new` a duplicate of `old`.
#[inline]
pub(crate) fn duplicated(old: RawFd, new: RawFd) {
    if is(old) && new >= 0 && new != old {
        match find(old) {
            Ok(extended) => insert(new, extended),
            Err(Errno::NOTCONN) if !is_guest() => mark(new, true),
            Err(_) => {}
        }
    }
}

/// Somebody polls `fd`.
#[inline]
pub(crate) fn watch(fd: RawFd) {
    if is(fd)
        && let Ok(extended) = find(fd)
    {
        extended.socket.watch();
    }
}

/// Somebody polls many descriptors.
#[inline]
pub(crate) fn watch_all() {
    if any() {
        let sockets = SOCKETS.get().try_read();
        for extended in sockets.iter().flat_map(|sockets| sockets.values()) {
            extended.socket.watch();
        }
    }
}

#[inline]
fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// At the exit of a process what was sent still goes.
extern "C" fn at_exit() {
    if is_guest() || is_child() {
        return;
    }
    let Ok(sockets) = SOCKETS.get().try_read() else {
        return;
    };
    // All of them together: a peer that reads nothing does not keep the process for each.
    let until = sys::time::deadline(Some(FLUSH_MS));
    for extended in sockets.values() {
        extended.end(until);
    }
    // Those that were closed before, too: what the kernel has of them goes with the process where more comes from the peer.
    while iwarp::is_seeing_off() && !sys::time::expired(until) {
        // tidy: sleep because nobody says when the peer's kernel has acknowledged all.
        std::thread::sleep(LOOK_AGAIN);
    }
}

impl Extended {
    fn close(&self) {
        self.end(sys::time::deadline(Some(FLUSH_MS)));
        // After that its number may be another's. Not before: a callback may wait for what only the close brings.
        self.socket.off_events();
    }

    fn end(&self, until: Option<Instant>) {
        if sys::socket::linger(self.tcp()) == Some(Duration::ZERO) {
            self.socket.reset(until);
        } else {
            self.socket.close(until);
        }
    }

    /// The TCP connection beneath.
    pub(crate) fn tcp(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

/// How the program's call on `fd` waits.
fn wait(fd: RawFd, flags: c_int, timeout_ms: fn(BorrowedFd<'_>) -> i32) -> Wait {
    let Some(fd) = borrow(fd) else {
        return Wait::Not;
    };
    if flags & libc::MSG_DONTWAIT != 0 || sys::socket::is_nonblocking(fd) {
        return Wait::Not;
    }
    let timeout = u64::try_from(timeout_ms(fd)).ok();
    sys::time::deadline(timeout).map_or(Wait::Ever, Wait::Until)
}

/// `recv` and its kin, on what is no ordinary connection.
#[inline]
pub(crate) fn receive(
    fd: RawFd,
    into: &mut [IoSliceMut<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    if is(fd) {
        receive_on(fd, into, asked, flags)
    } else {
        Outcome::NotOurs
    }
}

#[cold]
fn receive_on(
    fd: RawFd,
    into: &mut [IoSliceMut<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE | libc::MSG_TRUNC) != 0 {
        return Outcome::Failed(Errno::OPNOTSUPP);
    }
    if asked.fault {
        return Outcome::Failed(Errno::FAULT);
    }
    let wait = wait(fd, flags, sys::socket::receive_timeout_ms);
    let (peek, all) = (flags & libc::MSG_PEEK != 0, flags & libc::MSG_WAITALL != 0);
    find(fd)
        .and_then(|extended| extended.socket.receive(into, wait, peek, all))
        .into()
}

/// `send` and its kin, on what is no ordinary connection.
#[inline]
pub(crate) fn send(
    fd: RawFd,
    pieces: &[IoSlice<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    if is(fd) {
        send_on(fd, pieces, asked, flags)
    } else {
        Outcome::NotOurs
    }
}

#[cold]
fn send_on(fd: RawFd, pieces: &[IoSlice<'_>], asked: Asked, flags: c_int) -> Outcome<usize> {
    if flags & (libc::MSG_OOB | libc::MSG_FASTOPEN) != 0 {
        return Outcome::Failed(Errno::OPNOTSUPP);
    }
    if asked.fault {
        return Outcome::Failed(Errno::FAULT);
    }
    let wait = wait(fd, flags, sys::socket::send_timeout_ms);
    let result = find(fd).and_then(|extended| extended.socket.send(pieces, wait));
    if result == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        raise_pipe();
    }
    result.into()
}

/// `shutdown`, on what is no ordinary connection.
pub(crate) fn shutdown(fd: RawFd, how: c_int) -> Outcome<c_int> {
    if !is(fd) {
        return Outcome::NotOurs;
    }
    sys::argument::directions(how)
        .map(|(input, output)| Directions { input, output })
        .and_then(|which| find(fd)?.socket.shutdown(which))
        .map(|()| 0)
        .into()
}

/// The bytes that `FIONREAD` counts.
pub(crate) fn readable_bytes(fd: RawFd) -> Option<c_int> {
    let bytes = find(fd).ok()?.socket.readable_bytes().ok()?;
    c_int::try_from(bytes).ok()
}

/// One bit for each descriptor that the kernel gives out by default (`fs.nr_open`). Untouched pages cost nothing.
static BITS: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];
/// A forked child has none of its parent's, which may be locked there.
static SOCKETS: Own<RwLock<BTreeMap<RawFd, Arc<Extended>>>> = Own::new();
/// Which process has sockets.
static HOME: sys::sync::mapped::AtomicU32 = sys::sync::mapped::AtomicU32::new(0);
static ANY: AtomicBool = AtomicBool::new(false);
/// How long a close waits for what was sent to go.
const FLUSH_MS: u64 = 2000;
/// How often the end of a process looks whether its connections have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
