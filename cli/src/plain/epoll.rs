use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::orders;
use crate::error::{Context, Result};

/// Echoes on all connections at once: one set, level-triggered, as redis has it. For messages that fit a socket buffer.
pub(super) fn serve(listener: &TcpListener) -> Result<()> {
    listener.set_nonblocking(true).context("O_NONBLOCK")?;
    let set = new_set().context("epoll_create1")?;
    watch(&set, listener, LISTENER).context("epoll_ctl")?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut buffer = vec![0; super::BUFFER];
    let mut events = [EpollEvent::empty(); EVENTS];
    loop {
        let ready = wait(&set, &mut events).context("epoll_wait")?;
        for event in &events[..ready] {
            if event.data() == LISTENER {
                let Ok((stream, _)) = listener.accept() else {
                    continue;
                };
                stream.set_nonblocking(true).context("O_NONBLOCK")?;
                stream.set_nodelay(true).context("TCP_NODELAY")?;
                let free = connections.iter().position(Option::is_none);
                let slot = free.unwrap_or(connections.len());
                watch(&set, &stream, slot as u64).context("epoll_ctl")?;
                if free.is_none() {
                    connections.push(None);
                }
                connections[slot] = Some(stream);
                continue;
            }
            let Some(connection) = connections.get_mut(event.data() as usize) else {
                continue;
            };
            // Closing takes it out of the set.
            if connection
                .as_mut()
                .is_some_and(|stream| !echo(stream, &mut buffer))
            {
                *connection = None;
            }
        }
    }
}

/// One message; whether the connection lives.
fn echo(stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
    match stream.read(buffer) {
        Ok(0) => false,
        Ok(length) => stream.write_all(&buffer[..length]).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// A round is a message there and back; it sleeps in `epoll_wait`.
pub(super) struct Client {
    set: Epoll,
    stream: TcpStream,
    message: Vec<u8>,
}

impl Client {
    pub(super) fn new(stream: TcpStream, size: usize) -> Result<Self> {
        stream.set_nonblocking(true).context("O_NONBLOCK")?;
        let set = new_set().context("epoll_create1")?;
        watch(&set, &stream, 0).context("epoll_ctl")?;
        let message = vec![1; size];
        Ok(Self {
            set,
            stream,
            message,
        })
    }

    fn read_message(&mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 1];
        let mut taken = 0;
        while taken < self.message.len() {
            wait(&self.set, &mut events)?;
            match self.stream.read(&mut self.message[taken..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => taken += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        for _ in 0..rounds {
            self.stream.write_all(&self.message)?;
            self.read_message()?;
        }
        Ok(())
    }
}

fn new_set() -> io::Result<Epoll> {
    Ok(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?)
}

fn watch(set: &Epoll, socket: impl AsFd, data: u64) -> io::Result<()> {
    Ok(set.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, data))?)
}

fn wait(set: &Epoll, events: &mut [EpollEvent]) -> io::Result<usize> {
    loop {
        match set.wait(events, EpollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            result => return Ok(result?),
        }
    }
}

const LISTENER: u64 = u64::MAX;
const EVENTS: usize = 128;
