//! A name at which two processes meet: packets and descriptors between them, unnoticed by the programs that they run.
//!
//! As [`crate::net`], which is for processes of our own: abstract names and `SOCK_SEQPACKET`. Here every descriptor that stays is [hidden](Hidden),
//! nothing allocates, and nothing goes through the C library.
//!
//! Who meets us may be a stranger, so nothing that he has passed is closed as it is ([`crate::passed`]).

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::fork::here;
use crate::hidden::Hidden;
use crate::passed::{self, Passed, Rights, is_stranger};
use crate::poll;

/// Goes to the abstract name `name`, of at most 107 bytes. At most nine system calls.
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
            return Ok(Arrival::First(Place { fd, pid: here() }));
        }
        Err(Errno::ADDRINUSE) => {}
        Err(errno) => return Err(errno),
    }
    match retry_on_intr(|| rustix::net::connect(fd.as_fd(), &address)) {
        Ok(()) => Ok(Arrival::Second(Caller::of(fd))),
        // It is bound and does not listen, yet or any more, or too many wait there.
        Err(Errno::CONNREFUSED | Errno::AGAIN) => Ok(Arrival::Neither),
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
    /// Whose it is to end: a forked child has a descriptor of the same socket.
    pid: u32,
}

impl Place {
    /// Who has come, longest first. One system call if nobody has.
    ///
    /// That one only asks: after each `accept4` in vain a stream that came over TCP meanwhile was a quarter slower for 10 to 30 ms. It makes a socket and frees
    /// it, which keeps the kernel busy for some ticks, presumably on a processor whose receiver sleeps at each turn.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn accept(&self) -> Result<Option<Caller>, Errno> {
        if !poll::is_ready(self.fd.as_fd()) {
            return Ok(None);
        }
        match retry_on_intr(|| rustix::net::accept_with(self.fd.as_fd(), FLAGS)) {
            Ok(fd) => Ok(Some(Caller::of(hide(fd)?))),
            Err(Errno::AGAIN | Errno::CONNABORTED) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.pid != here() {
            return;
        }
        for come in passed::leave(self.fd.as_fd()) {
            drop(Caller::of(come));
        }
    }
}

/// A connection to somebody at the name.
#[derive(Debug)]
pub struct Caller {
    fd: Hidden,
    is_stranger: bool,
}

impl Caller {
    fn of(fd: Hidden) -> Self {
        Self {
            is_stranger: is_stranger(fd.as_fd()),
            fd,
        }
    }

    /// Sends one packet, not empty, with duplicates of up to three descriptors: all or nothing.
    ///
    /// # Errors
    /// `EPIPE` if the other side has gone, `EAGAIN` if it must receive first, `ETOOMANYREFS` if too many descriptors are under way.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        if fds.len() > FDS_MAX {
            return Err(Errno::INVAL);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let fits = control.push(SendAncillaryMessage::ScmRights(fds));
            debug_assert!(fits, "there is room for so many");
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

    /// Takes one packet. Descriptors beyond three are closed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn recv(&self, into: &mut [u8]) -> Result<Received, Errno> {
        let mut rights = Rights::new();
        let mut attempts = 0;
        let taken = loop {
            match passed::receive(self.fd.as_fd(), into, &mut rights) {
                // Said once by a side that closed without reading; packets may be queued behind it.
                Err(Errno::INTR | Errno::CONNRESET) if attempts < 8 => attempts += 1,
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::CONNRESET) => return Ok(Received::Closed),
                other => break other?,
            }
        };
        if taken.bytes == 0 {
            return Ok(Received::Closed);
        }
        let fds = std::array::from_fn(|_| rights.next());
        let whole = !taken.cut && rights.next().is_none();
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
        passed::uid(self.fd.as_fd())
    }

    /// Whether he is of the same user as this process was when they met.
    pub fn is_of_this_user(&self) -> bool {
        !self.is_stranger
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_stranger {
            passed::empty(self.fd.as_fd());
        }
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
        /// The descriptors that came along.
        fds: [Option<Passed>; FDS_MAX],
        /// Neither bytes nor descriptors are missing.
        whole: bool,
    },
}

/// Descriptors that go with a packet.
pub const FDS_MAX: usize = 3;

