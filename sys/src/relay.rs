//! A pair of Unix sockets through which bytes pass: the program, and whoever it shares its end with, has one end by plain calls, and a thread of ours the other.
//!
//! System calls only, none through the C library, which may be watched for the program's calls.

use std::io::{self, IoSlice};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::OFlags;
use rustix::io::{DupFlags, Errno, FdFlags, fcntl_getfd};
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recv, send,
    sendmsg, shutdown, socket_with, socketpair, sockopt,
};
use rustix::rand::GetRandomFlags;
use rustix::time::Timespec;

use crate::hidden::Hidden;
use crate::passed::Passed;
use crate::socket::{inode, with_borrowed};

pub mod bequest;

/// Our end.
#[derive(Debug)]
pub struct Pair {
    ours: Hidden,
    /// Which of the kernel's sockets the other end is, where it is the program's.
    theirs: Option<u64>,
}

impl Pair {
    /// The end that `ours` is, of a pair whose other end is `theirs`: nothing is under way in it from now on, and it holds what a TCP connection would.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn of(ours: Hidden, theirs: BorrowedFd<'_>) -> io::Result<Self> {
        let mut scrap = [MaybeUninit::uninit(); 512];
        for end in [ours.as_fd(), theirs] {
            while matches!(recv(end, &mut scrap, RecvFlags::DONTWAIT), Ok((_, n)) if n > 0) {}
            sockopt::set_socket_send_buffer_size(end, BUFFER)?;
        }
        let theirs = inode(theirs);
        Ok(Self { ours, theirs })
    }

    /// A pair in the place of one that has ended: the other end of the new one is at each of `numbers`, where the old one was, set as that was.
    ///
    /// # Errors
    /// The kernel's.
    pub fn instead(numbers: &[RawFd]) -> io::Result<Self> {
        let (theirs, ours) = ends()?;
        let (theirs, ours) = (Hidden::new(theirs)?, Hidden::new(ours)?);
        take_over_all(theirs.as_fd(), numbers)?;
        Self::of(ours, theirs.as_fd())
    }

    /// The end of another process's pair, which that one has given to this. It may be anything.
    ///
    /// # Errors
    /// `InvalidInput` where it is no end of a pair, and the kernel's.
    pub fn adopt(end: Passed) -> io::Result<Self> {
        let ours = end.into_pipe().ok_or(io::ErrorKind::InvalidInput)?;
        let ours = Hidden::new(ours.into_fd())?;
        Ok(Self { ours, theirs: None })
    }

    /// Gives as many bytes as there is room for.
    ///
    /// # Errors
    /// `EAGAIN` where there is none, `EPIPE` where nobody will take them.
    pub fn give(&self, bytes: &[u8]) -> Result<usize, Errno> {
        send(
            self.ours.as_fd(),
            bytes,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        )
    }

    /// Looks at what there is to take, and leaves it there. 0 is the end.
    ///
    /// # Errors
    /// `EAGAIN` where there is nothing yet; `ECONNRESET` where all who had the other end are gone, and left something unread.
    pub fn see(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        recv(self.ours.as_fd(), into, flags).map(|(seen, _)| seen)
    }

    /// As [`Pair::see`], of bytes none of which is urgent, or of one that is.
    ///
    /// # Errors
    /// As there.
    pub fn see_as(&self, into: &mut [u8], is_urgent: &mut bool) -> Result<usize, Errno> {
        if crate::socket::is_at_mark(self.ours.as_fd()) {
            let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK | RecvFlags::OOB;
            // It is past where the byte has been taken.
            if let Ok((1, _)) = recv(
                self.ours.as_fd(),
                into.get_mut(..1).unwrap_or_default(),
                flags,
            ) {
                *is_urgent = true;
                return Ok(1);
            }
        }
        self.see(into)
    }

    /// Takes what [`Pair::see_as`] saw.
    pub fn take_as(&self, count: usize, is_urgent: bool) {
        if is_urgent && count > 0 {
            // It has been seen.
            let _ = recv(
                self.ours.as_fd(),
                &mut [0],
                RecvFlags::DONTWAIT | RecvFlags::OOB,
            );
        } else {
            self.take(count);
        }
    }

    /// As [`Pair::give`], of a byte that may be urgent. The kernel that knows no such thing of pairs has it among the others.
    ///
    /// # Errors
    /// As there.
    pub fn give_as(&self, bytes: &[u8], is_urgent: bool) -> Result<usize, Errno> {
        if is_urgent {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL | SendFlags::OOB;
            match send(self.ours.as_fd(), bytes, flags) {
                Err(Errno::OPNOTSUPP) => {}
                given => return given,
            }
        }
        self.give(bytes)
    }

    /// Takes what was seen.
    pub fn take(&self, mut count: usize) {
        let mut scrap = [MaybeUninit::uninit(); SCRAP];
        while let Some(room) = scrap
            .get_mut(..count.min(SCRAP))
            .filter(|room| !room.is_empty())
        {
            match recv(self.ours.as_fd(), room, RecvFlags::DONTWAIT) {
                Ok((_, taken)) if taken > 0 => count = count.saturating_sub(taken),
                _ => return,
            }
        }
    }

    /// Gives a descriptor with some bytes. Whether there was room.
    pub fn pass(&self, bytes: &[u8], descriptor: BorrowedFd<'_>) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
        debug_assert!(fits, "there is room for one");
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let bytes = [IoSlice::new(bytes)];
        sendmsg(self.ours.as_fd(), &bytes, &mut control, flags).is_ok()
    }

    /// Whether something has been given that nobody has taken.
    pub fn is_waiting(&self) -> bool {
        // SAFETY: the kernel stores an int.
        let untaken = unsafe { ioctl(self.ours.as_fd(), Getter::<TIOCOUTQ, libc::c_int>::new()) };
        untaken.is_ok_and(|bytes| bytes > 0)
    }

    /// Nothing more comes for those who have the other end.
    pub fn end(&self) {
        // A pair can always be shut down.
        let _ = shutdown(self.ours.as_fd(), Shutdown::Write);
    }

    /// Nothing more goes from those who have the other end, as they have been told.
    pub fn end_of_theirs(&self) {
        // As above.
        let _ = shutdown(self.ours.as_fd(), Shutdown::Read);
    }

    /// Who has the other end is to see an error when ours is closed, and not the end: then something lies here that nobody took. The program may have it at some
    /// of `numbers`; where it has not, or sends nothing more, this does nothing.
    pub fn spoil(&self, numbers: &[RawFd]) {
        for &number in numbers {
            // The program may put something else there at any moment: what is looked at is a duplicate.
            let copied = with_borrowed(number, |fd| rustix::io::fcntl_dupfd_cloexec(fd, 0));
            if let Some(Ok(copy)) = copied
                && let copy = Hidden::if_possible(copy)
                && self
                    .theirs
                    .is_some_and(|theirs| inode(copy.as_fd()) == Some(theirs))
            {
                // One that is full has something in it.
                let _ = send(&copy, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                return;
            }
        }
    }

    /// Whether nobody can send or receive at the other end any more, and whether nobody has it.
    pub fn is_left(&self) -> bool {
        let mut entry = [PollFd::from_borrowed_fd(
            self.ours.as_fd(),
            PollFlags::RDHUP,
        )];
        let shown = poll(&mut entry, Some(&Timespec::default()));
        matches!(shown, Ok(1..)) && entry[0].revents().contains(PollFlags::HUP)
    }

    /// Closes it in a child of `fork`, which has a copy; there the `Pair` is not to be used, nor dropped.
    pub fn close_copy(&self) {
        close_number(self.ours.as_raw_fd());
    }
}

