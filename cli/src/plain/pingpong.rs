use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::orders;
use super::socket::Listener;
use crate::error::{Context, Result};

/// Echoes with blocking calls, one connection after the other: messages of `size` bytes when they are complete, or, with 0,
/// whatever there is.
pub(super) fn serve(listener: &Listener, size: usize) -> Result<()> {
    let mut buffer = vec![0; if size == 0 { super::BUFFER } else { size }];
    loop {
        let stream = listener.accept().context("accept")?;
        match echo(stream, &mut buffer, size) {
            Err(error) if !super::is_gone(&error) => return Err(error).context("echo"),
            _ => {}
        }
    }
}

fn echo(mut stream: TcpStream, buffer: &mut [u8], size: usize) -> io::Result<()> {
    loop {
        let mut taken = 0;
        while taken == 0 || taken < size {
            match stream.read(&mut buffer[taken..])? {
                0 => return Ok(()),
                length => taken += length,
            }
        }
        stream.write_all(&buffer[..taken])?;
    }
}

/// A round is a message there and back.
pub(super) struct Client {
    stream: TcpStream,
    message: Vec<u8>,
}

impl Client {
    pub(super) fn new(stream: TcpStream, size: usize) -> Self {
        let message = vec![1; size];
        Self { stream, message }
    }

    /// Enough messages for the connection not to count as short.
    pub(super) fn use_a_little(&mut self) -> Result<()> {
        orders::Client::block(self, EXCHANGES).context("an idle connection")
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        for _ in 0..rounds {
            self.stream.write_all(&self.message)?;
            self.stream.read_exact(&mut self.message)?;
        }
        Ok(())
    }
}

const EXCHANGES: u32 = 32;
