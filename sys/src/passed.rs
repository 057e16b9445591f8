//! Descriptors that somebody else has passed, who may be a stranger: it is not known what they are, nor how long it takes to close them.
//!
//! Whoever is the last to close a socket with `SO_LINGER` set and bytes under way waits as long as that says, also where `O_NONBLOCK` is set. A stranger passes such a
//! one, closes his own, and has us wait. So what is [`Passed`] is told not to linger before it is closed. And the kernel closes what was passed and never received with the
//! socket in whose queue it lies: before we are the last to close one at whose other end is a stranger we empty it.
//!
//! # What is left
//!
//! Closing a file of a stranger's file system (FUSE) waits for that; a stranger's duplicate can set the option again at that moment; and what this process
//! has no number left for the kernel closes. [SECURITY.md](../../../SECURITY.md) tells of them.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_get_seals, fcntl_getfl};
use rustix::net::{AddressFamily, SocketType};

use crate::hidden::Hidden;
use crate::tcp::{get, set};

pub(crate) use empty::{empty, leave};
pub(crate) use receive::{Rights, receive};
pub(crate) use stranger::{is_stranger, uid};

mod empty;
mod receive;
mod stranger;
#[cfg(all(test, not(loom)))]
mod tests;

/// A descriptor that somebody else passed, close-on-exec, where the kernel put it, which may be low.
///
/// Whoever wants it says what it must be. No such question waits for whoever made the file, as `fstat` may.
#[derive(Debug)]
pub struct Passed(ManuallyDrop<Hidden>);

impl Passed {
    pub(crate) fn adopt(fd: OwnedFd) -> Self {
        Self(ManuallyDrop::new(Hidden::adopt(fd)))
    }

    /// One that only names a file (`O_PATH`), as a [witness](crate::tcp::witness) does: closing it is nothing to the file.
    pub fn into_path(self) -> Option<Hidden> {
        let flags = fcntl_getfl(self.as_fd()).ok()?;
        flags.contains(OFlags::PATH).then(|| self.release())
    }

    /// A file in memory: no other has seals, be it none.
    pub fn into_memory(self) -> Option<Hidden> {
        let has_seals = fcntl_get_seals(self.as_fd()).is_ok();
        has_seals.then(|| self.release())
    }

    /// What a NIC has [exported](crate::net): memory, or a socket of packets.
    pub fn into_export(self) -> Option<OwnedFd> {
        let is_one = fcntl_get_seals(self.as_fd()).is_ok() || self.is_unix(SocketType::SEQPACKET);
        is_one.then(|| self.release().into_fd())
    }

    /// An end of a Unix connection of bytes.
    pub(crate) fn into_pipe(self) -> Option<Hidden> {
        self.is_unix(SocketType::STREAM).then(|| self.release())
    }

    /// Whatever it is, from somebody who means no harm.
    pub fn trusted(self) -> OwnedFd {
        self.release().into_fd()
    }

    fn is_unix(&self, kind: SocketType) -> bool {
        is_unix(self.as_fd())
            && get(self.as_fd(), libc::SOL_SOCKET, libc::SO_TYPE) == Ok(kind.as_raw())
    }

    fn release(self) -> Hidden {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is used no more, and its own drop does not come.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Tells it not to linger; gives it back if that is a Unix socket, with which those in its queue are closed.
    fn calm(self) -> Option<Hidden> {
        let is_unix = dont_linger(self.as_fd()) && is_unix(self.as_fd());
        let fd = self.release();
        is_unix.then_some(fd)
    }
}

impl AsFd for Passed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if dont_linger(self.as_fd()) && is_unix(self.as_fd()) {
            empty(self.as_fd());
        }
        // SAFETY: this is the one place where it is dropped, and it is not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// Whether it is a socket, which does not linger any more.
fn dont_linger(fd: BorrowedFd<'_>) -> bool {
    // Both words of `struct linger`.
    set(fd, libc::SOL_SOCKET, libc::SO_LINGER, [0u32; 2]).is_ok()
}

fn is_unix(fd: BorrowedFd<'_>) -> bool {
    get(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) == Ok(u32::from(AddressFamily::UNIX.as_raw()))
}
