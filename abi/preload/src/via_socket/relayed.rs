//! A socket of type `SOCK_VIA` whose bytes go through the stand-in, which is a socket of the kernel's: what a call is left with that was under way when that began,
//! and what a process is told whose socket it never was.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};

use libc::{sockaddr, socklen_t};
use sockets::ends;
use sockets::packet::offer::{ENDS_LEN, decode};
use sockets::packet::{option, table};
use sys::argument::Family;
use sys::errno::Errno;
use sys::section::paused;

use super::section::within;
use crate::buffers::is_memory;
use crate::outcome::{Outcome, checked, keeping_errno};
use crate::real;

/// Sends.
pub(super) fn send(fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: the bytes are there.
    paused(|| checked(unsafe { real::send(fd, bytes.as_ptr().cast(), bytes.len(), 0) }))
}

/// Sends what is left of a call that has `sent` so much, with the `flags` that mean its last byte. How much it has sent then.
pub(super) fn send_rest(fd: c_int, pieces: &[IoSlice<'_>], mut sent: usize, flags: c_int) -> usize {
    let mut before = sent;
    for piece in pieces {
        let Some(rest) = piece.get(before..) else {
            before -= piece.len();
            continue;
        };
        before = 0;
        if rest.is_empty() {
            continue;
        }
        // The call has sent something, so that it is not told of an error.
        let more = keeping_errno(|| {
            // SAFETY: the bytes are there.
            let send = || unsafe {
                let flags = libc::MSG_NOSIGNAL | flags;
                real::send(fd, rest.as_ptr().cast(), rest.len(), flags)
            };
            paused(|| checked(send()))
        });
        sent += more.unwrap_or(0);
        if more != Ok(rest.len()) {
            break;
        }
    }
    sent
}

/// Fills what is left of the rooms of a call that has `received` so much. How much it has received then.
pub(super) fn receive_rest(fd: c_int, rooms: &mut [IoSliceMut<'_>], mut received: usize) -> usize {
    let mut before = received;
    for room in rooms {
        let len = room.len();
        let Some(rest) = room.get_mut(before..) else {
            before -= len;
            continue;
        };
        before = 0;
        if rest.is_empty() {
            continue;
        }
        let more = keeping_errno(|| {
            // SAFETY: the room is there.
            let mut receive = || unsafe {
                real::recv(fd, rest.as_mut_ptr().cast(), rest.len(), libc::MSG_WAITALL)
            };
            paused(|| checked(receive()))
        });
        received += more.unwrap_or(0);
        if more != Ok(rest.len()) {
            break;
        }
    }
    received
}

/// Takes a connection from a listener that several processes have.
///
/// # Safety
/// As for `accept4`.
pub(super) unsafe fn accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Outcome<c_int> {
    let is_listener = || table::known(fd).is_some_and(|socket| socket.is_offered());
    if !within(is_listener) {
        return Outcome::NotOurs;
    }
    let mut ends = [0; ENDS_LEN];
    let taken = match take(fd, &mut ends, flags) {
        Ok(taken) => taken,
        Err(errno) => return Outcome::Failed(errno),
    };
    let ends = decode(&ends);
    keeping_errno(|| {
        ends::given_out(taken);
        within(|| {
            if let Some(listener) = table::known(fd) {
                table::taken(&listener, taken, ends);
            }
        });
        super::set_flags(taken, flags);
    });
    let family = || table::known(taken).map_or(Family::V4, |socket| socket.family());
    if is_memory(address) {
        let [_, peer] = ends;
        // SAFETY: by the caller's promise.
        if let Err(errno) = unsafe { within(family).put_address(peer, address.cast(), len) } {
            return Outcome::Failed(errno);
        }
    }
    Outcome::Done(taken)
}

fn take(fd: c_int, ends: &mut [u8; ENDS_LEN], flags: c_int) -> Result<c_int, Errno> {
    let mut room = libc::iovec {
        iov_base: ends.as_mut_ptr().cast(),
        iov_len: ENDS_LEN,
    };
    // Aligned as a header is.
    let mut control = [0u64; 4];
    // SAFETY: integers and pointers, of which none is one that is there.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut room;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let closes = if flags & libc::SOCK_CLOEXEC != 0 {
        libc::MSG_CMSG_CLOEXEC
    } else {
        0
    };
    // SAFETY: the rooms are there.
    let got = checked(unsafe { real::recvmsg(fd, &raw mut message, closes) })?;
    // SAFETY: the kernel has filled the message in.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let header = header.filter(|header| {
        (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS)
    });
    match header {
        // SAFETY: one descriptor follows, as there is one.
        Some(header) if got > 0 => Ok(unsafe {
            libc::CMSG_DATA(&raw const *header)
                .cast::<c_int>()
                .read_unaligned()
        }),
        // Shut down, or its process has ended.
        _ => Err(Errno::INVAL),
    }
}

/// Whether it is another process's, whose locks are not to be taken here.
pub(super) fn is_elsewhere(fd: c_int) -> bool {
    table::is_relayed(fd) && within(|| table::known(fd).is_some_and(|socket| !socket.is_home()))
}

/// Such a process cannot set what the stand-in does not keep; as for the process that can, it means nothing.
pub(super) fn set_option(level: c_int, name: c_int) -> Outcome<c_int> {
    if option::is_of_stand_in(level, name) {
        Outcome::NotOurs
    } else {
        Outcome::Done(0)
    }
}
