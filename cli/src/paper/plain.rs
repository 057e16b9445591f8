//! A TCP connection through the C library's calls, which `libsovia.so` can stand in front of; netpipe's own go to the kernel by themselves.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::error::{Context, Error, Result};
use crate::netpipe::pipe::{Pipe, Port, Shape};

pub(super) struct Plain {
    shape: Shape,
    address: String,
    /// None at the end that dials.
    listener: Option<TcpListener>,
}

pub(super) struct PlainPipe {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Port for Plain {
    type Pipe = PlainPipe;

    fn listen(shape: Shape) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind")?;
        Ok(Self {
            shape,
            address: listener.local_addr().context("getsockname")?.to_string(),
            listener: Some(listener),
        })
    }

    fn dial(shape: Shape, address: &str) -> Result<Self> {
        Ok(Self {
            shape,
            address: address.to_owned(),
            listener: None,
        })
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn open(&mut self) -> Result<PlainPipe> {
        let stream = match &self.listener {
            Some(listener) => listener.accept().context("accept")?.0,
            None => TcpStream::connect(&self.address).context("connect")?,
        };
        stream.set_nodelay(true).context("TCP_NODELAY")?;
        Ok(PlainPipe {
            stream,
            bytes: vec![1; self.shape.bytes_max],
        })
    }

    fn knock(&mut self) -> Result<()> {
        self.open().map(drop)
    }
}

impl Pipe for PlainPipe {
    #[inline]
    fn send(&mut self, len: usize) -> Result<()> {
        let bytes = self.bytes.get(..len).ok_or(Error::Closed)?;
        self.stream.write_all(bytes).context("send")
    }

    #[inline]
    fn recv(&mut self, len: usize) -> Result<()> {
        let room = self.bytes.get_mut(..len).ok_or(Error::Closed)?;
        self.stream.read_exact(room).context("recv")
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        self.send(len)?;
        self.recv(len)
    }
}
