//! What the C interfaces have in common: calls on a descriptor, with flags.

use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut, Read};
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use sys::errno::Errno;
use sys::socket::{is_nonblocking, receive_timeout_ms, send_timeout_ms};

use super::socket::Socket;
use super::table::{self, Held};
use super::wait::Wait;

/// How to receive.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// MSG_DONTWAIT.
    pub dont_wait: bool,
    /// MSG_PEEK.
    pub peek: bool,
    /// MSG_WAITALL.
    pub wait_all: bool,
    /// MSG_TRUNC: so many bytes go nowhere; with `peek` they are counted.
    pub skip: Option<usize>,
    /// The call has taken bytes already: without `wait_all` it waits for no more, and leaves an error to the next.
    pub begun: bool,
}

/// `send` and its kin. A few small pieces leave as one message.
///
/// # Errors
/// As [`super::Stream::send`]; `EPIPE` also where there is no connection.
pub fn send(
    fd: BorrowedFd<'_>,
    socket: &Socket,
    pieces: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    let untold = |_| socket.take_failure().unwrap_or(Errno::PIPE);
    let stream = socket.stream().map_err(untold)?;
    let patient = Patience::new(dont_wait, || socket.wait(fd, send_timeout_ms));
    let patient = || patient.ask();
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
        match stream.send_more(piece, sent > 0, patient) {
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

/// `send` with MSG_OOB: the last byte is urgent.
///
/// # Errors
/// As [`send`].
#[cold]
pub fn send_urgent(
    fd: BorrowedFd<'_>,
    socket: &Socket,
    pieces: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    let mut bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
    let Some(urgent) = bytes.pop() else {
        return send(fd, socket, pieces, dont_wait);
    };
    let sent = match bytes.len() {
        0 => 0,
        _ => send(fd, socket, &[IoSlice::new(&bytes)], dont_wait)?,
    };
    if sent < bytes.len() {
        return Ok(sent);
    }
    let untold = |_| socket.take_failure().unwrap_or(Errno::PIPE);
    let stream = socket.stream().map_err(untold)?;
    let patience = Patience::new(dont_wait, || socket.wait(fd, send_timeout_ms));
    match stream.send_urgent(urgent, || patience.ask()) {
        Ok(()) => Ok(sent + 1),
        Err(_) if sent > 0 => Ok(sent),
        Err(errno) => Err(errno),
    }
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
    if let Some(len) = how.skip {
        return skip(fd, socket, len, how);
    }
    let untold = |errno| socket.take_failure().unwrap_or(errno);
    let stream = socket.stream().map_err(untold)?;
    let patience = Patience::new(how.dont_wait, || socket.wait(fd, receive_timeout_ms));
    let looks_for_all = how.peek && how.wait_all;
    if stream.has_low_water() && !how.begun && !looks_for_all {
        let wanted = rooms.iter().map(|room| room.len()).sum();
        stream.await_low_water(wanted, || patience.ask())?;
    }
    if how.peek {
        let patient = || patience.ask();
        if let [room] = rooms {
            return stream.peek(room, how.wait_all, patient);
        }
        let len: usize = rooms.iter().map(|room| room.len()).sum();
        let mut gathered = vec![0; len.min(GATHER_MAX)];
        let seen = stream.peek(&mut gathered, how.wait_all, patient)?;
        let mut rest = gathered.get(..seen).unwrap_or_default();
        for room in rooms {
            // A slice is read without fail.
            let _ = rest.read(room);
        }
        return Ok(seen);
    }
    let mut received = 0;
    for room in rooms {
        let mut filled = 0;
        while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let begun = how.begun || received + filled > 0;
            let wants = how.wait_all || !begun;
            let patient = || match wants.then(|| patience.ask()) {
                Some(wait) if begun => wait.for_the_rest(),
                wait => wait.unwrap_or(Wait::Not),
            };
            match stream.recv_more(rest, begun, patient) {
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

/// Takes up to `len` bytes out of the stream, or counts what is there of them.
fn skip(fd: BorrowedFd<'_>, socket: &Socket, len: usize, how: How) -> Result<usize, Errno> {
    let mut scratch = vec![0; len.min(GATHER_MAX)];
    let mut skipped = 0;
    while let Some(room) = scratch.get_mut(..len.saturating_sub(skipped).min(GATHER_MAX)) {
        let now = How {
            begun: skipped > 0,
            skip: None,
            ..how
        };
        match receive(fd, socket, &mut [IoSliceMut::new(room)], now) {
            Ok(0) => break,
            Ok(n) => skipped += n,
            Err(_) if skipped > 0 => break,
            Err(errno) => return Err(errno),
        }
        if skipped == len || how.peek {
            break;
        }
    }
    Ok(skipped)
}

/// `connect`.
///
/// # Errors
/// As [`Socket::connect`]; `EINPROGRESS` where that may not wait, and would.
pub fn connect(fd: BorrowedFd<'_>, socket: &Arc<Held>, address: SocketAddrV4) -> Result<(), Errno> {
    // Of the one before, of which nobody has asked; what was dissolved nobody is told of here.
    let failure = socket.take_failure();
    let failure = failure.filter(|errno| *errno != Errno::CONNRESET);
    let renewed = socket.renew(|| table::sharing::numbers(socket));
    renewed.map_err(|_| Errno::NOBUFS)?;
    if let Some(errno) = failure {
        return Err(errno);
    }
    let number = fd.as_raw_fd().cast_unsigned();
    if is_nonblocking(fd) {
        Socket::connect_behind(socket, address, number)
    } else {
        socket.connect(address, number)
    }
}

/// `accept`: a new descriptor, and the peer's address if `named`.
///
/// # Errors
/// As [`Socket::accept`]; `EMFILE`.
pub fn accept(
    fd: BorrowedFd<'_>,
    socket: &Socket,
    named: bool,
) -> Result<(RawFd, Option<SocketAddrV4>), Errno> {
    let patience = Patience::new(false, || socket.wait(fd, receive_timeout_ms));
    let accepted = socket.accept(|| patience.ask())?;
    let peer = if named { accepted.peer().ok() } else { None };
    match table::insert(accepted) {
        Ok(fd) => Ok((fd, peer)),
        Err((errno, accepted)) => {
            // It goes on waiting, as for the kernel.
            socket.put_back(&accepted);
            Err(errno)
        }
    }
}

/// How a call waits: asked where it first matters, for the kernel has to be, and the same from then on.
struct Patience<F> {
    known: Cell<Option<Wait>>,
    find: F,
}

impl<F: Fn() -> Wait> Patience<F> {
    fn new(dont_wait: bool, find: F) -> Self {
        let known = Cell::new(dont_wait.then_some(Wait::Not));
        Self { known, find }
    }

    fn ask(&self) -> Wait {
        let wait = self.known.get().unwrap_or_else(&self.find);
        self.known.set(Some(wait));
        wait
    }
}

/// Pieces of so many bytes in all are copied together.
const GATHER_MAX: usize = 64 << 10;
