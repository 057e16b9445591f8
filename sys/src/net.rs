//! Packets, descriptors and doorbells between two processes of one host, over Unix sockets in the abstract namespace.
//!
//! `SOCK_SEQPACKET`: reliable, ordered, with boundaries, and the kernel reports the death of the other side. A name vanishes with
//! its last descriptor, so that nothing is left after `kill -9`.

use std::io::{self, IoSlice};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Instant;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::fork::{self, OwnFd};
use crate::hidden::Hidden;
use crate::passed::{self, Passed, Rights, is_stranger};
use crate::poll;

/// A name at which other processes of the network namespace can connect. A forked child does not have it.
#[derive(Debug)]
pub struct Listener {
    fd: OwnFd,
}

impl Listener {
    /// Takes the abstract name `name`, of at most 107 bytes; `backlog` connections may wait to be accepted.
    ///
    /// # Errors
    /// `AddrInUse` if another socket holds the name; `ENAMETOOLONG`.
    pub fn bind(name: &[u8], backlog: i32) -> io::Result<Self> {
        let fd = OwnFd::new(socket()?);
        rustix::net::bind(&fd, &SocketAddrUnix::new_abstract_name(name)?)?;
        rustix::net::listen(&fd, backlog)?;
        Ok(Self { fd })
    }