impl AsFd for Pair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

/// The two ends of a new pair.
pub(crate) fn ends() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    Ok(socketpair(AddressFamily::UNIX, kind, flags, None)?)
}

/// A socket of which there is no other end yet.
pub(crate) fn end() -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    Ok(socket_with(AddressFamily::UNIX, kind, flags, None)?)
}

/// The other end of `alone` from now on. They meet at a name that nobody else knows.
pub(crate) fn other_end_of(alone: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let name: [u8; 16] = unguessable()?;
    let name = SocketAddrUnix::new_abstract_name(&name)?;
    let meeting = end()?;
    bind(&meeting, &name)?;
    listen(&meeting, 1)?;
    connect(alone, &name)?;
    Ok(accept_with(&meeting, SocketFlags::CLOEXEC)?)
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The kernel's, where it has none yet.
pub fn unguessable<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let got = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    if got < N {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Puts a duplicate of `new` at each of `numbers`, set as what was there.
pub(crate) fn take_over_all(new: BorrowedFd<'_>, numbers: &[RawFd]) -> io::Result<()> {
    for &number in numbers {
        with_borrowed(number, |old| take_over(new, old)).transpose()?;
    }
    Ok(())
}

/// Puts `new` where `old` is, set as that is.
fn take_over(new: BorrowedFd<'_>, old: BorrowedFd<'_>) -> io::Result<()> {
    let status = rustix::fs::fcntl_getfl(old)?;
    rustix::fs::fcntl_setfl(new, status & (OFlags::NONBLOCK | OFlags::ASYNC))?;
    for which in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        let timeout = sockopt::socket_timeout(old, which)?;
        sockopt::set_socket_timeout(new, which, timeout)?;
    }
    let closes = fcntl_getfd(old)?.contains(FdFlags::CLOEXEC);
    let flags = if closes {
        DupFlags::CLOEXEC
    } else {
        DupFlags::empty()
    };
    // SAFETY: the number is the program's, and stays: it is replaced by a duplicate of `new`, as by a `dup3` of its own.
    let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(old.as_raw_fd()) });
    rustix::io::dup3(new, &mut place, flags)?;
    Ok(())
}

