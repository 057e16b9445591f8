//! The end of a connection, after its VI has let go of it.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use sys::fork::Own;
use sys::poll::Interest;

use crate::wire::Wire;

/// A connection on its way out: its last octets go, then FIN, and what still comes is thrown away
/// until the peer's. A socket closed over unread octets would be reset, and take the last octets along.
pub(crate) struct Departure {
    wire: Arc<Wire>,
    last: Vec<u8>,
    has_said_fin: bool,
    has_read_fin: bool,
    until: Instant,
}

/// Whether the peers of connections that are on their way out have not acknowledged all octets yet. A process that ends before may take them along.
pub fn is_seeing_off() -> bool {
    let leaving = leaving();
    let mut wires = leaving.iter().filter_map(Weak::upgrade);
    wires.any(|wire| sys::tcp::outq(wire.tcp().as_fd()).is_ok_and(|octets| octets > 0))
}

impl Departure {
    pub(crate) fn new(wire: Arc<Wire>, last: Vec<u8>) -> Self {
        let mut leaving = leaving();
        leaving.retain(|wire| wire.strong_count() > 0);
        leaving.push(Arc::downgrade(&wire));
        drop(leaving);
        Self {
            wire,
            last,
            has_said_fin: false,
            has_read_fin: false,
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
        match (self.last.is_empty(), self.has_read_fin) {
            (true, _) => Interest::Read,
            (false, false) => Interest::ReadWrite,
            (false, true) => Interest::Room,
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
        if self.has_read_fin {
            return self.has_said_fin;
        }
        let mut waste = [0; 4096];
        // A peer that floods us does not hold up the others.
        for _ in 0..READS_AT_A_TIME {
            match rustix::io::read(self.wire.tcp(), &mut waste) {
                Ok(0) => {
                    self.has_read_fin = true;
                    return self.has_said_fin;
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) => return true,
            }
        }
        false
    }
}

fn leaving() -> MutexGuard<'static, Vec<Weak<Wire>>> {
    LEAVING.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// A forked child sees off none of its parent's.
static LEAVING: Own<Mutex<Vec<Weak<Wire>>>> = Own::new();
/// How long the peer may take.
const PATIENCE: Duration = Duration::from_secs(2);
const READS_AT_A_TIME: u32 = 64;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    use sys::poll::Poller;

    use super::*;

    /// A departure that the peer does not read all of, and the peer.
    fn stuck() -> (Departure, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        let (ours, _) = listener.accept().expect("the peer");
        let wire = Arc::new(Wire::new(ours.into()).expect("TCP"));
        let mut departure = Departure::new(wire, vec![1; LONG]);
        assert!(!departure.go_on() && !departure.last.is_empty());
        (departure, peer)
    }

    #[test]
    fn one_whose_peer_has_ended_waits_for_room_only() {
        let (mut departure, mut peer) = stuck();
        let set = Poller::new().expect("a set");
        let mut events = Vec::new();
        set.add(departure.wire().tcp(), 1, departure.interest())
            .expect("added");
        peer.shutdown(Shutdown::Write).expect("connected");
        while !departure.has_read_fin {
            set.wait(&mut events, None).expect("FIN, or room");
            assert!(!departure.go_on());
        }
        set.modify(departure.wire().tcp(), 1, departure.interest())
            .expect("a member");

        let reader = thread::spawn(move || {
            let mut octets = Vec::new();
            peer.read_to_end(&mut octets).map(|read| (read, peer))
        });
        let mut is_done = false;
        while !is_done {
            let before = departure.last.len();
            set.wait(&mut events, None).expect("room");
            is_done = departure.go_on();
            assert!(departure.last.len() < before, "told of no room");
        }
        let (read, _peer) = reader.join().expect("no panic").expect("FIN");
        assert_eq!(read, LONG);
    }

    /// More than the kernel takes.
    const LONG: usize = 32 << 20;
}
