//! Who is at the other end of a Unix socket.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::tcp::{NOBODY, every_user_has_a_name, get};

/// The user id of who connected, listened or made the pair, as our user namespace names him.
pub(crate) fn uid(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    let [_pid, uid, _gid]: [u32; 3] = get(fd, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
    Ok(uid)
}

/// Whether that is another user than this process's, or may be. Two system calls, unless this one is nobody.
pub(crate) fn is_stranger(fd: BorrowedFd<'_>) -> bool {
    let own = rustix::process::geteuid().as_raw();
    uid(fd) != Ok(own) || own == NOBODY && !every_user_has_a_name()
}
