//! A name at which two processes meet: packets and descriptors between them, unnoticed by the programs that they run.
//!
//! As [`crate::net`], which is for processes of our own: abstract names and `SOCK_SEQPACKET`. Here every descriptor that stays is [hidden](Hidden),
//! nothing allocates, and nothing goes through the C library.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::hidden::Hidden;
use crate::tcp;

/// Goes to the abstract name `name`, of at most 107 bytes. At most six system calls.
///
/// # Errors
/// The kernel's: descriptors, memory, a security module.
pub fn arrive(name: &[u8], backlog: i32) -> Result<Arrival, Errno> {
    let address = SocketAddrUnix::new_abstract_name(name)?;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
    let fd = hide(fd)?;
    match rustix::net::bind(fd.as_fd(), &address) {
        Ok(()) => {
            rustix::net::listen(fd.as_fd(), backlog)?;
            return Ok(Arrival::First(Place { fd }));
        }
        Err(Errno::ADDRINUSE) => {}
        Err(errno) => return Err(errno),
    }
    match retry_on_intr(|| rustix::net::connect(fd.as_fd(), &address)) {
        Ok(()) => Ok(Arrival::Second(Caller { fd })),
        // It is bound and does not listen, yet or any more, or too many wait there, or it is of another type.
        Err(Errno::CONNREFUSED | Errno::AGAIN | Errno::PROTOTYPE) => Ok(Arrival::Neither),
        Err(errno) => Err(errno),
    }
}

/// What there was at a name.
#[derive(Debug)]
pub enum Arrival {
    /// Nothing: it is ours now.
    First(Place),
    /// Somebody listening.
    Second(Caller),
    /// Somebody, but not listening now.
    Neither,
}

/// The name, taken. It is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    fd: Hidden,
}

impl Place {
    /// Who has come, longest first. One system call if nobody has.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn accept(&self) -> Result<Option<Caller>, Errno> {
        match retry_on_intr(|| rustix::net::accept_with(self.fd.as_fd(), FLAGS)) {
            Ok(fd) => Ok(Some(Caller { fd: hide(fd)? })),
            Err(Errno::AGAIN | Errno::CONNABORTED) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// A connection to somebody at the name.
#[derive(Debug)]
pub struct Caller {
    fd: Hidden,
}

impl Caller {
    /// Sends one packet, not empty, with duplicates of up to two descriptors: all or nothing.
    ///
    /// # Errors
    /// `EPIPE` if the other side has gone, `EAGAIN` if it must receive first, `ETOOMANYREFS` if too many descriptors are under way.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::INVAL);
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let packet = [IoSlice::new(bytes)];
        match retry_on_intr(|| rustix::net::sendmsg(self.fd.as_fd(), &packet, &mut control, flags))
        {
            Ok(_) => Ok(()),
            Err(Errno::CONNRESET) => Err(Errno::PIPE),
            Err(errno) => Err(errno),
        }
    }

    /// Takes one packet. Descriptors beyond two are closed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn recv(&self, into: &mut [u8]) -> Result<Received, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut attempts = 0;
        let taken = loop {
            let mut parts = [IoSliceMut::new(into)];
            match rustix::net::recvmsg(self.fd.as_fd(), &mut parts, &mut control, flags) {
                // Said once by a side that closed without reading; packets may be queued behind it.
                Err(Errno::INTR | Errno::CONNRESET) if attempts < 8 => attempts += 1,
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::CONNRESET) => return Ok(Received::Closed),
                other => break other?,
            }
        };
        let mut fds = [const { None }; FDS_MAX];
        let mut places = fds.iter_mut();
        let mut whole = !taken
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        for message in control.drain() {
            let RecvAncillaryMessage::ScmRights(rights) = message else {
                whole = false;
                continue;
            };
            for fd in rights {
                match places.next() {
                    Some(place) => *place = Some(fd),
                    None => {
                        whole = false;
                        drop(Hidden::adopt(fd));
                    }
                }
            }
        }
        if taken.bytes == 0 {
            return Ok(Received::Closed);
        }
        Ok(Received::Packet {
            len: taken.bytes,
            fds,
            whole,
        })
    }

    /// The user id of who connected or listened, as our user namespace names him.
    ///
    /// # Errors
    /// None known for a connected socket.
    pub fn uid(&self) -> Result<u32, Errno> {
        let [_pid, uid, _gid]: [u32; 3] =
            tcp::get(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED)?;
        Ok(uid)
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What came in.
#[derive(Debug)]
pub enum Received {
    /// Nothing yet.
    Nothing,
    /// The other side has gone.
    Closed,
    /// A packet.
    Packet {
        /// How many bytes of the buffer it fills.
        len: usize,
        /// The descriptors that came along, close-on-exec. They are where the kernel put them, which may be low.
        fds: [Option<OwnedFd>; FDS_MAX],
        /// Neither bytes nor descriptors are missing.
        whole: bool,
    },
}

/// Descriptors that go with a packet.
pub const FDS_MAX: usize = 2;

fn hide(fd: OwnedFd) -> Result<Hidden, Errno> {
    Hidden::new(fd).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
}

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
