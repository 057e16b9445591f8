//! Whether the thread lives that has a turn: the kernel's word.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, major, minor, open};
use rustix::io::{Errno, read};
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use rustix::thread::gettid;
use rustix::time::Timespec;

use std::os::fd::AsFd;

use super::Stream;

/// The number of this thread, which no other of the host has while this one lives; never 0.
#[inline]
pub(super) fn me() -> u32 {
    gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Whether thread `tid` has ended, also if its process waits to be reaped, or the number is another thread's by now, which has nothing to do
/// with the stream. When in doubt it lives.
pub(super) fn is_dead(tid: u32, stream: &Stream) -> bool {
    let Some(pid) = i32::try_from(tid).ok().and_then(Pid::from_raw) else {
        return true;
    };
    // The number of any thread does for kill(2).
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    has_ended(pid) || maps(tid, stream) == Some(false)
}

/// Whether the thread ended and nobody has reaped it. Kernels before 6.9 know it of processes only.
fn has_ended(pid: Pid) -> bool {
    let thread = PidfdFlags::from_bits_retain(libc::PIDFD_THREAD);
    let Ok(pidfd) = pidfd_open(pid, thread).or_else(|_| pidfd_open(pid, PidfdFlags::empty()))
    else {
        return false;
    };
    let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Whether the thread's process has mapped the stream's memory; `None` if we may not know.
fn maps(tid: u32, stream: &Stream) -> Option<bool> {
    let (device, number) = stream.file;
    // As /proc/PID/maps writes it: device and inode.
    let wanted = format!(" {:02x}:{:02x} {number} ", major(device), minor(device));
    let file = open(
        format!("/proc/{tid}/maps"),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut text = Vec::new();
    loop {
        let mut part = [0; 4096];
        match read(&file, &mut part) {
            // Without a line it is a process without memory: it ends, or is the kernel's.
            Ok(0) => return Some(false),
            Ok(n) => text.extend_from_slice(part.get(..n)?),
            // Gone meanwhile.
            Err(Errno::SRCH) => return Some(false),
            Err(_) => return None,
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line = text.drain(..=end).collect::<Vec<_>>();
            if line
                .windows(wanted.len())
                .any(|part| part == wanted.as_bytes())
            {
                return Some(true);
            }
        }
    }
}
