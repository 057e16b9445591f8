//! A stand-in for a socket where the program polls: a descriptor that the kernel shows as readable, writable or ended, just as its owner says.
//!
//! It is one end of a pair of Unix sockets. A byte in it makes it readable; bytes that nobody takes from the other end make it unwritable; the other end's
//! shutdown and close are its end. So `poll`, `select`, `epoll`, `dup` and `fork` need not know of it, and no byte of the program's ever passes here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};
use std::time::Instant;

use crate::hidden::Hidden;
use crate::relay::{self, Pair};
use crate::sync::{Ordering, mapped::AtomicU32};
use crate::time;

/// The stand-in.
#[derive(Debug)]
pub struct Double {
    theirs: Option<Hidden>,
    ours: Option<Hidden>,
    tokens: u32,
    full: bool,
    ended: bool,
    /// There is no other end yet.
    alone: bool,
}

impl Double {
    /// One that is writable, and not readable.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let (theirs, ours) = relay::ends()?;
        Self::of(theirs, Some(ours))
    }

    /// One of a socket that is connected to nothing, which shows what one of TCP does (POLLOUT and POLLHUP) until [`Double::join`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn alone() -> io::Result<Self> {
        Self::of(relay::end()?, None)
    }

    fn of(theirs: OwnedFd, ours: Option<OwnedFd>) -> io::Result<Self> {
        // The smallest that the kernel allows: a few bytes fill it.
        sockopt::set_socket_send_buffer_size(&theirs, 0)?;
        Ok(Self {
            theirs: Some(Hidden::if_possible(theirs)),
            alone: ours.is_none(),
            ours: ours.map(Hidden::if_possible),
            tokens: 0,
            full: false,
            ended: false,
        })
    }

    /// It is writable, and not readable, from now on, if it was alone. Whoever has it keeps it, as sets of `epoll` do.
    ///
    /// # Errors
    /// The kernel's.
    pub fn join(&mut self) -> io::Result<()> {
        if let (Some(theirs), true) = (&self.theirs, self.alone) {
            let ours = relay::other_end_of(theirs.as_fd())?;
            self.ours = Some(Hidden::if_possible(ours));
            self.alone = false;
        }
        Ok(())
    }

    /// A duplicate for the program, at the lowest number. Past the C library, which may be watched for the program's calls.
    ///
    /// # Errors
    /// The kernel's.
    pub fn duplicate(&self, close_on_exec: bool) -> io::Result<OwnedFd> {
        let theirs = self.theirs.as_ref().ok_or(Errno::BADF)?.as_fd();
        Ok(if close_on_exec {
            rustix::io::fcntl_dupfd_cloexec(theirs, 0)
        } else {
            rustix::io::dup(theirs)
        }?)
    }

    /// Which of the kernel's sockets it is.
    pub fn inode(&self) -> Option<u64> {
        crate::socket::inode(self.theirs.as_ref()?.as_fd())
    }

    /// Begins anew, alone, with another descriptor at each of the program's `numbers`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn renew(&mut self, numbers: &[RawFd]) -> io::Result<()> {
        let new = Self::alone()?;
        if let Some(theirs) = &new.theirs {
            relay::take_over_all(theirs.as_fd(), numbers)?;
        }
        *self = new;
        Ok(())
    }

    /// The program is about to close its last descriptor: the kernel then forgets it, as sets of `epoll` do. Shows nothing more.
    pub fn release(&mut self) {
        self.theirs = None;
    }

    /// Whether there is something to read; `fresh` if there is more than there was, which wakes those who wait for an edge.
    pub fn show_input(&mut self, there: bool, fresh: bool) {
        let (Some(ours), Some(theirs)) = (&self.ours, &self.theirs) else {
            return;
        };
        if there && (self.tokens == 0 || fresh) {
            if self.tokens >= TOKENS_MAX {
                // One stays: who looks meanwhile is to find it.
                self.tokens -= take_some(theirs.as_fd(), self.tokens - 1);
            }
            // Room for so few is always there.
            self.tokens += u32::from(give(ours.as_fd(), &[1]) == 1);
        } else if !there && self.tokens > 0 {
            take(theirs.as_fd());
            self.tokens = 0;
        }
    }

    /// Whether something can be written.
    pub fn show_room(&mut self, there: bool) {
        let (Some(ours), Some(theirs)) = (&self.ours, &self.theirs) else {
            return;
        };
        if there && self.full {
            while take(ours.as_fd()) > 0 {}
            self.full = false;
        } else if !there && !self.full {
            while give(theirs.as_fd(), &[0; 64]) > 0 {}
            self.full = true;
        }
    }

    /// Nothing more will come.
    pub fn show_end(&mut self) {
        if let Some(ours) = &self.ours
            && !self.ended
        {
            self.ended = true;
            // A pair can always be shut down.
            let _ = shutdown(ours.as_fd(), Shutdown::Write);
        }
    }

    /// Nothing more will come or go.
    pub fn show_gone(&mut self) {
        let _full = self.full.then(FullEnd::begin);
        if let (Some(ours), true) = (&self.ours, self.full) {
            // Who waits for room is woken by the end, and not by room that is there for no use. A pair can always be shut down.
            let _ = shutdown(ours.as_fd(), Shutdown::Both);
        }
        self.show_room(true);
        self.ours = None;
    }

    /// As [`Double::show_gone`], by an error, which shows until [`Double::forget_error`].
    pub fn show_reset(&mut self) {
        if let (Some(_), Some(theirs), false) = (&self.ours, &self.theirs, self.full) {
            give(theirs.as_fd(), &[0]);
        }
        let _full = self.full.then(FullEnd::begin);
        // The kernel tells an end of a pair that the other was closed with something unread, which it throws away: so there is room, and not a moment before.
        self.ours = None;
    }

    /// Bytes pass through it from now on, and nothing is shown: our end. `None` where it has shown an end already.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(&mut self) -> io::Result<Option<Pair>> {
        let theirs = self.theirs.take();
        match (self.ours.take(), theirs) {
            (Some(ours), Some(theirs)) if !self.ended => Pair::of(ours, theirs.as_fd()).map(Some),
            _ => Ok(None),
        }
    }

    /// The program has been told.
    pub fn forget_error(&self) {
        if let Some(theirs) = &self.theirs {
            crate::socket::forget_error(theirs.as_fd());
        }
    }
}

