//! Reliable delivery over a medium that loses, doubles and reorders: selective repeat.
//!
//! An [`Arq`] is one end of a conversation, both directions. What it carries, a *body*, is the
//! caller's; it comes out of the other end exactly once and in order, or the conversation ends
//! [broken](Arq::is_broken) within a bound. Corruption is the caller's as well: it drops what fails
//! its checksum.
//!
//! After any `handle_*` call, and after [`Arq::push`], take until `None` what
//! [`Arq::poll_delivery`] and [`Arq::poll_transmit`] have, then ask [`Arq::poll_timeout`] when to
//! call [`Arq::handle_timeout`]. Time is what has passed since an epoch of the caller's.
//!
//! Each packet is acknowledged at once with the number of the next body wanted and a map of the 64
//! behind it. A body that three later ones have overtaken is sent again; else all that are
//! unacknowledged are, when the retransmission timer of RFC 6298 fires, which doubles each time.

mod receive;
mod send;
#[cfg(test)]
mod tests;

use std::time::Duration;

use self::receive::Receiver;
use self::send::Sender;

/// Most bodies in flight: as many as an [`Ack`] can tell apart.
pub const WINDOW_MAX: u32 = 64;

/// One end of a conversation.
#[derive(Debug)]
pub struct Arq<T> {
    sender: Sender<T>,
    receiver: Receiver<T>,
}

impl<T: Clone> Arq<T> {
    /// An end whose other end has the same configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let window = config.window.clamp(1, WINDOW_MAX);
        Self {
            sender: Sender::new(Config { window, ..config }),
            receiver: Receiver::new(config.first, window),
        }
    }

    /// Whether everything pushed has been acknowledged.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sender.is_empty()
    }

    /// Whether this end has given up: nothing leaves any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.sender.is_broken()
    }

    /// Queues a body behind those pushed before. How many wait here is the caller's to bound; at
    /// most the window is in flight.
    pub fn push(&mut self, body: T) {
        self.sender.push(body);
    }

    /// A packet came from the other end.
    pub fn handle_packet(&mut self, now: Duration, packet: Packet<T>) {
        let (ack, data) = match packet {
            Packet::Data { seq, ack, body } => (ack, Some((seq, body))),
            Packet::Ack(ack) => (ack, None),
        };
        self.sender.handle_ack(now, ack);
        if let Some((seq, body)) = data {
            self.receiver.handle_data(seq, body);
        }
    }

    /// Time has passed; does nothing before [`Arq::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Duration) {
        self.sender.handle_timeout(now);
    }

    /// The next body for the caller.
    pub fn poll_delivery(&mut self) -> Option<T> {
        self.receiver.poll_delivery()
    }

    /// The next packet for the other end.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Packet<T>> {
        if let Some((seq, body)) = self.sender.poll_transmit(now) {
            let ack = self.receiver.take_ack();
            return Some(Packet::Data { seq, ack, body });
        }
        self.receiver.poll_ack().map(Packet::Ack)
    }

    /// When [`Arq::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.sender.poll_timeout()
    }
}

/// What one end says to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<T> {
    /// A body, and what has come of the other direction.
    Data {
        /// Number of the body.
        seq: Seq,
        /// What has come.
        ack: Ack,
        /// The body.
        body: T,
    },
    /// What has come of the other direction.
    Ack(Ack),
}

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Everything before it has.
    pub next: Seq,
    /// Bit `n` says that number `next + 1 + n` has.
    pub seen: u64,
}

/// Number of a body within its direction; wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// How far `self` lies behind `earlier`; enormous when it lies before.
    fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// How an [`Arq`] works.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Bodies in flight, 1 to [`WINDOW_MAX`].
    pub window: u32,
    /// The timer before the round trip is known.
    pub rto_initial: Duration,
    /// Shortest timer.
    pub rto_min: Duration,
    /// Longest timer, doubled ones included.
    pub rto_max: Duration,
    /// Timers that may fire in a row without anything new acknowledged before this end gives up.
    pub tries_max: u32,
    /// The first number in both directions.
    pub first: Seq,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: WINDOW_MAX,
            rto_initial: Duration::from_millis(10),
            rto_min: Duration::from_millis(1),
            rto_max: Duration::from_secs(1),
            tries_max: 12,
            first: Seq(0),
        }
    }
}