    /// The longest waiting connection, if there is one. Its peer may have closed already.
    ///
    /// # Errors
    /// `EMFILE` and `ENFILE`: the connection goes on waiting.
    pub fn accept(&self) -> io::Result<Option<Conn>> {
        match retry_on_intr(|| rustix::net::accept_with(&self.fd, FLAGS)) {
            Ok(fd) => Ok(Some(Conn::of(fd))),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.fd.is_of_this_process() {
            for come in passed::leave(self.fd.as_fd()) {
                drop(Conn::new(come));
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// One end of a connection. Nothing here blocks, except [`wait_readable`](Self::wait_readable).
///
/// A packet of one byte is a doorbell ([`knock`](Self::knock)), every longer one is the user's; [`recv`](Self::recv) and [`drain`](Self::drain)
/// never confuse them.
#[derive(Debug)]
pub struct Conn {
    fd: Hidden,
    /// Of the process that is to end it when it closes it, as a forked child is not.
    generation: Option<u32>,
}

impl Conn {
    /// # Errors
    /// `ConnectionRefused` if no one listens at `name`; `WouldBlock` if the listener's backlog is full; `ENAMETOOLONG`.
    pub fn connect(name: &[u8]) -> io::Result<Self> {
        let fd = socket()?;
        let address = SocketAddrUnix::new_abstract_name(name)?;
        retry_on_intr(|| rustix::net::connect(&fd, &address))?;
        Ok(Self::of(fd))
    }

    /// Two connected ends.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        Ok((Self::of(one), Self::of(other)))
    }

    /// Sends one packet, with duplicates of up to [`FDS_MAX`] descriptors: all of it or nothing.
    ///
    /// # Errors
    /// `InvalidInput` for packets shorter than two bytes and for more descriptors; `EMSGSIZE` for a packet larger than the send buffer.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<Sent> {
        if bytes.len() <= KNOCK.len() || fds.len() > FDS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let fits = control.push(SendAncillaryMessage::ScmRights(fds));
            debug_assert!(fits);
        }
        let packet = [IoSlice::new(bytes)];
        let outcome = retry_on_intr(|| rustix::net::sendmsg(&self.fd, &packet, &mut control, SEND));
        match outcome {
            Ok(_) => Ok(Sent::Whole),
            Err(Errno::AGAIN) => Ok(Sent::Full),
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(Sent::Closed),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes the next packet; doorbells before it are swallowed.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub fn recv(&self, into: &mut [u8]) -> io::Result<Received> {
        Ok(self.drain(into)?.then)
    }

    /// Swallows doorbells up to the next packet, and takes that one.
    ///
    /// After [`KNOCKS_MAX`] doorbells it returns all the same (`then` is `Nothing`, the descriptor still readable), so that a peer that never stops
    /// knocking cannot hold the caller.
    ///
    /// # Errors
    /// `InvalidInput` if `into` has less than two bytes.
    pub fn drain(&self, into: &mut [u8]) -> io::Result<Drained> {
        if into.len() <= KNOCK.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for knocks in 0..KNOCKS_MAX {
            match self.take(into)? {
                Received::Packet { len, .. } if len == KNOCK.len() => {}
                then => return Ok(Drained { knocks, then }),
            }
        }
        Ok(Drained {
            knocks: KNOCKS_MAX,
            then: Received::Nothing,
        })
    }

    /// Rings the other side's doorbell: makes its end readable.
    ///
    /// One system call, no allocation. Nothing can be wrong that would matter to the caller: if the queue is full, the other side is readable;
    /// if it is closed, there is no one to wake.
    #[inline]
    pub fn knock(&self) {
        let _ = rustix::net::send(&self.fd, &KNOCK, SEND);
    }

    /// Who the other side was when it connected, listened or made the pair.
    ///
    /// # Errors
    /// None known for a connected socket.
    pub fn peer(&self) -> io::Result<Credentials> {
        let mut peer = MaybeUninit::<libc::ucred>::uninit();
        socket_option(self.as_fd(), libc::SO_PEERCRED, &mut peer)?;
        // SAFETY: `socket_option` succeeded, which means that the kernel wrote all of it; it consists of integers.
        let peer = unsafe { peer.assume_init() };
        Ok(Credentials {
            pid: peer.pid.cast_unsigned(),
            uid: peer.uid,
            gid: peer.gid,
        })
    }

    /// Whether the other side was of the user that this process is of now.
    pub fn is_of_this_user(&self) -> bool {
        !is_stranger(self.as_fd())
    }

    /// A descriptor for the process at the other side: it becomes readable when that process ends, and never means another one.
    ///
    /// Before Linux 6.5 it is made from the process id, which may have been reused if the process ended in the meantime.
    ///
    /// # Errors
    /// `ESRCH` or `EINVAL` if the process is gone; `EMFILE`.
    pub fn peer_pidfd(&self) -> io::Result<OwnedFd> {
        let mut pidfd = MaybeUninit::<libc::c_int>::uninit();
        match socket_option(self.as_fd(), SO_PEERPIDFD, &mut pidfd) {
            // SAFETY: the call succeeded, so the kernel stored a descriptor that it opened for us and that no one else owns.
            Ok(()) => Ok(unsafe { OwnedFd::from_raw_fd(pidfd.assume_init()) }),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                let pid = Pid::from_raw(self.peer()?.pid.cast_signed()).ok_or(Errno::SRCH)?;
                Ok(pidfd_open(pid, PidfdFlags::empty())?)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends both directions for every holder of this end; the other side reads `Closed` after what is queued. Harmless when repeated.
    pub fn shutdown(&self) {
        // ENOTCONN, the only failure that a socket can report here, says that it has happened already.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }

    /// Sleeps until there is something to receive, be it the end; `false` if `deadline` passed first.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn wait_readable(&self, deadline: Option<Instant>) -> io::Result<bool> {
        poll::wait_readable([self.as_fd()], deadline).map(|[readable]| readable)
    }

    fn of(fd: OwnedFd) -> Self {
        Self::new(Hidden::of_a_nic(fd))
    }

    fn new(fd: Hidden) -> Self {
        let generation = fork::watch().ok().map(|()| fork::generation());
        Self { fd, generation }
    }

    /// Closes it, and it goes on where others have it.
    pub fn leave(self) {
        drop(OwnedFd::from(self));
    }

    fn take(&self, into: &mut [u8]) -> io::Result<Received> {
        let mut rights = Rights::new();
        let taken = loop {
            match passed::receive(self.as_fd(), into, &mut rights) {
                // The other side closed without reading all we sent. The kernel says so once, ahead of the packets still queued for us.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                other => break other?,
            }
        };
        if taken.bytes == 0 {
            return Ok(Received::Closed);
        }
        let fds = rights.by_ref().take(FDS_MAX).collect();
        Ok(Received::Packet {
            len: taken.bytes,
            fds,
            truncated: taken.cut || rights.next().is_some(),
        })
    }
}

impl TryFrom<OwnedFd> for Conn {
    type Error = io::Error;

    /// Takes a descriptor that came from elsewhere.
    ///
    /// # Errors
    /// `InvalidInput` for what is no Unix seqpacket socket.
    fn try_from(fd: OwnedFd) -> io::Result<Self> {
        let domain = rustix::net::sockopt::socket_domain(&fd)?;
        let kind = rustix::net::sockopt::socket_type(&fd)?;
        if (domain, kind) != (AddressFamily::UNIX, SocketType::SEQPACKET) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self::of(fd))
    }
}

impl From<Conn> for OwnedFd {
    fn from(conn: Conn) -> Self {
        let conn = ManuallyDrop::new(conn);
        // SAFETY: `conn` is used no more, and its own drop does not come.
        unsafe { ptr::read(&raw const conn.fd) }.into_fd()
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.generation == Some(fork::generation()) && is_stranger(self.as_fd()) {
            passed::empty(self.as_fd());
        }
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing was sent, nor ever will be: the other side closed.
    Closed,
    /// Nothing was sent: the other side must receive first.
    Full,
    /// It is queued at the other side.
    Whole,
}

/// What came in.
#[derive(Debug)]
pub enum Received {
    /// Nothing yet.
    Nothing,
    /// The other side closed and everything is received. An empty packet, which [`Conn::send`] cannot send, reads as this too.
    Closed,
    /// One packet.
    Packet {
        /// How many bytes of the buffer it fills.
        len: usize,
        /// The descriptors that came along, at most [`FDS_MAX`].
        fds: Vec<Passed>,
        /// Bytes or descriptors did not fit and are lost.
        truncated: bool,
    },
}

/// What [`Conn::drain`] found.
#[derive(Debug)]
pub struct Drained {
    /// How many doorbells it swallowed.
    pub knocks: u32,
    /// What stood behind them.
    pub then: Received,
}

/// The kernel's word on who the other side is, in the terms of our namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// 0 if the process is invisible from our PID namespace.
    pub pid: u32,
    /// Effective user id; the overflow id (65534) if it has no name in our user namespace.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// The most descriptors that travel with one packet.
pub const FDS_MAX: usize = 8;

/// The most doorbells that one [`Conn::drain`] swallows; more than a default socket buffer holds.
pub const KNOCKS_MAX: u32 = 1024;

const KNOCK: [u8; 1] = [7];
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
const SO_PEERPIDFD: libc::c_int = 77;

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        FLAGS,
        None,
    )?)
}

/// Raw, because rustix's `UCred` cannot hold the process id 0, and because `getsockopt` may be one of the functions that our own preload library interposes.
fn socket_option<T>(
    fd: BorrowedFd<'_>,
    name: libc::c_int,
    value: &mut MaybeUninit<T>,
) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let mut len = size;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which has as many, and the true length to `len`; both outlive the call.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_getsockopt,
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr(),
            &raw mut len,
        )
    };
    match rc {
        0 if len == size => Ok(()),
        0 => Err(io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
