//! Sets of descriptors to be told about, as the kernel keeps them. System calls only, none through the C library.

use std::os::fd::RawFd;

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::socket::with_borrowed;

pub use info::{Entry, are_same, entries, is_set, names_set};

mod info;

/// `EPOLL_CTL_ADD`.
///
/// # Errors
/// As `epoll_ctl`.
pub fn add(set: RawFd, fd: RawFd, events: u32, data: u64) -> Result<(), Errno> {
    control(set, fd, |set, fd| {
        epoll::add(
            set,
            fd,
            EventData::new_u64(data),
            EventFlags::from_bits_retain(events),
        )
    })
}

/// `EPOLL_CTL_MOD`.
///
/// # Errors
/// As `epoll_ctl`.
pub fn modify(set: RawFd, fd: RawFd, events: u32, data: u64) -> Result<(), Errno> {
    control(set, fd, |set, fd| {
        epoll::modify(
            set,
            fd,
            EventData::new_u64(data),
            EventFlags::from_bits_retain(events),
        )
    })
}

/// `EPOLL_CTL_DEL`.
///
/// # Errors
/// As `epoll_ctl`.
pub fn delete(set: RawFd, fd: RawFd) -> Result<(), Errno> {
    control(set, fd, |set, fd| epoll::delete(set, fd))
}

/// Which of `events` (those of `poll`) the kernel shows for `fd` now, and the errors that it always shows.
pub fn shows(fd: RawFd, events: u16) -> u16 {
    with_borrowed(fd, |fd| {
        let mut fds = [PollFd::from_borrowed_fd(
            fd,
            PollFlags::from_bits_retain(events),
        )];
        match poll(&mut fds, Some(&rustix::time::Timespec::default())) {
            Ok(1..) => fds[0].revents().bits(),
            _ => 0,
        }
    })
    .unwrap_or(0)
}

/// Takes what the kernel reports of `set` now, a bounded number: as `told` gets it, events and data.
pub fn take(set: RawFd, mut told: impl FnMut(u32, u64)) {
    with_borrowed(set, |set| {
        let mut reports = [Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }; REPORTS];
        let now = rustix::time::Timespec::default();
        let count = epoll::wait(set, &mut reports[..], Some(&now)).unwrap_or(0);
        for report in reports.iter().take(count) {
            // The structure is packed.
            let (flags, data) = (report.flags, report.data);
            told(flags.bits(), data.u64());
        }
    });
}

/// More are left for the next call.
const REPORTS: usize = 32;

fn control(
    set: RawFd,
    fd: RawFd,
    act: impl FnOnce(std::os::fd::BorrowedFd<'_>, std::os::fd::BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    with_borrowed(set, |set| with_borrowed(fd, |fd| act(set, fd)))
        .flatten()
        .unwrap_or(Err(Errno::BADF))
}