/// One that is full shows its end, and a moment later its room, for the kernel does not show both at once.
struct FullEnd;

impl FullEnd {
    fn begin() -> Self {
        // Pairs with `full_ends_begun`: who has seen the end finds that it has begun.
        BEGUN.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for FullEnd {
    fn drop(&mut self) {
        // Pairs with `full_ends_done`: who finds that it is done sees the room, too.
        DONE.fetch_add(1, Ordering::AcqRel);
    }
}

/// How many stand-ins that were full have shown their end and their room.
#[inline]
pub fn full_ends_done() -> u32 {
    DONE.load(Ordering::Acquire)
}

/// How many have shown their end, or are about to. Where there are more than were done before a wait, an end that it told of may lack its room.
#[inline]
pub fn full_ends_begun() -> u32 {
    BEGUN.load(Ordering::Acquire)
}

static BEGUN: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

/// A descriptor that is readable while its owner says so.
#[derive(Debug)]
pub struct Sign {
    fd: OwnedFd,
    up: bool,
}

impl Sign {
    /// One that is not readable.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { fd, up: false })
    }

    /// To be polled.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Makes it readable, or not.
    pub fn show(&mut self, up: bool) {
        if up != self.up {
            let moved = if up {
                rustix::io::write(&self.fd, &1u64.to_ne_bytes())
            } else {
                rustix::io::read(&self.fd, &mut [0; 8])
            };
            debug_assert!(moved.is_ok(), "it counts to one");
            self.up = up;
        }
    }

    /// Wakes those who wait for an edge, too.
    pub fn renew(&mut self) {
        self.show(false);
        self.show(true);
    }
}

/// Sleeps until `fd` shows something: readable, or writable if `to_write`; false at `deadline`.
///
/// # Errors
/// `EINTR`.
pub fn sleep(fd: BorrowedFd<'_>, to_write: bool, deadline: Option<Instant>) -> Result<bool, Errno> {
    let awaited = if to_write {
        PollFlags::OUT
    } else {
        PollFlags::IN
    };
    let left: Option<Timespec> = time::remaining(deadline);
    Ok(poll(&mut [PollFd::from_borrowed_fd(fd, awaited)], left.as_ref())? > 0)
}

/// How many bytes went in.
fn give(fd: BorrowedFd<'_>, bytes: &[u8]) -> u32 {
    send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map_or(0, |n| n as u32)
}

/// How many bytes were taken out.
fn take(fd: BorrowedFd<'_>) -> u32 {
    take_some(fd, u32::MAX)
}

/// As [`take`], of no more than so many.
fn take_some(fd: BorrowedFd<'_>, most: u32) -> u32 {
    let mut room = [0; 512];
    let len = room.len().min(most as usize);
    let room = room.get_mut(..len).unwrap_or_default();
    recv(fd, room, RecvFlags::DONTWAIT).map_or(0, |(n, _)| n as u32)
}

const TOKENS_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

