//! Servers and clients with one set, level-triggered, as redis has it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::orders;
use super::socket::Listener;
use crate::error::{Context, Result};

/// What a server does with one connection.
pub(super) trait Talk {
    /// Takes what has come. `buffer` is the server's.
    ///
    /// # Errors
    /// The connection is over.
    fn take(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()>;

    /// What has not been sent yet.
    fn unsent(&mut self) -> &mut Unsent;
}

/// Sends back what comes: messages of one size when they are complete, or whatever there is.
pub(super) struct Echo {
    size: usize,
    taken: usize,
    unsent: Unsent,
}

impl Echo {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            taken: 0,
            unsent: Unsent::default(),
        }
    }
}

impl Talk for Echo {
    fn take(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
        let room = match self.size {
            0 => buffer.len(),
            size => (size - self.taken).min(buffer.len()),
        };
        let length = took(stream.read(&mut buffer[..room]))?;
        self.taken += length;
        if self.taken >= self.size {
            let whole = if self.size == 0 { length } else { self.size };
            self.taken = 0;
            // What comes fits: no order asks for more than a message in flight.
            self.unsent
                .send(stream, &buffer[..whole.min(buffer.len())], whole)?;
        }
        Ok(())
    }

    fn unsent(&mut self) -> &mut Unsent {
        &mut self.unsent
    }
}

/// Takes blocks: a length of 8 bytes, so many bytes more, and then it answers with one.
#[derive(Default)]
pub(super) struct Sink {
    header: [u8; 8],
    got: usize,
    left: u64,
    unsent: Unsent,
}

impl Talk for Sink {
    fn take(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
        if self.got < self.header.len() {
            self.got += took(stream.read(&mut self.header[self.got..]))?;
            if self.got < self.header.len() {
                return Ok(());
            }
            self.left = u64::from_le_bytes(self.header);
        } else {
            let room = super::BUFFER.min(self.left.try_into().unwrap_or(usize::MAX));
            self.left -= took(stream.read(&mut buffer[..room]))? as u64;
        }
        if self.left == 0 {
            self.got = 0;
            self.unsent.send(stream, &[1], 1)?;
        }
        Ok(())
    }

    fn unsent(&mut self) -> &mut Unsent {
        &mut self.unsent
    }
}

/// Bytes that a socket did not take; which ones they are nobody looks at.
#[derive(Default)]
pub(super) struct Unsent(usize);

impl Unsent {
    /// Sends `whole` bytes out of `bytes`, from its beginning again and again.
    fn send(&mut self, stream: &mut TcpStream, bytes: &[u8], whole: usize) -> io::Result<()> {
        self.0 += whole;
        self.flush(stream, bytes)
    }

