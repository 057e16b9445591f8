//! An extended socket as a pipe: posted receives of one size, posted sends of at most that.

use std::io;
use std::time::Instant;

use sockets::extended::{Region, Socket};
use sys::errno::Errno;
use via::{Access, Memory};

use super::convert::{PATIENCE, refused};
use crate::error::{Context, Error, Result};
use crate::netpipe::pipe::Pipe;

/// One end, with its memory.
pub(super) struct PostedPipe {
    socket: Socket,
    outgoing: Region,
    incoming: Region,
    slots: Slots,
    /// Posted sends that have not completed.
    unsent: usize,
    /// Bytes that have come and that nobody has asked for yet.
    arrived: usize,
}

/// Where messages arrive.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    /// Bytes of each: longer messages are cut.
    pub(super) bytes: usize,
    pub(super) count: usize,
}

impl Slots {
    /// From one to the next; an odd number of cache lines, or the first bytes of all would compete for the same few places of the cache.
    fn stride(self) -> usize {
        (self.bytes.div_ceil(LINE) | 1) * LINE
    }
}

impl PostedPipe {
    /// Both ends call this.
    pub(super) fn new(socket: Socket, slots: Slots) -> Result<Self> {
        let region = |bytes: usize, access| {
            let memory = Memory::shared(bytes).context("memfd")?;
            let touched = memory.write(0, &vec![1; bytes]);
            touched.map_err(io::Error::other).context("fresh memory")?;
            refused(socket.register(memory, access), "sovia_register")
        };
        let outgoing = region(slots.bytes, Access::Local)?;
        // Long messages come straight to where the peer may write.
        let incoming = region(slots.count * slots.stride(), Access::Write)?;
        let pipe = Self {
            outgoing,
            incoming,
            slots,
            socket,
            unsent: 0,
            arrived: 0,
        };
        (0..slots.count).try_for_each(|slot| pipe.post_recv(slot))?;
        Ok(pipe)
    }

    fn post_recv(&self, slot: usize) -> Result<()> {
        let start = slot * self.slots.stride();
        let slice = self.incoming.slice(start..start + self.slots.bytes);
        let slice = refused(slice, "a slot")?;
        let posted = self.socket.post_recv(&[slice], slot as u64);
        refused(posted, "sovia_post_recv")
    }

    /// Takes one completion, of either kind.
    fn take(&mut self) -> Result<()> {
        let deadline = Some(Instant::now() + PATIENCE);
        let completion = refused(self.socket.wait(deadline), "sovia_wait")?;
        let len = match completion.result {
            // Receives that are left when the other end goes, which may be told before a send that arrived; whoever waits for bytes
            // is told by the next wait.
            Err(Errno::SHUTDOWN) if completion.id != SENT => return Ok(()),
            result => refused(result, "a posted operation")?,
        };
        if completion.id == SENT {
            self.unsent -= 1;
            return Ok(());
        }
        self.arrived += len as usize;
        match self.post_recv(completion.id as usize) {
            // The other end has all that it wanted, and has gone; if it has not, the next wait says so.
            Err(Error::System { source, .. }) if has_gone(&source) => Ok(()),
            posted => posted,
        }
    }
}

impl Pipe for PostedPipe {
    fn send(&mut self, len: usize) -> Result<()> {
        self.post(len)?;
        while self.unsent > 0 {
            self.take()?;
        }
        Ok(())
    }

    fn post(&mut self, len: usize) -> Result<()> {
        let mut offset = 0;
        while offset < len {
            let piece = (len - offset).min(self.slots.bytes);
            let slice = refused(self.outgoing.slice(0..piece), "a fragment")?;
            refused(self.socket.post_send(&[slice], SENT), "sovia_post_send")?;
            self.unsent += 1;
            while self.unsent > UNSENT_MAX {
                self.take()?;
            }
            offset += piece;
        }
        Ok(())
    }

    fn recv(&mut self, len: usize) -> Result<()> {
        while self.arrived < len {
            self.take()?;
        }
        self.arrived -= len;
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        self.send(len)?;
        self.recv(len)
    }
}

fn has_gone(error: &io::Error) -> bool {
    [Errno::SHUTDOWN, Errno::PIPE]
        .map(io::Error::from)
        .iter()
        .any(|gone| gone.raw_os_error() == error.raw_os_error())
}

/// The `id` of every send.
const SENT: u64 = u64::MAX;
const LINE: usize = 64;
const UNSENT_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::super::convert::convert;
    use super::*;
    use crate::paper_iwarp::way::Way;

    #[test]
    fn receives_left_over_are_no_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = std::net::TcpStream::connect(listener.local_addr().expect("bound"));
        let here = here.expect("listens");
        let (there, _) = listener.accept().expect("connected");
        let slots = Slots {
            bytes: 64,
            count: 4,
        };
        let pipe = |tcp| {
            let socket = convert(tcp, Ipv4Addr::LOCALHOST, Way::Extended).expect("converts");
            PostedPipe::new(socket, slots).expect("posts")
        };
        let (mut here, mut there) = thread::scope(|scope| {
            let other = scope.spawn(|| pipe(there));
            (pipe(here), other.join().expect("no panic"))
        });
        here.post(64).expect("posts");
        there.recv(64).expect("comes");
        drop(there);
        // Nothing more is sent, and what was completes.
        here.send(0).expect("completes");
        assert_eq!(here.unsent, 0);
    }
}
