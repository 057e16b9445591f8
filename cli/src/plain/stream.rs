use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::orders;
use super::socket::Listener;
use crate::error::{Context, Result};

/// Takes blocks: a length of 8 bytes, so many bytes more, and then it answers with one.
pub(super) fn serve(listener: &Listener) -> Result<()> {
    let mut buffer = vec![0; super::BUFFER];
    loop {
        let stream = listener.accept().context("accept")?;
        match take(stream, &mut buffer) {
            Err(error) if !super::is_gone(&error) => return Err(error).context("sink"),
            _ => {}
        }
    }
}

fn take(mut stream: TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    loop {
        let mut length = [0; 8];
        stream.read_exact(&mut length)?;
        let mut left = u64::from_le_bytes(length);
        while left > 0 {
            let most = buffer.len().min(left.try_into().unwrap_or(usize::MAX));
            match stream.read(&mut buffer[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                taken => left -= taken as u64,
            }
        }
        stream.write_all(&[1])?;
    }
}

/// A round is a message to the sink. The sink's answer ends a block, so that its last byte has been taken and not only buffered.
pub(super) struct Client {
    stream: TcpStream,
    message: Vec<u8>,
}

impl Client {
    pub(super) fn new(stream: TcpStream, size: usize) -> Self {
        let message = vec![1; size];
        Self { stream, message }
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        let bytes = self.message.len() as u64 * u64::from(rounds);
        self.stream.write_all(&bytes.to_le_bytes())?;
        for _ in 0..rounds {
            self.stream.write_all(&self.message)?;
        }
        self.stream.read_exact(&mut [0])
    }
}