/// Closes a descriptor that nobody uses any more: of a program that ends, say. There may be none at that number, where the program closed it past us.
pub fn close_number(fd: RawFd) {
    if crate::socket::is_open(fd) {
        // SAFETY: by the caller, nobody uses it.
        unsafe { rustix::io::close(fd) };
    }
}

/// Many pairs, and a bell beside them, to wait for.
#[derive(Debug)]
pub struct Watch {
    set: Hidden,
    bell: Hidden,
}

impl Watch {
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let set: OwnedFd = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let watch = Self {
            set: Hidden::new(set)?,
            bell: Hidden::new(bell)?,
        };
        epoll::add(
            watch.set.as_fd(),
            watch.bell.as_fd(),
            EventData::new_u64(u64::MAX),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(watch)
    }

    /// Tells of what changes at a socket, by `name`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&self, socket: impl AsFd, name: u64) -> io::Result<()> {
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(name);
        epoll::add(self.set.as_fd(), socket, data, events)?;
        Ok(())
    }

    /// Tells nothing more of it.
    pub fn remove(&self, socket: impl AsFd) {
        // It is there.
        let _ = epoll::delete(self.set.as_fd(), socket);
    }

    /// Wakes who waits.
    pub fn ring(&self) {
        // A count that is full wakes as well.
        let _ = rustix::io::write(self.bell.as_fd(), &1u64.to_ne_bytes());
    }

    /// Sleeps until something has changed, and tells of each pair's name.
    pub fn wait(&self, mut told: impl FnMut(u64)) {
        let mut reports = [Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }; REPORTS];
        let count = epoll::wait(self.set.as_fd(), &mut reports[..], None).unwrap_or(0);
        for report in reports.iter().take(count) {
            // The structure is packed.
            let data = report.data;
            if data.u64() != u64::MAX {
                told(data.u64());
            }
        }
    }
}

/// What the kernel allows at most, and halves for its own: more than that it cuts down.
const BUFFER: usize = 1 << 20;
/// `asm-generic/ioctls.h`.
const TIOCOUTQ: Opcode = 0x5411;
const SCRAP: usize = 16 << 10;
const REPORTS: usize = 32;
