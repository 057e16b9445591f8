//! What happens, to whom, and in which order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use via::soft::Goodbye;

use crate::meet::{Answer, RequestNo};

/// A host of the fabric, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostNo(pub(crate) u16);

impl HostNo {
    pub(crate) fn address(self) -> [u8; 6] {
        let [high, low] = self.0.to_be_bytes();
        [0x02, b's', b'i', b'm', high, low]
    }

    pub(crate) fn of_address(address: [u8; 6]) -> Option<Self> {
        let no = Self(u16::from_be_bytes([address[4], address[5]]));
        (no.address() == address).then_some(no)
    }
}

impl fmt::Display for HostNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host{}", self.0)
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EndKey {
    pub(crate) conn: u64,
    /// 0 or 1.
    pub(crate) side: usize,
}

impl EndKey {
    pub(crate) fn other(self) -> Self {
        Self {
            side: 1 - self.side,
            ..self
        }
    }
}

/// What happens at a certain time.
#[derive(Debug)]
pub(crate) enum Event {
    /// A packet arrives; a `copy` if it did before.
    Arrives {
        to: EndKey,
        bytes: Vec<u8>,
        copy: bool,
    },
    /// A datagram that would have arrived by now has been lost.
    Spent { of: EndKey },
    /// A retransmission timer fires, unless it has been put off.
    Timer { of: EndKey },
    /// Somebody has to see whether the end is looked after.
    Tend { of: EndKey },
    /// The connection is over for this end.
    Ended { to: EndKey, why: Goodbye },
    /// A connection request arrives.
    Request(RequestNo),
    /// A peer's request arrives.
    Offer(RequestNo),
    /// The answer to a request arrives.
    Answer(RequestNo, Answer),
}

/// What is going to happen, by time and then by when it was decided.
#[derive(Default)]
pub(crate) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    made: u64,
}

#[derive(Debug)]
struct Entry {
    due: Duration,
    no: u64,
    event: Event,
}

impl Agenda {
    pub(crate) fn at(&mut self, due: Duration, event: Event) {
        self.made += 1;
        let no = self.made;
        self.entries.push(Reverse(Entry { due, no, event }));
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.entries.peek().map(|Reverse(entry)| entry.due)
    }

    pub(crate) fn next(&mut self) -> Option<(Duration, Event)> {
        let Reverse(entry) = self.entries.pop()?;
        Some((entry.due, entry.event))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.no == other.no
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.no).cmp(&(other.due, other.no))
    }
}
