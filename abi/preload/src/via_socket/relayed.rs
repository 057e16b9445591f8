//! A socket of type `SOCK_VIA` whose bytes go through the stand-in, which is a socket of the kernel's: what a call is left with that was under way when that began,
//! and what a process is told whose socket it never was.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};

use sockets::packet::{option, table};
use sys::errno::Errno;

use crate::outcome::{Outcome, checked, keeping_errno};
use crate::real;

/// Sends.
pub(super) fn send(fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: the bytes are there.
    checked(unsafe { real::send(fd, bytes.as_ptr().cast(), bytes.len(), 0) })
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
            checked(unsafe {
                let flags = libc::MSG_NOSIGNAL | flags;
                real::send(fd, rest.as_ptr().cast(), rest.len(), flags)
            })
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
            checked(unsafe {
                real::recv(fd, rest.as_mut_ptr().cast(), rest.len(), libc::MSG_WAITALL)
            })
        });
        received += more.unwrap_or(0);
        if more != Ok(rest.len()) {
            break;
        }
    }
    received
}

/// Whether it is another process's, whose locks are not to be taken here.
pub(super) fn is_elsewhere(fd: c_int) -> bool {
    table::is_relayed(fd) && table::known(fd).is_some_and(|socket| !socket.is_home())
}

/// Such a process cannot set what the stand-in does not keep; as for the process that can, it means nothing.
pub(super) fn set_option(level: c_int, name: c_int) -> Outcome<c_int> {
    if option::is_of_stand_in(level, name) {
        Outcome::NotOurs
    } else {
        Outcome::Done(0)
    }
}
