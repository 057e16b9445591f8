//! What a process says of its connections, and what others read of that.

use std::fmt::{self, Write};
use std::io;
use std::net::SocketAddr;

use sys::ledger::Reader;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;
use sys::tcp::Sockets;

use crate::conn::Origin;
use crate::reason::Reason;
use crate::rules::text::Decision;

pub(crate) use record::{addresses, begin, change, end, is_named, mark, name};
pub(crate) use tally::{Kind, Tally};

use record::{UNKNOWN, line, now_ms};

mod record;
mod tally;

/// A connection of some process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// One of its descriptors there, if it has one.
    pub fd: Option<u32>,
    /// The end in that process.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// How the process came by it.
    pub origin: Origin,
    /// What the user's rules say of it; rule 0 if they say nothing, or were not asked.
    pub rule: Decision,
    /// Which way the bytes go.
    pub path: Path,
    /// Bytes sent and received.
    pub bytes: [u64; 2],
    /// Calls that sent and received.
    pub calls: [u64; 2],
    /// Sleeps in the kernel, in a call on it, or among others and ended by it.
    pub sleeps: u64,
    /// Doorbells rung.
    pub bells: u64,
    /// Seconds since it took this path.
    pub age: u32,
    /// The last ways that it took, the oldest first.
    pub history: Vec<Change>,
}

/// A connection took another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Milliseconds ago.
    pub ago_ms: u64,
    /// Which.
    pub path: Path,
}

/// Sums of a process over its connections that are no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// How many there were.
    pub connections: u64,
    /// Bytes sent and received.
    pub bytes: [u64; 2],
    /// Calls that sent and received.
    pub calls: [u64; 2],
    /// Sleeps in the kernel.
    pub sleeps: u64,
    /// Doorbells rung.
    pub bells: u64,
}

/// What a process says, to be read more than once.
///
/// Whoever wrote it may have meant harm: every value is taken for what it may be, and what has no meaning is left out.
#[derive(Debug)]
pub struct Ledger(Reader);

impl Ledger {
    /// Of the process `pid`; `None` if it is not under sovia, or has had no connection.
    ///
    /// # Errors
    /// `PermissionDenied` for a process that one may not look at, `NotFound` if there is none, `InvalidData` for another version's.
    pub fn open(pid: u32) -> io::Result<Option<Self>> {
        Ok(Reader::open(pid)?.map(Self))
    }

    /// Whether the process still has it. If not, there may be another.
    pub fn is_current(&self) -> bool {
        self.0.is_current()
    }

    /// The connections that there are.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = self.read();
        self.find_ends(&mut lines);
        lines
    }

    /// The connections that there are, and sums over those that there are no more: each connection is in one of them.
    ///
    /// If connections of the process end all the time it is in both, or in none, for what it is worth: then the answer has `false`.
    pub fn look(&self) -> (Vec<Line>, Closed, bool) {
        let read = || (self.read(), self.closed());
        let ((mut lines, closed), is_whole) = self.0.totals().look(TRIES, read);
        self.find_ends(&mut lines);
        (lines, closed, is_whole)
    }

    fn read(&self) -> Vec<Line> {
        let now_ms = now_ms();
        let mut lines = Vec::new();
        self.0
            .for_each(|_, record| lines.push(line(record, now_ms)));
        lines
    }

    /// A process does not ask for the addresses of connections that may be short: they are found by their descriptors.
    fn find_ends(&self, lines: &mut [Line]) {
        let pid = self.0.pid();
        let mut sockets = None;
        for line in lines.iter_mut().filter(|line| line.peer == UNKNOWN) {
            let Some(fd) = line.fd else {
                continue;
            };
            let sockets = sockets.get_or_insert_with(|| Sockets::around(pid));
            if let Some([local, peer]) = sockets.of(pid, fd) {
                (line.local, line.peer) = (local, peer);
            }
        }
    }

    /// Sums over those that there are no more.
    pub fn closed(&self) -> Closed {
        let totals = self.0.totals();
        // Who sees what a connection has added sees that it has begun to end.
        let load = |count: &AtomicU64| count.load(Ordering::Acquire);
        Closed {
            connections: load(&totals.connections),
            bytes: totals.bytes.each_ref().map(load),
            calls: totals.calls.each_ref().map(load),
            sleeps: load(&totals.sleeps),
            bells: load(&totals.bells),
        }
    }
}

