//! The calls that sockets have, with their meaning: a stream of bytes.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::time::Instant;

use sys::errno::Errno;
use sys::sync::Ordering;
use via::Memory;

use super::Socket;
use super::core::Core;

/// How a call waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Until there is something.
    #[default]
    Ever,
    /// So long (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    Until(Instant),
    /// Not at all (`O_NONBLOCK`, `MSG_DONTWAIT`).
    Not,
}

impl Wait {
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::Ever => None,
            Self::Until(deadline) => Some(deadline),
            // In the past by the time that it is looked at.
            Self::Not => Some(sys::time::now()),
        }
    }
}

/// Which directions `shutdown` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directions {
    /// `SHUT_RD`: what comes is thrown away.
    pub input: bool,
    /// `SHUT_WR`: the peer reads to the end of what was written, and posts no receives that get anything.
    pub output: bool,
}

impl Socket {
    /// Receives at least a byte; 0 at the end of the stream.
    ///
    /// # Errors
    /// As `read` on a TCP socket: `ECONNRESET`, once, if the peer ended without closing.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut into = [IoSliceMut::new(into)];
        self.receive(&mut into, Wait::Ever, false, false)
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// As `write` on a TCP socket: `EPIPE`, `ECONNRESET`.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let n = self.send(&[IoSlice::new(rest)], Wait::Ever)?;
            rest = rest.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// As `recvmsg`; `peek` takes nothing (`MSG_PEEK`), `all` waits until the buffers are full (`MSG_WAITALL`).
    ///
    /// # Errors
    /// As `recvmsg`: `EAGAIN` when `wait` is over, `EINTR`.
    pub fn receive(
        &self,
        into: &mut [IoSliceMut<'_>],
        wait: Wait,
        peek: bool,
        all: bool,
    ) -> Result<usize, Errno> {
        let wanted: usize = into.iter().map(|buffer| buffer.len()).sum();
        if wanted == 0 {
            return Ok(0);
        }
        // What was peeked at stays, and would keep a sleeper on the socket awake.
        let waiter = (peek && all).then(|| super::NEXT.fetch_add(1, Ordering::Relaxed));
        let bed = |core: &Core| waiter.and_then(|waiter| core.news_of(waiter));
        let mut got = 0;
        let result = self.inner.until(wait.deadline(), false, true, bed, |core| {
            let told = core.stream.told;
            let mut filled = if peek { 0 } else { got };
            let n = core.read(peek, |memory, start, there| {
                let copied = copy_out(memory, start, there, into, filled);
                filled += copied;
                copied
            });
            match n {
                Ok(n) if peek => {
                    got = n;
                    match waiter {
                        Some(waiter) if n < wanted && wait != Wait::Not && core.may_more_come() => {
                            core.await_news(waiter)
                        }
                        _ => Ok(n),
                    }
                }
                Ok(0) => Ok(got),
                Ok(n) => {
                    core.tally.received(n, got == 0);
                    got += n;
                    if all && got < wanted && wait != Wait::Not {
                        Err(Errno::AGAIN)
                    } else {
                        Ok(got)
                    }
                }
                Err(errno) => {
                    if got > 0 {
                        // The next call tells it.
                        core.stream.told = told;
                    }
                    Err(errno)
                }
            }
        });
        if let Some(waiter) = waiter {
            self.inner.forget_news(waiter);
        }
        match result {
            Err(_) if got > 0 => Ok(got),
            result => result,
        }
    }

    /// As `sendmsg`: all of it, unless `wait` says otherwise.
    ///
    /// # Errors
    /// As `sendmsg`: `EAGAIN` when `wait` is over, `EINTR`, `EPIPE`, `ECONNRESET`. The caller raises `SIGPIPE`.
    pub fn send(&self, buffers: &[IoSlice<'_>], wait: Wait) -> Result<usize, Errno> {
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let mut core = self.inner.locked()?;
        let mut sent = 0;
        // Without a look at what has come, as long as there is room.
        match core.write(buffers, 0) {
            Ok(n) => {
                core.tally.sent(n, n > 0);
                sent = n;
                if sent == wanted {
                    core.show();
                    self.inner.settle(core);
                    return Ok(sent);
                }
            }
            Err(Errno::AGAIN) => {}
            // It is told once.
            Err(errno) => return Err(errno),
        }
        drop(core);
        let result = self
            .inner
            .until(wait.deadline(), true, true, no_bed, |core| {
                let told = core.stream.told;
                let n = core.write(buffers, sent).inspect_err(|_| {
                    if sent > 0 {
                        // The next call tells it.
                        core.stream.told = told;
                    }
                })?;
                core.tally.sent(n, sent == 0 && n > 0);
                sent += n;
                core.show();
                if sent < wanted && wait != Wait::Not {
                    return Err(Errno::AGAIN);
                }
                Ok(sent)
            });
        match result {
            Err(_) if sent > 0 => Ok(sent),
            result => result,
        }
    }

    /// As `shutdown`.
    ///
    /// # Errors
    /// `ENOTCONN` if the connection is gone, or both ends have shut their sending down.
    pub fn shutdown(&self, which: Directions) -> Result<(), Errno> {
        let mut core = self.inner.enter()?;
        if core.gone.is_some() || (core.stream.said_fin && core.stream.heard_fin) {
            return Err(Errno::NOTCONN);
        }
        if which.input {
            core.deafen();
        }
        if which.output {
            core.stream.wants_fin = true;
            core.pump();
            core.show();
        }
        self.inner.settle(core);
        Ok(())
    }

    /// Bytes that can be read at once (`FIONREAD`).
    ///
    /// # Errors
    /// `ENOTCONN` in a forked child.
    pub fn readable_bytes(&self) -> Result<usize, Errno> {
        let core = self.inner.enter()?;
        let bytes = core.stream.unread_bytes;
        self.inner.settle(core);
        Ok(bytes)
    }
}

/// Copies into the buffers, after the first `skip` bytes of them; how many were copied.
fn copy_out(
    memory: &Memory,
    start: usize,
    there: usize,
    into: &mut [IoSliceMut<'_>],
    skip: usize,
) -> usize {
    let (mut skip, mut copied) = (skip, 0);
    for buffer in into {
        let Some(room) = buffer.get_mut(skip..) else {
            skip -= buffer.len();
            continue;
        };
        skip = 0;
        let len = room.len().min(there - copied);
        let copied_here = room
            .get_mut(..len)
            .is_some_and(|room| memory.read(start + copied, room).is_ok());
        if !copied_here {
            break;
        }
        copied += len;
    }
    copied
}

/// Where the program polls.
fn no_bed(_core: &Core) -> Option<OwnedFd> {
    None
}