    use super::*;

    fn shows(double: &Double) -> PollFlags {
        let all = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP;
        let fd = double.theirs.as_ref().expect("it is not released").as_fd();
        let mut entry = [PollFd::from_borrowed_fd(fd, all)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut entry, Some(&now)).expect("polls");
        entry[0].revents()
    }

    #[test]
    fn it_shows_what_its_owner_says() {
        let mut double = Double::new().expect("a pair");
        assert_eq!(shows(&double), PollFlags::OUT);
        for _ in 0..3 {
            double.show_room(false);
            assert_eq!(shows(&double), PollFlags::empty());
            for _ in 0..20 {
                double.show_input(true, true);
            }
            assert_eq!(shows(&double), PollFlags::IN);
            double.show_input(false, false);
            double.show_room(true);
            assert_eq!(shows(&double), PollFlags::OUT);
        }
        double.show_end();
        assert_eq!(
            shows(&double),
            PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP
        );
        double.show_gone();
        assert!(shows(&double).contains(PollFlags::HUP));
        assert!(!shows(&double).contains(PollFlags::ERR));
    }

    #[test]
    fn one_that_is_alone_hangs_up_until_it_is_joined() {
        let mut double = Double::alone().expect("a socket");
        let set = epoll::create(CreateFlags::CLOEXEC).expect("a set");
        let program = double.duplicate(true).expect("a descriptor");
        let data = EventData::new_u64(7);
        epoll::add(&set, &program, data, EventFlags::IN).expect("a member");
        for _ in 0..2 {
            double.show_room(false);
            assert_eq!(shows(&double), PollFlags::OUT | PollFlags::HUP);
        }
        double.join().expect("another end");
        assert_eq!(shows(&double), PollFlags::OUT);
        double.show_room(false);
        assert_eq!(shows(&double), PollFlags::empty());
        double.join().expect("it has one");
        double.show_input(true, true);
        assert_eq!(shows(&double), PollFlags::IN);
        let mut told = [epoll::Event {
            flags: EventFlags::empty(),
            data,
        }];
        let count = epoll::wait(&set, &mut told, Some(&Timespec::default()));
        assert_eq!(count, Ok(1));
    }

    #[test]
    fn input_shows_all_the_time_while_more_comes() {
        let mut double = Double::new().expect("a pair");
        double.show_input(true, true);
        let program = double.duplicate(true).expect("a descriptor");
        let looks = AtomicU32::new(0);
        thread::scope(|scope| {
            let looker = scope.spawn(|| {
                let now = Some(time::now());
                let mut missed = 0;
                while looks.fetch_add(1, Ordering::Relaxed) < LOOKS {
                    missed += u32::from(sleep(program.as_fd(), false, now) != Ok(true));
                }
                missed
            });
            while looks.load(Ordering::Relaxed) < LOOKS {
                double.show_input(true, true);
            }
            assert_eq!(looker.join().expect("no panic"), 0);
        });
    }

    /// Some of many meet the moment in which what is shown changes.
    const LOOKS: u32 = 100_000;

    #[test]
    fn a_reset_shows_until_it_is_told() {
        for full in [false, true] {
            let mut double = Double::new().expect("a pair");
            double.show_room(!full);
            double.show_reset();
            assert!(shows(&double).contains(PollFlags::ERR | PollFlags::HUP));
            double.forget_error();
            assert!(!shows(&double).contains(PollFlags::ERR));
            assert!(shows(&double).contains(PollFlags::HUP));
        }
    }

    #[test]
    fn a_sign_goes_up_and_down() {
        let mut sign = Sign::new().expect("an eventfd");
        let now = Some(time::now());
        assert_eq!(sleep(sign.fd(), false, now), Ok(false));
        for _ in 0..3 {
            sign.renew();
            assert_eq!(sleep(sign.fd(), false, now), Ok(true));
            sign.show(false);
            assert_eq!(sleep(sign.fd(), false, now), Ok(false));
        }
    }
}
