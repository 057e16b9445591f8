use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::orders;
use super::socket::{Address, connect};
use crate::error::{Context, Result};

/// Many connections, used in turn. A round is a message there and back on the next one.
pub(super) struct Client {
    streams: Vec<TcpStream>,
    next: usize,
    message: Vec<u8>,
}

impl Client {
    /// Makes them, and uses each enough not to count as short.
    pub(super) fn new(address: &Address, size: usize, connections: usize) -> Result<Self> {
        let streams = (0..connections).map(|_| connect(address));
        let mut client = Self {
            streams: streams.collect::<Result<_>>()?,
            next: 0,
            message: vec![1; size],
        };
        let rounds = (connections * EXCHANGES) as u32;
        orders::Client::block(&mut client, rounds).context("many connections")?;
        Ok(client)
    }
}

impl orders::Client for Client {
    fn block(&mut self, rounds: u32) -> io::Result<()> {
        let mut left = rounds as usize;
        while left > 0 {
            let at = self.next;
            let group = left.min(IN_FLIGHT).min(self.streams.len() - at);
            for stream in &mut self.streams[at..at + group] {
                stream.write_all(&self.message)?;
            }
            for stream in &mut self.streams[at..at + group] {
                stream.read_exact(&mut self.message)?;
            }
            left -= group;
            self.next = (at + group) % self.streams.len();
        }
        Ok(())
    }
}

/// Messages on their way at once, each on a connection of its own.
const IN_FLIGHT: usize = 16;
const EXCHANGES: usize = 32;
