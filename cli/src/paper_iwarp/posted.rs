//! An extended socket as a pipe: posted receives of one size, posted sends of at most that.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use iwarp::{IwarpDriver, Role};
use sockets::extended::{Region, Socket};
use sys::errno::Errno;
use via::{Access, Memory};

use crate::error::{Context, Error, Result};
use crate::netpipe::CONGESTION;
use crate::netpipe::pipe::Pipe;

/// One end, with its memory.
pub(super) struct PostedPipe {
    socket: Socket,
    outgoing: Region,
    incoming: Region,
    /// Posted sends that have not completed.
    unsent: usize,
    /// Bytes that have come and that nobody has asked for yet.
    arrived: usize,
}

impl PostedPipe {
    /// Of a connected TCP socket; both ends call this.
    pub(super) fn convert(tcp: TcpStream, host: Ipv4Addr, bytes_max: usize) -> Result<Self> {
        let config = iwarp::Config {
            address: SocketAddrV4::new(host, 0),
            congestion: Some(CONGESTION),
            ..iwarp::Config::default()
        };
        let driver = IwarpDriver::new(config).context("a port")?;
        let nic = crate::nic::start(&driver)?;
        let soon = Some(Instant::now() + PATIENCE);
        let socket = Socket::in_place(tcp.into(), &nic, |vi, tcp, opener| {
            let role = if opener {
                Role::Initiator
            } else {
                Role::Responder
            };
            iwarp::over(vi, tcp, role, &driver.config(), soon)
        });
        let socket = refused(socket, "converting the connection")?;
        let region = |bytes: usize, access| {
            let memory = Memory::shared(bytes).context("memfd")?;
            let touched = memory.write(0, &vec![1; bytes]);
            touched.map_err(io::Error::other).context("fresh memory")?;
            refused(socket.register(memory, access), "sovia_register")
        };
        let outgoing = region(bytes_max.max(SLOT), Access::Local)?;
        // Long messages come straight to where the peer may write.
        let incoming = region(SLOTS * SLOT, Access::Write)?;
        let pipe = Self {
            outgoing,
            incoming,
            socket,
            unsent: 0,
            arrived: 0,
        };
        (0..SLOTS).try_for_each(|slot| pipe.post_recv(slot))?;
        Ok(pipe)
    }

    fn post_recv(&self, slot: usize) -> Result<()> {
        let slice = self.incoming.slice(slot * SLOT..(slot + 1) * SLOT);
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
            let end = len.min(offset + SLOT);
            let slice = refused(self.outgoing.slice(offset..end), "a fragment")?;
            refused(self.socket.post_send(&[slice], SENT), "sovia_post_send")?;
            self.unsent += 1;
            while self.unsent > UNSENT_MAX {
                self.take()?;
            }
            offset = end;
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

fn refused<T>(result: std::result::Result<T, Errno>, what: &'static str) -> Result<T> {
    result.map_err(|errno| Error::System {
        what,
        source: errno.into(),
    })
}

/// The `id` of every send.
const SENT: u64 = u64::MAX;
const SLOT: usize = 64 << 10;
const SLOTS: usize = 32;
const UNSENT_MAX: usize = 8;
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn receives_left_over_are_no_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        let (there, _) = listener.accept().expect("connected");
        let convert = |tcp| PostedPipe::convert(tcp, Ipv4Addr::LOCALHOST, 64).expect("converts");
        let (mut here, mut there) = thread::scope(|scope| {
            let other = scope.spawn(|| convert(there));
            (convert(here), other.join().expect("no panic"))
        });
        here.post(64).expect("posts");
        there.recv(64).expect("comes");
        drop(there);
        // Nothing more is sent, and what was completes.
        here.send(0).expect("completes");
        assert_eq!(here.unsent, 0);
    }
}
