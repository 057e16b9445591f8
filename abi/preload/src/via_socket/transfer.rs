//! send, recv and their kin on a socket of type `SOCK_VIA`.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};

use sockets::packet::Socket;
use sockets::packet::calls::{self, How};
use sockets::packet::stream::relay::BY_KERNEL;
use sockets::packet::table::{self, sharing};
use sys::errno::Errno;

use super::section::again;
use super::{find, relayed};
use crate::buffers::Asked;
use crate::outcome::{Outcome, keeping_errno};
use crate::send::raise_pipe;

/// `send` and its kin.
#[inline]
pub(crate) fn send(
    fd: c_int,
    pieces: &[IoSlice<'_>],
    asked: Asked,
    flags: c_int,
) -> Outcome<usize> {
    if table::is(fd) {
        again(|| send_on(fd, pieces, asked, flags))
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
        let errno = match socket.stream() {
            Ok(_) => Errno::ISCONN,
            Err(_) => Errno::OPNOTSUPP,
        };
        return Outcome::Failed(errno);
    }
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
    match again(|| send_on(fd, &[IoSlice::new(bytes)], asked, 0)) {
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
    if table::is(fd) {
        again(|| receive_on(fd, rooms, asked, flags))
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
pub(super) fn becomes_urgent(fd: c_int, socket: &Socket) -> bool {
    let is_there = socket.stream().is_ok_and(|stream| stream.has_urgent());
    if is_there {
        sharing::one(fd);
    }
    is_there
}
