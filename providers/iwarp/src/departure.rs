//! The end of a connection, after its VI has let go of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use sys::poll::Interest;

use crate::wire::Wire;

/// A connection on its way out: its last octets go, then FIN, and what still comes is thrown away
/// until the peer's. A socket closed over unread octets would be reset, and take the last octets along.
pub(crate) struct Departure {
    wire: Arc<Wire>,
    last: Vec<u8>,
    has_said_fin: bool,
    until: Instant,
}

impl Departure {
    pub(crate) fn new(wire: Arc<Wire>, last: Vec<u8>) -> Self {
        Self {
            wire,
            last,
            has_said_fin: false,
            until: Instant::now() + PATIENCE,
        }
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    pub(crate) fn interest(&self) -> Interest {
        if self.last.is_empty() {
            Interest::Read
        } else {
            Interest::ReadWrite
        }
    }

    /// Does what can be done now; whether that was all.
    pub(crate) fn go_on(&mut self) -> bool {
        while !self.last.is_empty() {
            match send(self.wire.tcp(), &self.last, SendFlags::NOSIGNAL) {
                Ok(n) => drop(self.last.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return true,
            }
        }
        if self.last.is_empty() && !self.has_said_fin {
            self.has_said_fin = true;
            self.wire.end_output();
        }
        let mut waste = [0; 4096];
        // A peer that floods us does not hold up the others.
        for _ in 0..READS_AT_A_TIME {
            match rustix::io::read(self.wire.tcp(), &mut waste) {
                Ok(0) => return self.has_said_fin,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) => return true,
            }
        }
        false
    }
}

/// How long the peer may take.
const PATIENCE: Duration = Duration::from_secs(2);
const READS_AT_A_TIME: u32 = 64;