/// Which way the bytes of a connection go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Through shared memory: `shm/ring`.
    Ring,
    /// Over TCP, for this reason.
    Tcp(Reason),
    /// As SOVIA's packets over this VI NIC (`SOCK_VIA`): `shm/packet`.
    Packet(Nic),
    /// An extended socket over this VI NIC: `iwarp/extended`.
    Extended(Nic),
}

/// The name of a VI NIC, as far as a record has room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic(u64);

impl Nic {
    /// With this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; NAME_MAX];
        for (to, from) in bytes.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        Self(u64::from_le_bytes(bytes))
    }
}

/// Whoever wrote it may have meant harm, and what is shown may be a terminal.
impl fmt::Display for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.to_le_bytes();
        for byte in bytes.into_iter().take_while(|&byte| byte != 0) {
            let shown = byte.is_ascii_alphanumeric() || byte == b'-';
            f.write_char(if shown { byte.into() } else { '?' })?;
        }
        Ok(())
    }
}

/// The connections of the process `pid`; `None` if it is not under sovia, or has had none.
///
/// # Errors
/// `PermissionDenied` for a process that one may not look at, `NotFound` if there is none, `InvalidData` for another version's.
pub fn connections(pid: u32) -> io::Result<Option<Vec<Line>>> {
    Ok(Ledger::open(pid)?.map(|ledger| ledger.lines()))
}

/// How often a look is repeated in which a connection ended.
const TRIES: u32 = 8;
const NAME_MAX: usize = 8;
#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sys::ledger::{HISTORY, Record};

    use super::record::MAPPED;
    use super::*;

    proptest! {
        /// Whoever wrote the memory may have meant harm.
        #[test]
        fn any_memory_is_read(words in proptest::collection::vec(any::<u64>(), 32), now_ms: u64) {
            let record = <Record>::default();
            let mut words = words.into_iter();
            let mut next = || words.next().unwrap_or(7);
            for short in [
                &record.state, &record.reason, &record.fd, &record.flags, &record.ports, &record.since,
                &record.changes,
            ] {
                short.store(next() as u32, Ordering::Relaxed);
            }
            for long in record.local.iter().chain(&record.peer).chain(&record.history).chain([&record.nic]) {
                long.store(next(), Ordering::Relaxed);
            }
            let line = line(&record, now_ms);
            prop_assert!(line.history.len() <= HISTORY);
        }
    }

    /// Whoever scrapes would take sums that go down for those of another process.
    #[test]
    fn a_connection_that_ends_is_in_the_sums_or_among_the_lines() {
        // The first records are for connections of other tests. Those between stretch a look.
        let records: Vec<_> = (1000..1200).map(sys::ledger::record).collect();
        records.iter().for_each(|record| change(record, MAPPED, 0));
        let last = records[records.len() - 1];
        let ledger = Ledger::open(std::process::id()).expect("our own");
        let ledger = ledger.expect("there are records");
        let stop = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    last.bytes[0].store(0, Ordering::Relaxed);
                    change(last, MAPPED, 0);
                    last.bytes[0].store(1 << 20, Ordering::Relaxed);
                    end(last);
                    (0..20_000).for_each(|_| std::hint::spin_loop());
                }
            });
            let (mut least, mut whole) = (0, 0);
            while whole < 200 {
                let (lines, closed, is_whole) = ledger.look();
                if !is_whole {
                    continue;
                }
                whole += 1;
                let open: u64 = lines.iter().map(|line| line.bytes[0]).sum();
                let sum = open + closed.bytes[0];
                assert!(sum >= least, "{sum} after {least}");
                least = sum;
            }
            stop.store(1, Ordering::Relaxed);
        });
        records.iter().for_each(|record| end(record));
    }

    #[test]
    fn a_nic_is_called_what_harms_no_terminal() {
        assert_eq!(Nic::new("iwarp").to_string(), "iwarp");
        assert_eq!(Nic::new("\x1b[2Jé").to_string(), "??2J??");
        assert_eq!(Nic::new("a-long-name").to_string(), "a-long-n");
    }

    #[test]
    fn the_last_ways_are_kept_in_order() {
        let record = <Record>::default();
        for number in 1..=20 {
            change(&record, 4, number);
            // The same again is no change.
            change(&record, 4, number);
        }
        let ways: Vec<_> = line(&record, now_ms())
            .history
            .iter()
            .map(|change| change.path)
            .collect();
        let last = (5..=20).map(|number| Path::Tcp(Reason::from_number(number)));
        assert_eq!(ways, last.collect::<Vec<_>>());
    }
}
