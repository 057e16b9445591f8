//! A stream socket as a [`Pipe`]: the same code for TCP and for Unix sockets.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::pipe::{Pipe, Shape};
use super::plan::Wait;
use crate::error::{Context, Error, Result};

pub(crate) struct Socket {
    fd: OwnedFd,
    wait: Wait,
    yielding: bool,
}

/// One pair of buffers for all sockets of this process, which take turns: many connections are to cost no more cache
/// and memory than one.
struct Memory {
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

thread_local! {
    static MEMORY: RefCell<Memory> = const {
        RefCell::new(Memory { outgoing: Vec::new(), incoming: Vec::new() })
    };
}

impl Socket {
    pub(crate) fn new(fd: OwnedFd, shape: Shape) -> Self {
        MEMORY.with_borrow_mut(|memory| {
            let bytes = shape.bytes_max.max(memory.incoming.len());
            // Not zero, so that every page is there before the clock runs.
            memory.outgoing.resize(bytes, 1);
            memory.incoming.resize(bytes, 1);
        });
        Self {
            fd,
            wait: shape.wait,
            yielding: shape.yielding,
        }
    }

    /// One attempt; `None` when the kernel's buffer is full.
    fn try_send(&self, from: usize, len: usize, flags: SendFlags) -> Result<Option<usize>> {
        let flags = flags | SendFlags::NOSIGNAL;
        let result = MEMORY
            .with_borrow(|memory| rustix::net::send(&self.fd, &memory.outgoing[from..len], flags));
        match result {
            Ok(sent) => Ok(Some(sent)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(gone(error, "send")),
        }
    }

    /// One attempt; `None` when nothing is there.
    fn try_recv(&self, from: usize, len: usize, flags: RecvFlags) -> Result<Option<usize>> {
        let result = MEMORY.with_borrow_mut(|memory| {
            rustix::net::recv(&self.fd, &mut memory.incoming[from..len], flags)
        });
        match result {
            Ok((0, _)) => Err(Error::Closed),
            Ok((received, _)) => Ok(Some(received)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(gone(error, "recv")),
        }
    }

    fn relax(&self) {
        if self.yielding {
            std::thread::yield_now();
        }
    }

    fn sleep_until(&self, ready: PollFlags) -> Result<()> {
        match rustix::event::poll(&mut [PollFd::new(&self.fd, ready)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("poll"),
        }
    }
}

impl Pipe for Socket {
    fn send(&mut self, len: usize) -> Result<()> {
        let flags = match self.wait {
            Wait::Poll => SendFlags::DONTWAIT,
            Wait::Block | Wait::Adaptive => SendFlags::empty(),
        };
        let mut sent = 0;
        while sent < len {
            match self.try_send(sent, len, flags)? {
                Some(more) => sent += more,
                None => self.relax(),
            }
        }
        Ok(())
    }

    fn recv(&mut self, len: usize) -> Result<()> {
        let flags = match self.wait {
            Wait::Poll => RecvFlags::DONTWAIT,
            Wait::Block | Wait::Adaptive => RecvFlags::empty(),
        };
        let mut received = 0;
        while received < len {
            match self.try_recv(received, len, flags)? {
                Some(more) => received += more,
                None => self.relax(),
            }
        }
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        let (mut sent, mut received) = (0, 0);
        while sent < len || received < len {
            let mut moved = 0;
            if sent < len {
                moved += self.try_send(sent, len, SendFlags::DONTWAIT)?.unwrap_or(0);
                sent += moved;
            }
            if received < len {
                let more = self
                    .try_recv(received, len, RecvFlags::DONTWAIT)?
                    .unwrap_or(0);
                received += more;
                moved += more;
            }
            if moved > 0 {
                continue;
            }
            match self.wait {
                Wait::Poll => self.relax(),
                Wait::Block | Wait::Adaptive => {
                    let mut ready = PollFlags::empty();
                    ready.set(PollFlags::OUT, sent < len);
                    ready.set(PollFlags::IN, received < len);
                    self.sleep_until(ready)?;
                }
            }
        }
        Ok(())
    }
}

fn gone(error: Errno, what: &'static str) -> Error {
    match error {
        Errno::PIPE | Errno::CONNRESET => Error::Closed,
        _ => Error::System {
            what,
            source: io::Error::from(error),
        },
    }
}
