//! As FTP's data connections and HTTP without keep-alive: what was asked for ends with the connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::orders;
use super::socket::{Address, Listener, connect_briefly};
use crate::error::{Context, Result};

/// Answers each request with `size` bytes in one write, one connection after the other.
pub(super) fn serve(listener: &Listener, size: usize) -> Result<()> {
    let file = vec![1; size];
    loop {
        let stream = listener.accept().context("accept")?;
        match answer(stream, &file) {
            Err(error) if !super::is_gone(&error) => return Err(error).context("an answer"),
            _ => {}
        }
    }
}

fn answer(mut stream: TcpStream, file: &[u8]) -> io::Result<()> {
    stream.read_exact(&mut [0; REQUEST])?;
    stream.write_all(file)
}

/// A round is a connection of its own, read to its end.
pub(super) struct Client {
    address: Address,
    size: usize,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) fn new(address: Address, size: usize) -> Self {
        let buffer = vec![0; super::BUFFER];
        Self {
            address,
            size,
            buffer,
        }
    }

    /// Takes all that there is, and says how much that was.
    fn take(&mut self, mut stream: TcpStream) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            match stream.read(&mut self.buffer)? {
                0 => return Ok(taken),
                length => taken += length,
            }
        }
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        for _ in 0..rounds {
            let mut stream = connect_briefly(&self.address)?;
            stream.write_all(&[1; REQUEST])?;
            // A connection that ended too soon would pass for a fast one.
            if self.take(stream)? != self.size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

/// Bytes.
const REQUEST: usize = 64;
