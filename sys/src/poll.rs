//! Waiting for descriptors: a readiness set over epoll, and a plain poll for a handful.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;

use crate::hidden::Hidden;
use crate::time;

/// A level-triggered readiness set that any thread can wake.
///
/// It holds no descriptors: a member that is closed everywhere leaves by itself, one that lives on as a duplicate does not, so `remove` before
/// handing a descriptor on. The set is itself a descriptor, readable while a member is ready or a wake-up is pending, and so can
/// be a member of another set.
#[derive(Debug)]
pub struct Poller {
    epoll: Hidden,
    wake: Hidden,
}

impl Poller {
    /// # Errors
    /// `EMFILE`, `ENFILE` or `ENOMEM`: two descriptors are needed.
    pub fn new() -> io::Result<Self> {
        let epoll = Hidden::of_a_nic(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let wake = Hidden::of_a_nic(wake);
        epoll::add(
            &epoll,
            &wake,
            epoll::EventData::new_u64(WAKE),
            epoll::EventFlags::IN,
        )?;
        Ok(Self { epoll, wake })
    }

    /// Makes `fd` a member, known as `token` in the events it causes.
    ///
    /// # Errors
    /// `AlreadyExists` for a member, `InvalidInput` for the token `u64::MAX`, `PermissionDenied` for what cannot be polled (regular files).
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let token = user_token(token)?;
        Ok(epoll::add(&self.epoll, fd, token, interest.flags())?)
    }

    /// Changes what a member is waited for, and its token.
    ///
    /// # Errors
    /// `NotFound` if it is no member, `InvalidInput` for the token `u64::MAX`.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let token = user_token(token)?;
        Ok(epoll::modify(&self.epoll, fd, token, interest.flags())?)
    }

    /// # Errors
    /// `NotFound` if it is no member.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Replaces `events` by what is ready, at most [`EVENTS_MAX`] of it; says whether [`wake`](Self::wake) was called.
    ///
    /// Returns at the first event, at a wake-up, or, with no event and `false`, when `timeout` has passed. Signals do not end it.
    /// Wake-ups since the last wait count as one. Allocates only to grow `events`.
    ///
    /// # Errors
    /// Only what epoll itself reports about its own descriptor.
    pub fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<bool> {
        events.clear();
        let deadline = timeout.and_then(|timeout| time::now().checked_add(timeout));
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        loop {
            let left = time::remaining(deadline);
            let (ready, _) = match epoll::wait(&self.epoll, &mut room[..], left.as_ref()) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let mut woken = false;
            for event in ready {
                match event.data.u64() {
                    WAKE => woken = self.settle()?,
                    token => events.push(Event::new(token, event.flags)),
                }
            }
            // Another waiter of this set may have settled the wake-up first.
            if woken || !events.is_empty() || time::expired(deadline) {
                return Ok(woken);
            }
        }
    }

    /// Ends one present or else the next [`wait`](Self::wait), from any thread and, as it neither allocates nor locks, from a signal handler.
    pub fn wake(&self) {
        // The only failure, EAGAIN, means that 2^64 - 2 wake-ups are pending already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn settle(&self) -> io::Result<bool> {
        match rustix::io::read(&self.wake, &mut [0; 8]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// What a member is waited for. Hang-up is always included; that of one direction, the other side's, but for [`Interest::Room`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Only the end: hang-up or error.
    Hangup,
    /// Input.
    Read,
    /// Input and room for output.
    ReadWrite,
    /// Room for output.
    Write,
    /// Room for output, from a side whose end has been read: as it stays so, it would tell of that for ever.
    Room,
    /// Input, once: then nothing, until it is modified.
    Once,
    /// Input and room for output, once.
    OnceReadWrite,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        let wanted = match self {
            Self::Hangup => epoll::EventFlags::empty(),
            Self::Read => epoll::EventFlags::IN,
            Self::ReadWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            Self::Write => epoll::EventFlags::OUT,
            Self::Room => return epoll::EventFlags::OUT,
            Self::Once => epoll::EventFlags::IN | epoll::EventFlags::ONESHOT,
            Self::OnceReadWrite => {
                epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ONESHOT
            }
        };
        wanted | epoll::EventFlags::RDHUP
    }
}

/// One ready member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// As given to [`Poller::add`].
    pub token: u64,
    /// A read would not block.
    pub readable: bool,
    /// A write would not block.
    pub writable: bool,
    /// The other side closed, half-closed or failed; input may be left.
    pub hangup: bool,
}

impl Event {
    fn new(token: u64, flags: epoll::EventFlags) -> Self {
        let ended = epoll::EventFlags::HUP | epoll::EventFlags::RDHUP | epoll::EventFlags::ERR;
        Self {
            token,
            readable: flags.contains(epoll::EventFlags::IN),
            writable: flags.contains(epoll::EventFlags::OUT),
            hangup: flags.intersects(ended),
        }
    }
}

/// Waits until one of `fds` is readable, hung up or failed, and says which are; none if `deadline` passed first.
///
/// Allocates nothing; signals do not end it.
///
/// # Errors
/// `ENOMEM`, or `EINVAL` for more descriptors than `RLIMIT_NOFILE`.
pub fn wait_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    deadline: Option<Instant>,
) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    loop {
        match poll(&mut polled, time::remaining(deadline).as_ref()) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        return Ok(polled.map(|fd| !fd.revents().is_empty()));
    }
}

/// Whether `fd` is readable, hung up or failed now; false if that cannot be asked. Waits for nothing.
pub fn is_ready(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Whether the other end of a connection has said that nothing more comes, or it has ended; false if that cannot be asked.
pub fn is_half_closed(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// The most events that one [`Poller::wait`] reports; the kernel takes turns among more.
pub const EVENTS_MAX: usize = 64;

const WAKE: u64 = u64::MAX;

fn user_token(token: u64) -> io::Result<epoll::EventData> {
    match token {
        WAKE => Err(io::ErrorKind::InvalidInput.into()),
        token => Ok(epoll::EventData::new_u64(token)),
    }
}

#[cfg(test)]
mod tests;
