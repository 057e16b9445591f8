//! What a process leaves behind that ends, or becomes another program, before others have taken all that came to it for them.
//!
//! A process of its own gives them the rest, and then ends. It is nobody's child, has no other descriptor, and takes no signals.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{chdir, setsid};

use super::{Pair, close_number};
use crate::net::{Conn, Sent};
use crate::quiet::Quiet;
use crate::system_call::call;

/// Bytes for those who have the other end of a pair, and who is to have our end of it after them.
#[derive(Debug)]
pub struct Bequest<'a> {
    /// Our end.
    pub pair: &'a Pair,
    /// What there is to give.
    pub rest: &'a [u8],
    /// Nothing comes after that.
    pub ends: bool,
    /// Who goes on with our end; without anybody it is closed.
    pub heir: Option<&'a Conn>,
}

impl Bequest<'_> {
    /// All has been given.
    fn settle(&self) {
        if self.ends {
            self.pair.end();
        }
        if let Some(heir) = self.heir {
            // Who is gone needs nothing.
            let _: io::Result<Sent> = heir.send(GIVEN, &[self.pair.as_fd()]);
        }
    }

    /// Gives what there is room for, of what is left after `given` bytes. How much has been given then; `None` where nobody takes it any more.
    fn give(&self, mut given: usize) -> Option<usize> {
        while let Some(rest) = self.rest.get(given..).filter(|rest| !rest.is_empty()) {
            match self.pair.give(rest) {
                Ok(count) => given += count,
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => return None,
            }
        }
        Some(given)
    }
}

/// Carries them out: at once where there is nothing to give, and behind the caller where there is. He is to close what they are about.
///
/// # Errors
/// The kernel's: there is no process to be had, and bytes are lost.
pub fn carry_out(bequests: &[Bequest<'_>]) -> io::Result<()> {
    let mut given = Vec::with_capacity(bequests.len());
    for bequest in bequests {
        let count = bequest.give(0);
        if count == Some(bequest.rest.len()) {
            bequest.settle();
            given.push(None);
        } else {
            given.push(count);
        }
    }
    if given.iter().all(Option::is_none) {
        return Ok(());
    }
    let mut kept: Vec<RawFd> = Vec::with_capacity(2 * bequests.len());
    for bequest in bequests {
        kept.push(bequest.pair.as_fd().as_raw_fd());
        kept.extend(bequest.heir.map(|heir| heir.as_fd().as_raw_fd()));
    }
    kept.sort_unstable();
    let waiting = Vec::with_capacity(bequests.len());
    leave_behind(|| {
        close_all_but(&kept);
        give_all(bequests, given, waiting);
    })
}

/// Runs it in a process that is no child of this one's. It must not allocate: another thread may have had the allocator's locks.
fn leave_behind(run: impl FnOnce()) -> io::Result<()> {
    // The child would run the program's handlers.
    let quiet = Quiet::begin();
    let child = clone()?;
    if child == 0 {
        match clone() {
            Ok(0) => {
                // It leads no group; and where it is does not matter.
                let _ = (setsid(), chdir(c"/"));
                run();
                leave(0)
            }
            Ok(_) => leave(0),
            Err(_) => leave(1),
        }
    }
    drop(quiet);
    let mut status: libc::c_int = 0;
    let room = (&raw mut status).addr();
    // No other wait knows of the child, as it says nothing when it ends.
    let wait = [child, room, libc::__WALL as usize, 0, 0, 0];
    // SAFETY: the kernel fills the status in.
    while unsafe { call(libc::SYS_wait4, wait) } == -(libc::EINTR as isize) {}
    if status == 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// A child with copies of everything, of whose end nobody is told: its number, and 0 there.
fn clone() -> io::Result<usize> {
    // SAFETY: a fork. The child makes system calls and touches its own memory only, until it ends.
    let child = unsafe { call(libc::SYS_clone, [0; 6]) };
    usize::try_from(child).map_err(|_| io::Error::from_raw_os_error(-child as i32))
}

fn leave(status: usize) -> ! {
    loop {
        // SAFETY: ends this process, which has nothing to tidy.
        unsafe { call(libc::SYS_exit_group, [status, 0, 0, 0, 0, 0]) };
    }
}

/// Closes every descriptor but those, which are in order.
fn close_all_but(kept: &[RawFd]) {
    let mut first = 0;
    for &fd in kept.iter().chain(&[RawFd::MAX]) {
        if first < fd {
            close_range(first, fd - 1);
        }
        first = fd.saturating_add(1);
    }
}

fn close_range(first: RawFd, last: RawFd) {
    let range = [first as usize, last as usize, 0, 0, 0, 0];
    // SAFETY: nobody uses them in this process.
    if unsafe { call(libc::SYS_close_range, range) } < 0 {
        // A kernel before 5.9.
        (first..=last.min(NUMBERS)).for_each(close_number);
    }
}

/// Of those for which something has been `given`, gives the rest.
fn give_all<'a>(
    bequests: &'a [Bequest<'_>],
    mut given: Vec<Option<usize>>,
    mut waiting: Vec<PollFd<'a>>,
) {
    loop {
        waiting.clear();
        for (bequest, given) in bequests.iter().zip(&mut given) {
            let Some(before) = *given else { continue };
            *given = bequest.give(before);
            if *given == Some(bequest.rest.len()) {
                bequest.settle();
                *given = None;
            }
            if given.is_some() {
                waiting.push(PollFd::new(bequest.pair, PollFlags::OUT));
            }
        }
        if waiting.is_empty() {
            return;
        }
        // No signal comes, and who looks too early looks again.
        let _ = poll(&mut waiting, None);
    }
}

/// What an heir is sent with the descriptor.
pub const GIVEN: &[u8] = b"yours";
/// As many as the kernel gives out by default.
const NUMBERS: RawFd = 1 << 20;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::net::Received;
    use crate::passed::Passed;
    use crate::relay::ends;

    #[test]
    fn what_there_is_no_room_for_comes_behind_and_then_the_heir_has_the_end() {
        let (theirs, ours) = ends().expect("a pair");
        let pair = Pair::adopt(Passed::adopt(ours)).expect("an end");
        let (heir, asker) = Conn::pair().expect("a pair");
        let rest: Vec<u8> = (0..3_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
        carry_out(&[Bequest {
            pair: &pair,
            rest: &rest,
            ends: false,
            heir: Some(&heir),
        }])
        .expect("a process");
        drop((pair, heir));
        let mut received = vec![0; rest.len()];
        let mut theirs = UnixStream::from(theirs);
        theirs.read_exact(&mut received).expect("all of it");
        assert_eq!(received, rest);
        asker.wait_readable(None).expect("waits");
        let Ok(Received::Packet { fds, .. }) = asker.recv(&mut [0; 16]) else {
            panic!("the heir gets nothing");
        };
        let [end] = <[_; 1]>::try_from(fds).expect("one descriptor");
        let pair = Pair::adopt(end).expect("an end");
        assert_eq!(pair.give(b"more"), Ok(4));
        drop(pair);
        assert_eq!(theirs.read_to_end(&mut received).ok(), Some(4));
    }
}
