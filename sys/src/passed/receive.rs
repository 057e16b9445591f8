//! Receiving with room for all descriptors that a packet can have: those for which there is none the kernel closes.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::Passed;
use crate::system_call;

/// The descriptors of a packet. Those that nobody takes are closed.
pub(crate) struct Rights {
    space: Space,
    /// What the kernel has written.
    len: usize,
    /// Where the next descriptor is, or header.
    at: usize,
    /// How many descriptors come before the next header.
    left: usize,
}

/// What has come.
pub(crate) struct Taken {
    /// Into the buffer.
    pub(crate) bytes: usize,
    /// Bytes or descriptors are missing.
    pub(crate) cut: bool,
    /// There was something in the queue, be it without bytes: sure only if the socket says who has sent each packet.
    pub(crate) is_some: bool,
}

/// Takes a packet, or some bytes, without waiting. Not through the C library, and nothing is allocated.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
    rights: &mut Rights,
) -> Result<Taken, Errno> {
    rights.by_ref().for_each(drop);
    let mut part = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: integers and pointers, for which zero is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = rights.space.0.as_mut_ptr().cast();
    header.msg_controllen = SPACE as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    let arguments = [
        fd.as_raw_fd() as usize,
        (&raw mut header).expose_provenance(),
        flags as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel writes to the buffer, the control space and the header, no more than their lengths say, and all outlive the call.
    let taken = unsafe { system_call::call(libc::SYS_recvmsg, arguments) };
    let Ok(bytes) = usize::try_from(taken) else {
        return Err(Errno::from_raw_os_error(-(taken as i32)));
    };
    let len = (header.msg_controllen as usize).min(SPACE);
    (rights.len, rights.at, rights.left) = (len, 0, 0);
    Ok(Taken {
        bytes,
        cut: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
        is_some: bytes > 0 || len > 0,
    })
}

impl Rights {
    pub(crate) fn new() -> Self {
        Self {
            space: Space([0; SPACE]),
            len: 0,
            at: 0,
            left: 0,
        }
    }

    fn word<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let end = at.checked_add(N).filter(|end| *end <= self.len)?;
        self.space.0.get(at..end)?.try_into().ok()
    }
}

impl Iterator for Rights {
    type Item = Passed;

    fn next(&mut self) -> Option<Passed> {
        while self.left == 0 {
            // `struct cmsghdr`, and CMSG_ALIGN.
            self.at = self.at.next_multiple_of(size_of::<usize>());
            let len = usize::from_ne_bytes(self.word(self.at)?);
            let level = i32::from_ne_bytes(self.word(self.at + size_of::<usize>())?);
            let kind = i32::from_ne_bytes(self.word(self.at + size_of::<usize>() + 4)?);
            let body = len.checked_sub(HEADER)?;
            if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                self.at += HEADER;
                self.left = body / 4;
            } else {
                self.at = self.at.checked_add(len)?;
            }
        }
        let fd = i32::from_ne_bytes(self.word(self.at)?);
        self.at += 4;
        self.left -= 1;
        // SAFETY: the kernel has opened it for us in `receive`, and it is taken from here once.
        Some(Passed::adopt(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[repr(align(8))]
struct Space([u8; SPACE]);

/// `struct cmsghdr`.
const HEADER: usize = size_of::<usize>() + 8;
/// SCM_MAX_FD.
const RIGHTS_MAX: usize = 253;
/// Behind them goes who has sent them, where that is asked for.
const SPACE: usize =
    HEADER + (RIGHTS_MAX * 4).next_multiple_of(8) + HEADER + size_of::<libc::ucred>() + 4;