fn hide(fd: OwnedFd) -> Result<Hidden, Errno> {
    Hidden::new(fd).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
}

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::io::FdFlags;

    use super::*;
    use crate::sync::{Ordering, mapped::AtomicU32};

    fn name() -> Vec<u8> {
        static TAKEN: AtomicU32 = AtomicU32::new(0);
        let nth = TAKEN.fetch_add(1, Ordering::Relaxed);
        format!("sovia-rendezvous-{}-{nth}", std::process::id()).into_bytes()
    }

    fn both() -> (Caller, Caller) {
        let name = name();
        let Ok(Arrival::First(place)) = arrive(&name, 4) else {
            panic!("nobody else is there");
        };
        let Ok(Arrival::Second(caller)) = arrive(&name, 4) else {
            panic!("somebody is there");
        };
        let met = place.accept().expect("accept").expect("somebody has come");
        assert!(place.accept().expect("accept").is_none());
        (met, caller)
    }

    /// A socket of `kind` that has the name and does not listen.
    fn squatter(name: &[u8], kind: SocketType) -> OwnedFd {
        let fd = rustix::net::socket(AddressFamily::UNIX, kind, None).expect("socket");
        let address = SocketAddrUnix::new_abstract_name(name).expect("a name");
        rustix::net::bind(&fd, &address).expect("bind");
        fd
    }

    #[test]
    fn the_name_is_free_when_the_place_is_left() {
        let name = name();
        for _ in 0..2 {
            assert!(matches!(arrive(&name, 1), Ok(Arrival::First(_))));
        }
        assert_eq!(arrive(&[b'x'; 200], 1).err(), Some(Errno::NAMETOOLONG));
    }

    #[test]
    fn a_name_where_nobody_listens_is_neither() {
        let name = name();
        let squatter = squatter(&name, SocketType::SEQPACKET);
        assert!(matches!(arrive(&name, 1), Ok(Arrival::Neither)));
        rustix::net::listen(&squatter, 0).expect("listen");
        let _first = arrive(&name, 1).expect("it listens");
        assert!(
            matches!(arrive(&name, 1), Ok(Arrival::Neither)),
            "its backlog is full"
        );
    }

    /// The kernel keeps a name for each type, so there is one kind of squatter only.
    #[test]
    fn a_name_of_another_type_is_another_name() {
        for kind in [SocketType::STREAM, SocketType::DGRAM] {
            let name = name();
            let _squatter = squatter(&name, kind);
            assert!(matches!(arrive(&name, 1), Ok(Arrival::First(_))));
        }
    }

    #[test]
    fn descriptors_are_out_of_the_programs_way() {
        let (one, other) = both();
        for caller in [&one, &other] {
            assert!(caller.as_fd().as_raw_fd() >= crate::hidden::base());
            assert!(crate::hidden::is_hidden(caller.as_fd().as_raw_fd()));
            let flags = rustix::io::fcntl_getfd(caller.as_fd()).expect("flags");
            assert!(flags.contains(FdFlags::CLOEXEC));
        }
    }

    #[test]
    fn packets_carry_three_descriptors_and_no_more() {
        let (one, other) = both();
        let (kept, passed) = rustix::pipe::pipe().expect("pipe");
        other.send(b"three", &[passed.as_fd(); 3]).expect("send");
        let four = [passed.as_fd(); 4];
        assert_eq!(other.send(b"four", &four), Err(Errno::INVAL));

        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let six = [passed.as_fd(); 6];
        assert!(control.push(SendAncillaryMessage::ScmRights(&six)));
        let flags = SendFlags::DONTWAIT;
        rustix::net::sendmsg(&other, &[IoSlice::new(b"six")], &mut control, flags).expect("six");
        drop(passed);

        let mut into = [0; 8];
        for (len, is_whole) in [(5, true), (3, false)] {
            let Ok(Received::Packet { len: n, fds, whole }) = one.recv(&mut into) else {
                panic!("a packet");
            };
            assert_eq!((n, whole), (len, is_whole));
            assert!(fds.iter().all(Option::is_some));
        }
        // All duplicates are closed: nobody can write any more.
        assert_eq!(rustix::io::read(&kept, &mut into), Ok(0));
    }

    #[test]
    fn an_end_is_seen_after_what_was_said() {
        let (one, other) = both();
        assert!(matches!(one.recv(&mut [0; 8]), Ok(Received::Nothing)));
        one.send(b"unread", &[]).expect("send");
        other.send(b"last", &[]).expect("send");
        drop(other);
        let Ok(Received::Packet { len: 4, .. }) = one.recv(&mut [0; 8]) else {
            panic!("a packet");
        };
        assert!(matches!(one.recv(&mut [0; 8]), Ok(Received::Closed)));
        assert_eq!(one.send(b"anyone", &[]), Err(Errno::PIPE));
    }

    #[test]
    fn the_kernel_says_whose_the_other_side_is() {
        let (one, other) = both();
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!([one.uid(), other.uid()], [Ok(uid); 2]);
    }
}
