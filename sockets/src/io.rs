//! Sending and receiving, for as long as the program would wait.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use sys::errno::Errno;

pub(crate) use self::duty::{end_standstill, look_at_peer, pay_for_left};
pub use self::plain::{pass, passed};
use self::plain::{receive_plain, send_plain};
use self::receive::receive_mapped;
use self::send::send_mapped;
pub use self::send::send_on_tcp;
use crate::conn::{Conn, Way};
use crate::flow::{SPOILT, Stop};
use crate::left;

mod duty;
mod enough;
mod footing;
mod more;
mod patience;
mod plain;
mod receive;
mod rest;
mod rounds;
mod send;

/// How a call receives: the flags of `recv` that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receive {
    /// `MSG_DONTWAIT`; `O_NONBLOCK` counts as well.
    pub dont_wait: bool,
    /// `MSG_PEEK`.
    pub peek: bool,
    /// `MSG_WAITALL`.
    pub wait_all: bool,
    /// `MSG_TRUNC`: so many bytes are taken and not copied; with `peek` counted.
    pub skip: Option<usize>,
}

/// Receives on a connection. `native` does so on the kernel's, with flags added to the program's: [`DONT_WAIT`] or none.
///
/// # Errors
/// As `recv`.
#[inline]
pub fn receive(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
    native: impl FnMut(i32) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let moved = if conn.is_mapped() {
        left::find();
        receive_on_rings(conn, fd, into, how)
    } else {
        receive_plain(conn, fd, into, how, native)
    };
    if let Ok(bytes) = moved
        && !how.peek
    {
        conn.count(Way::In, bytes);
    }
    moved
}

/// Sends on a connection. `native` does so on the kernel's, with flags added to the program's.
///
/// # Errors
/// As `send`; the caller raises SIGPIPE.
#[inline]
pub fn send(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
    native: impl FnMut(i32) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let moved = if conn.is_mapped() {
        left::find();
        send_on_rings(conn, fd, buffers, dont_wait)
    } else {
        send_plain(conn, fd, buffers, dont_wait, native)
    };
    if let Ok(bytes) = moved {
        conn.count(Way::Out, bytes);
    }
    moved
}

/// As [`receive()`], where there are rings.
#[inline(always)]
fn receive_on_rings(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
) -> Result<usize, Errno> {
    let received = receive_mapped(conn, fd, into, how);
    received.map_err(|errno| spoilt_is_reset(conn, fd, errno))
}

/// As [`send()`], where there are rings.
#[inline(always)]
fn send_on_rings(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    let sent = send_mapped(conn, fd, buffers, dont_wait);
    sent.map_err(|errno| spoilt_is_reset(conn, fd, errno))
}

/// A peer that spoilt the shared memory is told as one that reset the connection, which it then is. To be called outside turns.
#[inline]
fn spoilt_is_reset(conn: &Conn, fd: BorrowedFd<'_>, errno: Errno) -> Errno {
    if errno != SPOILT {
        return errno;
    }
    conn.reset_spoilt(fd);
    sys::socket::forget_error(fd);
    Errno::CONNRESET
}

fn errno_of(stop: Stop) -> Errno {
    match stop {
        Stop::Failed(errno) => errno,
        Stop::Again => Errno::AGAIN,
        Stop::End => Errno::PIPE,
    }
}

/// `MSG_DONTWAIT`.
pub const DONT_WAIT: i32 = 0x40;
