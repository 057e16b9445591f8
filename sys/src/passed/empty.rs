//! Taking out of a Unix socket what would be closed with it.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};

use super::{Passed, Rights, receive};
use crate::hidden::Hidden;
use crate::tcp::{get, set};

/// Ends a Unix socket for all who have it, and closes what lies in its queue, be it in the queue of a socket there. To be called before it is closed.
///
/// It ends: once a socket is shut down nothing more gets into its queue.
#[cold]
pub(crate) fn empty(fd: BorrowedFd<'_>) {
    let mut found = Found::default();
    drain(fd, &mut found);
    while let Some(socket) = found.next() {
        drain(socket.as_fd(), &mut found);
    }
}

/// Has nobody come to a listening socket any more; then who has come, to be let in or not. To be called before it is closed.
pub(crate) fn leave(listener: BorrowedFd<'_>) -> impl Iterator<Item = Hidden> {
    // Cannot fail: it is a Unix socket.
    let _ = shutdown(listener, Shutdown::Both);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    (0..WAITING_MAX).map_while(move |_| {
        // EINVAL after the last. Without a number left those who wait are closed by the kernel.
        let come = accept_with(listener, flags).ok()?;
        Some(Hidden::adopt(come))
    })
}

/// Unix sockets that lay in a queue.
struct Found {
    sockets: [Option<Hidden>; FOUND_MAX],
    count: usize,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            sockets: [const { None }; FOUND_MAX],
            count: 0,
        }
    }
}

impl Found {
    fn add(&mut self, passed: Passed) {
        if let Some(socket) = passed.calm()
            // Of more, what lies in them is closed as it is.
            && let Some(place) = self.sockets.get_mut(self.count)
        {
            *place = Some(socket);
            self.count += 1;
        }
    }

    fn next(&mut self) -> Option<Hidden> {
        self.count = self.count.checked_sub(1)?;
        self.sockets.get_mut(self.count)?.take()
    }
}

fn drain(fd: BorrowedFd<'_>, found: &mut Found) {
    if get(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Ok(1u32) {
        for come in leave(fd) {
            drain_queue(come.as_fd(), found);
        }
    } else {
        drain_queue(fd, found);
    }
}

fn drain_queue(fd: BorrowedFd<'_>, found: &mut Found) {
    // Cannot fail: it is a Unix socket.
    let _ = shutdown(fd, Shutdown::Both);
    // Tells a packet without bytes from the end.
    let _ = set(fd, libc::SOL_SOCKET, libc::SO_PASSCRED, 1u32);
    let mut scrap = [0; 256];
    let mut rights = Rights::new();
    for _ in 0..QUEUED_MAX {
        match receive(fd, &mut scrap, &mut rights) {
            Ok(taken) if taken.is_some => rights.by_ref().for_each(|passed| found.add(passed)),
            // Said once, ahead of what is queued.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// As many that were found wait to be emptied.
const FOUND_MAX: usize = 64;
/// More than can wait at a listening socket (`net.core.somaxconn`).
const WAITING_MAX: u32 = 1 << 16;
/// More than the longest queue has.
const QUEUED_MAX: u32 = 1 << 16;
