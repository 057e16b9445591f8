//! Sealed memory that passes from one process to another.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

use crate::mem::memfd;

/// `len` bytes of zeroed memory that nobody can resize, close-on-exec, shown as `name` in `/proc/PID/maps`.
///
/// # Errors
/// The kernel's.
pub fn create(name: &str, len: usize) -> io::Result<OwnedFd> {
    memfd::create_as(name, len)
}

/// Whether `fd`, which came from another process, is such memory of exactly `len` bytes.
///
/// # Errors
/// `InvalidData` if not.
pub fn admit(fd: &impl AsFd, len: usize) -> io::Result<()> {
    if memfd::sealed_size(fd.as_fd())? == len as u64 {
        Ok(())
    } else {
        Err(ErrorKind::InvalidData.into())
    }
}
