//! Proof that a process holds a socket, without the power to use it.
//!
//! A witness is a descriptor of the socket's inode, opened with `O_PATH` by way of `/proc`. Only who holds the socket can make one. Nothing can be
//! sent or received with it, and it does not keep the connection open; a duplicate of the socket, the obvious proof, would do both, in the hands
//! of whoever has taken the name at which two ends meet.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::ffi::CStr;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags, open, statx};
use rustix::io::Errno;

use super::Owner;
use crate::hidden::Hidden;

/// A witness that this process holds `socket`.
///
/// # Errors
/// `ENOENT` without `/proc`; `EMFILE`.
pub fn witness(socket: BorrowedFd<'_>) -> Result<Hidden, Errno> {
    let mut path = [0; 40];
    let mut rest = path.as_mut_slice();
    // Of the thread: it may have descriptors of its own.
    write!(rest, "/proc/thread-self/fd/{}\0", socket.as_raw_fd())
        .map_err(|_| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| Errno::NAMETOOLONG)?;
    let fd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Hidden::adopt(fd))
}

/// Whether `witness` was made by someone who holds the socket of `owner`. `socket` is any socket of ours.
///
/// # Errors
/// The kernel's.
pub fn is_witness_of(
    witness: &impl AsFd,
    owner: &Owner,
    socket: BorrowedFd<'_>,
) -> Result<bool, Errno> {
    let found = what_is(witness.as_fd())?;
    let ours = what_is(socket)?;
    // A file system of the peer's making can show a file of any kind, number and owner; but it is not the one of sockets.
    Ok(
        FileType::from_raw_mode(found.stx_mode.into()) == FileType::Socket
            && device(&found) == device(&ours)
            && found.stx_ino == u64::from(owner.inode)
            && found.stx_uid == owner.uid,
    )
}

/// Without waiting for its file system, which the peer may have made so that it does not answer.
fn what_is(fd: BorrowedFd<'_>) -> Result<Statx, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(fd, c"", flags, StatxFlags::BASIC_STATS)
}

fn device(found: &Statx) -> (u32, u32) {
    (found.stx_dev_major, found.stx_dev_minor)
}
