//! A line for the user, on a descriptor of a program that may not know of it.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Writes `text`, of a page at most, in one write, or not at all: nobody may read from a pipe, so that the write would sleep, or has read from it and gone,
/// so that it would end the program.
pub fn offer(fd: BorrowedFd<'_>, text: &[u8]) {
    let mut asked = [PollFd::new(&fd, PollFlags::OUT)];
    let answered = poll(&mut asked, Some(&Timespec::default()));
    // An error or a hang-up comes beside.
    if answered.is_ok() && asked.iter().all(|fd| fd.revents() == PollFlags::OUT) {
        write(fd, text);
    }
}

/// Without SIGPIPE: whoever reads may go after he was looked for.
fn write(fd: BorrowedFd<'_>, text: &[u8]) {
    // SAFETY: sets of signals are plain bits; the calls write to ours and change this thread's mask, which is put back.
    unsafe {
        let [mut pipe, mut before, mut pending] = [MaybeUninit::zeroed().assume_init(); 3];
        libc::sigemptyset(&raw mut pipe);
        libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
        libc::sigpending(&raw mut pending);
        let written = rustix::io::write(fd, text);
        // One that waited before this is the program's.
        if written == Err(Errno::PIPE) && libc::sigismember(&raw const pending, libc::SIGPIPE) == 0
        {
            let at_once = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            libc::sigtimedwait(&raw const pipe, null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::fd::AsFd;

    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (reader, writer) = pipe().expect("a pipe");
        let mut room = [0; 1 << 20];
        rustix::io::ioctl_fionbio(&writer, true).expect("a flag");
        while rustix::io::write(&writer, &room).is_ok() {}
        while rustix::io::write(&writer, b"x").is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).expect("a flag");
        offer(writer.as_fd(), b"nobody reads this\n");
        rustix::io::read(&reader, &mut room).expect("what filled it");
        offer(writer.as_fd(), b"this is read\n");
        drop(writer);
        let mut last = Vec::new();
        loop {
            match rustix::io::read(&reader, &mut room).expect("a pipe") {
                0 => break,
                n => last.extend_from_slice(&room[..n]),
            }
        }
        assert_eq!(last, b"this is read\n");
    }

    /// A signal that is blocked waits, though this process ignores it.
    #[test]
    fn a_pipe_without_a_reader_is_no_signal() {
        let waits = || {
            // SAFETY: as in `write`.
            unsafe {
                let mut pending = MaybeUninit::zeroed().assume_init();
                libc::sigpending(&raw mut pending);
                libc::sigismember(&raw const pending, libc::SIGPIPE) == 1
            }
        };
        // SAFETY: as in `write`; this thread is the test's.
        unsafe {
            let mut pipe = MaybeUninit::zeroed().assume_init();
            libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, null_mut());
        }
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        offer(writer.as_fd(), b"nobody reads this\n");
        assert!(!waits());
        write(writer.as_fd(), b"nor this\n");
        assert!(!waits());
        // The program's own stays.
        let own = rustix::io::write(&writer, b"nor this\n");
        assert_eq!(own, Err(Errno::PIPE));
        write(writer.as_fd(), b"nor this\n");
        assert!(waits());
    }
}
