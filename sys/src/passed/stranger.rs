//! Who is at the other end of a Unix socket.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::tcp::get;

/// The user id of who connected, listened or made the pair, as our user namespace names him.
pub(crate) fn uid(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    let [_pid, uid, _gid]: [u32; 3] = get(fd, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
    Ok(uid)
}

/// Whether that is another user than this process's. Two system calls.
pub(crate) fn is_stranger(fd: BorrowedFd<'_>) -> bool {
    uid(fd) != Ok(rustix::process::geteuid().as_raw())
}