    fn flush(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        while self.0 > 0 {
            match stream.write(&bytes[..self.0.min(bytes.len())]) {
                Ok(length) => self.0 -= length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct Connection<T> {
    stream: TcpStream,
    talk: T,
    /// Whether room to send is waited for.
    full: bool,
}

/// Serves all connections at once.
pub(super) fn serve<T: Talk>(listener: &Listener, talk: impl Fn() -> T) -> Result<()> {
    listener.set_nonblocking().context("O_NONBLOCK")?;
    let set = Set::new().context("epoll_create1")?;
    set.watch(listener, LISTENER).context("epoll_ctl")?;
    let mut connections: Vec<Option<Connection<T>>> = Vec::new();
    let mut free = Vec::new();
    let mut buffer = vec![0; BUFFER];
    let mut events = [EpollEvent::empty(); EVENTS];
    loop {
        let ready = set.wait(&mut events).context("epoll_wait")?;
        for event in &events[..ready] {
            if event.data() == LISTENER {
                let Ok(stream) = listener.accept() else {
                    continue;
                };
                stream.set_nonblocking(true).context("O_NONBLOCK")?;
                let slot = free.pop().unwrap_or(connections.len());
                set.watch(&stream, slot as u64).context("epoll_ctl")?;
                if slot == connections.len() {
                    connections.push(None);
                }
                connections[slot] = Some(Connection {
                    stream,
                    talk: talk(),
                    full: false,
                });
                continue;
            }
            let slot = event.data() as usize;
            let Some(place) = connections.get_mut(slot) else {
                continue;
            };
            let served = place.as_mut().map(|connection| {
                connection
                    .serve(&mut buffer)
                    .and_then(|()| connection.rewatch(&set, event.data()))
            });
            // Closing takes it out of the set.
            if matches!(served, Some(Err(_))) {
                *place = None;
                free.push(slot);
            }
        }
    }
}

impl<T: Talk> Connection<T> {
    fn serve(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        if self.full {
            return self.talk.unsent().flush(&mut self.stream, buffer);
        }
        self.talk.take(&mut self.stream, buffer)
    }

    /// Waits for what is needed now: room to send, or more to take.
    fn rewatch(&mut self, set: &Set, data: u64) -> io::Result<()> {
        let full = self.talk.unsent().0 > 0;
        if full != self.full {
            set.turn(&self.stream, full, data)?;
            self.full = full;
        }
        Ok(())
    }
}

/// A round is a message there and back; it sleeps in `epoll_wait`.
pub(super) struct PingPong(Client);

/// A round is a message to the sink; it sleeps in `epoll_wait`.
pub(super) struct Stream(Client);

impl PingPong {
    pub(super) fn new(stream: TcpStream, size: usize) -> Result<Self> {
        Client::new(stream, size).map(Self)
    }
}

impl orders::Client for PingPong {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        for _ in 0..rounds {
            self.0.write_message()?;
            self.0.read(self.0.message.len())?;
        }
        Ok(())
    }
}

impl Stream {
    pub(super) fn new(stream: TcpStream, size: usize) -> Result<Self> {
        Client::new(stream, size).map(Self)
    }
}

impl orders::Client for Stream {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        let bytes = self.0.message.len() as u64 * u64::from(rounds);
        let header = bytes.to_le_bytes();
        let client = &mut self.0;
        Client::write(&client.set, &mut client.stream, &header)?;
        for _ in 0..rounds {
            self.0.write_message()?;
        }
        self.0.read(1)
    }
}

struct Client {
    set: Set,
    stream: TcpStream,
    message: Vec<u8>,
}

impl Client {
    fn new(stream: TcpStream, size: usize) -> Result<Self> {
        stream.set_nonblocking(true).context("O_NONBLOCK")?;
        let set = Set::new().context("epoll_create1")?;
        set.watch(&stream, 0).context("epoll_ctl")?;
        let message = vec![1; size];
        Ok(Self {
            set,
            stream,
            message,
        })
    }

    fn write_message(&mut self) -> io::Result<()> {
        Self::write(&self.set, &mut self.stream, &self.message)
    }

    fn write(set: &Set, stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match stream.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    set.turn(&*stream, true, 0)?;
                    set.wait(&mut [EpollEvent::empty(); 1])?;
                    set.turn(&*stream, false, 0)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// As many bytes as a message has, at most.
    fn read(&mut self, length: usize) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 1];
        let mut taken = 0;
        while taken < length {
            self.set.wait(&mut events)?;
            taken += took(self.stream.read(&mut self.message[taken..length]))?;
        }
        Ok(())
    }
}

/// An epoll set.
struct Set(Epoll);

impl Set {
    fn new() -> io::Result<Self> {
        Ok(Self(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?))
    }

    fn watch(&self, socket: impl AsFd, data: u64) -> io::Result<()> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, data);
        Ok(self.0.add(socket, event)?)
    }

    /// From waiting for bytes to waiting for room, or back.
    fn turn(&self, socket: impl AsFd, room: bool, data: u64) -> io::Result<()> {
        let wanted = if room {
            EpollFlags::EPOLLOUT
        } else {
            EpollFlags::EPOLLIN
        };
        Ok(self.0.modify(socket, &mut EpollEvent::new(wanted, data))?)
    }

    fn wait(&self, events: &mut [EpollEvent]) -> io::Result<usize> {
        loop {
            match self.0.wait(events, EpollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

/// Bytes taken, perhaps none yet; the end of the stream is an error.
fn took(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}

const LISTENER: u64 = u64::MAX;
const EVENTS: usize = 128;
/// A message of the largest size, whole.
const BUFFER: usize = 1 << 20;
