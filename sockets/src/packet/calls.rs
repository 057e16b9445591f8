//! What the C interfaces have in common: calls on a descriptor, with flags.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddrV4;
use std::os::fd::{BorrowedFd, RawFd};

use sys::errno::Errno;
use sys::socket::is_nonblocking;

use super::socket::Socket;
use super::table;

/// How to receive.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// MSG_DONTWAIT.
    pub dont_wait: bool,
    /// MSG_PEEK.
    pub peek: bool,
    /// MSG_WAITALL.
    pub wait_all: bool,
}

/// `send` and its kin. A few small pieces leave as one message.
///
/// # Errors
/// As [`super::Stream::send`]; `ENOTCONN`.
pub fn send(
    fd: BorrowedFd<'_>,
    socket: &Socket,
    pieces: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    let stream = socket.stream()?;
    // Asked only where it matters, for the kernel has to be.
    let patient = || !dont_wait && !is_nonblocking(fd);
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    if let [piece] = pieces {
        return stream.send(piece, patient);
    }
    if len <= GATHER_MAX {
        let gathered: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.iter().copied())
            .collect();
        return stream.send(&gathered, patient);
    }
    let mut sent = 0;
    for piece in pieces {
        match stream.send(piece, patient) {
            Ok(n) => {
                sent += n;
                if n < piece.len() {
                    break;
                }
            }
            Err(_) if sent > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(sent)
}

/// `recv` and its kin.
///
/// # Errors
/// As [`super::Stream::recv`]; `ENOTCONN`.
pub fn receive(
    fd: BorrowedFd<'_>,
    socket: &Socket,
    rooms: &mut [IoSliceMut<'_>],
    how: How,
) -> Result<usize, Errno> {
    let stream = socket.stream()?;
    let mut received = 0;
    for room in rooms {
        let mut filled = 0;
        while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let wants = how.wait_all || received + filled == 0;
            let patient = || wants && !how.dont_wait && !is_nonblocking(fd);
            if how.peek {
                return stream.peek(rest, patient);
            }
            match stream.recv(rest, patient) {
                Ok(0) => return Ok(received + filled),
                Ok(n) => filled += n,
                Err(_) if received + filled > 0 => return Ok(received + filled),
                Err(errno) => return Err(errno),
            }
            if !how.wait_all && filled < room.len() {
                return Ok(received + filled);
            }
        }
        received += filled;
    }
    Ok(received)
}

/// `accept`: a new descriptor, and the peer's address if `named`, which waits for its first packet.
///
/// # Errors
/// As [`Socket::accept`]; `EMFILE`.
pub fn accept(
    fd: BorrowedFd<'_>,
    socket: &Socket,
    named: bool,
) -> Result<(RawFd, Option<SocketAddrV4>), Errno> {
    let accepted = socket.accept(|| !is_nonblocking(fd))?;
    let peer = if named { accepted.peer().ok() } else { None };
    Ok((table::insert(accepted)?, peer))
}

/// Pieces of so many bytes in all are copied together.
const GATHER_MAX: usize = 64 << 10;
