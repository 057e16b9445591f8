//! A TCP connection at a given host, through the C library's calls, which `libsovia.so` can stand in front of.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::error::{Context, Error, Result};
use crate::netpipe::pipe::Pipe;
use crate::netpipe::set_congestion;

/// One end, with a buffer each way.
pub(super) struct StreamPipe {
    stream: TcpStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

pub(super) fn listen(host: Ipv4Addr) -> Result<(TcpListener, String)> {
    let listener = TcpListener::bind((host, 0)).context("bind")?;
    let address = listener.local_addr().context("getsockname")?;
    Ok((listener, address.to_string()))
}

pub(super) fn accept(listener: &TcpListener) -> Result<TcpStream> {
    configured(listener.accept().context("accept")?.0)
}

pub(super) fn dial(address: &str) -> Result<TcpStream> {
    configured(TcpStream::connect(address).context("connect")?)
}

fn configured(stream: TcpStream) -> Result<TcpStream> {
    stream.set_nodelay(true).context("TCP_NODELAY")?;
    set_congestion(&stream)?;
    Ok(stream)
}

impl StreamPipe {
    pub(super) fn new(stream: TcpStream, polls: bool, bytes_max: usize) -> Result<Self> {
        stream.set_nonblocking(polls).context("O_NONBLOCK")?;
        Ok(Self {
            stream,
            // Not zero, so that every page is there before the clock runs.
            outgoing: vec![1; bytes_max],
            incoming: vec![1; bytes_max],
        })
    }
}

impl Pipe for StreamPipe {
    #[inline]
    fn send(&mut self, len: usize) -> Result<()> {
        let mut rest = self.outgoing.get(..len).ok_or(Error::Closed)?;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if again(error.kind()) => {}
                Err(error) => return Err(error).context("send"),
            }
        }
        Ok(())
    }

    #[inline]
    fn recv(&mut self, len: usize) -> Result<()> {
        let mut room = self.incoming.get_mut(..len).ok_or(Error::Closed)?;
        while !room.is_empty() {
            match self.stream.read(room) {
                Ok(0) => return Err(Error::Closed),
                Ok(received) => room = room.get_mut(received..).unwrap_or_default(),
                Err(error) if again(error.kind()) => {}
                Err(error) => return Err(error).context("recv"),
            }
        }
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        self.send(len)?;
        self.recv(len)
    }
}

fn again(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
