//! What the kernel knows of a TCP connection.
//!
//! Nothing here waits, allocates or goes through the C library: this runs inside programs whose calls to the C library come to us,
//! also in their signal handlers.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags};

mod counts;
mod demand;
mod elsewhere;
mod option;
mod owner;
#[cfg(test)]
mod tests;
mod witness;

pub use counts::{State, inq, is_opener, outq, received, state, taken, written, written_by};
pub use demand::{
    STAMPS_SENT, is_filtered, is_paced, is_wrapped, peeks_at_offset, signals, stamps_what_is_sent,
};
pub use elsewhere::Sockets;
pub use owner::{NOBODY, Owner, every_user_has_a_name, owner};
pub use witness::{is_witness_of, witness};

pub(crate) use option::{get, set};

/// Which connection a socket is an end of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// This end.
    pub local: SocketAddr,
    /// The other one.
    pub peer: SocketAddr,
    /// The network namespace of the socket, which need not be the caller's. Unique until the host boots again.
    pub netns: u64,
    /// The number of the interface that this end is bound to, as one with a link-local address is; 0 for none. The other end is found by it.
    pub interface: u32,
}

impl Identity {
    /// Whether the other end may be on this host: the addresses are equal or of the loopback. A connection to itself is not meant.
    pub fn is_local(&self) -> bool {
        let (local, peer) = (self.local.ip(), self.peer.ip());
        local == peer || local.is_loopback() && peer.is_loopback()
    }

    /// Whether both ends are one socket, as after a simultaneous open to its own port.
    pub fn is_to_itself(&self) -> bool {
        self.local == self.peer
    }
}

/// Which connection `fd` is an end of; mapped addresses come as IPv4. Four system calls.
///
/// # Errors
/// `ENOTCONN`; `EAFNOSUPPORT` for what has no addresses of the Internet; `ENOPROTOOPT` before Linux 5.14.
pub fn identity(fd: BorrowedFd<'_>) -> Result<Identity, Errno> {
    let (local, peer) = addresses(fd)?;
    Ok(Identity {
        local,
        peer,
        netns: netns(fd)?,
        // Before Linux 5.1 nobody says.
        interface: get(fd, libc::SOL_SOCKET, SO_BINDTOIFINDEX).unwrap_or(0),
    })
}

/// The addresses of this end and of the other, as [`identity`] has them. Two system calls.
///
/// # Errors
/// `ENOTCONN`; `EAFNOSUPPORT` for what has no addresses of the Internet.
pub fn addresses(fd: BorrowedFd<'_>) -> Result<(SocketAddr, SocketAddr), Errno> {
    let peer = rustix::net::getpeername(fd)?.ok_or(Errno::NOTCONN)?;
    let local = rustix::net::getsockname(fd)?;
    Ok((plain(local.try_into()?), plain(peer.try_into()?)))
}

/// The network namespace of a socket of any kind.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.14.
pub fn netns(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    get(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE)
}

/// How many bytes a segment of the connection carries at most (`TCP_MAXSEG`).
///
/// # Errors
/// `ENOPROTOOPT` unless it is a TCP socket.
pub fn segment_len(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    get(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// Sends some of `bytes` at once; no `SIGPIPE`.
///
/// # Errors
/// `EAGAIN` if there is no room, else the connection's.
#[inline]
pub fn send_dontwait(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    retry_on_intr(|| rustix::net::send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}

/// Sends what there is room for of several pieces, as if they were one.
///
/// # Errors
/// `EAGAIN` if there is no room, else the connection's.
pub fn send_pieces_dontwait(fd: BorrowedFd<'_>, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    retry_on_intr(|| rustix::net::sendmsg(fd, pieces, &mut SendAncillaryBuffer::default(), flags))
}

/// Receives what is there; 0 bytes are the end.
///
/// # Errors
/// `EAGAIN` if there is nothing, else the connection's.
#[inline]
pub fn recv_dontwait(fd: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
    receive(fd, into, RecvFlags::DONTWAIT)
}

/// As [`recv_dontwait`], and leaves the bytes there.
///
/// # Errors
/// As [`recv_dontwait`].
pub fn recv_peek(fd: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
    receive(fd, into, RecvFlags::DONTWAIT | RecvFlags::PEEK)
}

/// As [`recv_peek`], into several buffers.
///
/// # Errors
/// As [`recv_dontwait`].
pub fn recv_peek_pieces(fd: BorrowedFd<'_>, into: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    let mut control = RecvAncillaryBuffer::default();
    retry_on_intr(|| rustix::net::recvmsg(fd, into, &mut control, flags)).map(|shown| shown.bytes)
}

fn receive(fd: BorrowedFd<'_>, into: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
    retry_on_intr(|| rustix::net::recv(fd, &mut *into, flags)).map(|(len, _)| len)
}

/// Mapped addresses as IPv4, and no flow labels or scopes, which the two ends may see differently.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

const SO_NETNS_COOKIE: libc::c_int = 71;
const SO_BINDTOIFINDEX: libc::c_int = 62;
