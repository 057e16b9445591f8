use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use super::orders;
use crate::error::{Context, Result};

/// Echoes with blocking calls, one connection after the other.
pub(super) fn serve(listener: &TcpListener) -> Result<()> {
    let mut buffer = vec![0; super::BUFFER];
    loop {
        match echo(super::accept(listener)?, &mut buffer) {
            Err(error) if !super::is_gone(&error) => return Err(error).context("echo"),
            _ => {}
        }
    }
}

fn echo(mut stream: TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    loop {
        match stream.read(buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
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
