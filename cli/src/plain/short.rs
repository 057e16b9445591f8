use std::io::{self, Read, Write};

use super::orders;
use super::socket::{Address, connect_briefly};

/// A round is a connection of its own, with messages there and back.
pub(super) struct Client {
    address: Address,
    message: Vec<u8>,
    trips: usize,
}

impl Client {
    pub(super) fn new(address: Address, size: usize, trips: usize) -> Self {
        let message = vec![1; size];
        Self {
            address,
            message,
            trips,
        }
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        for _ in 0..rounds {
            let mut stream = connect_briefly(&self.address)?;
            for _ in 0..self.trips {
                stream.write_all(&self.message)?;
                stream.read_exact(&mut self.message)?;
            }
        }
        Ok(())
    }
}
