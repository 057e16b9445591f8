use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::orders;

/// A round is a connection of its own, with a message there and back.
pub(super) struct Client {
    address: SocketAddr,
    message: Vec<u8>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, size: usize) -> Self {
        let message = vec![1; size];
        Self { address, message }
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        for _ in 0..rounds {
            let mut stream = TcpStream::connect(self.address)?;
            stream.write_all(&self.message)?;
            stream.read_exact(&mut self.message)?;
        }
        Ok(())
    }
}
