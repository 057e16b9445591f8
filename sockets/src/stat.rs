//! What a process says of its connections, and what others read of that.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use sys::ledger::{Reader, Record};
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;
use sys::tcp;
use sys::time;

use crate::conn::Origin;
use crate::reason::Reason;
use crate::rules::Upgrade;
use crate::rules::text::Decision;

/// A connection of some process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// One of its descriptors there.
    pub fd: u32,
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
    /// Sleeps in the kernel.
    pub sleeps: u64,
    /// Doorbells rung.
    pub bells: u64,
    /// Seconds since it took this path.
    pub age: u32,
}

/// Which way the bytes of a connection go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Through shared memory: `shm/ring`.
    Ring,
    /// Over TCP, for this reason.
    Tcp(Reason),
}

/// The connections of the process `pid`; `None` if it is not under sovia, or has had none.
///
/// # Errors
/// `PermissionDenied` for a process that one may not look at, `NotFound` if there is none, `InvalidData` for another version's.
pub fn connections(pid: u32) -> io::Result<Option<Vec<Line>>> {
    let Some(reader) = Reader::open(pid)? else {
        return Ok(None);
    };
    let now = time::seconds();
    let mut lines = Vec::new();
    reader.for_each(|_, record| lines.push(line(record, now)));
    Ok(Some(lines))
}

/// A new connection has this record.
pub(crate) fn begin(record: &Record, fd: BorrowedFd<'_>, origin: Origin) {
    for count in record
        .bytes
        .iter()
        .chain(&record.calls)
        .chain([&record.sleeps, &record.bells])
    {
        count.store(0, Ordering::Relaxed);
    }
    record
        .fd
        .store(fd.as_raw_fd().cast_unsigned(), Ordering::Relaxed);
    record.flags.store(origin as u32, Ordering::Relaxed);
    if let Ok(identity) = tcp::identity(fd) {
        put(&record.local, identity.local.ip());
        put(&record.peer, identity.peer.ip());
        let ports = u32::from(identity.local.port()) << 16 | u32::from(identity.peer.port());
        record.ports.store(ports, Ordering::Relaxed);
    }
}

/// A rule has said what is wanted of it.
pub(crate) fn mark(record: &Record, upgrade: Upgrade, rule: u16) {
    let origin = record.flags.load(Ordering::Relaxed) & ORIGIN;
    let mark = (upgrade as u32) << 8 | u32::from(rule) << 16;
    record.flags.store(origin | mark, Ordering::Relaxed);
}

/// This end and the other.
pub(crate) fn addresses(record: &Record) -> (SocketAddr, SocketAddr) {
    let ports = record.ports.load(Ordering::Relaxed);
    (
        SocketAddr::new(get(&record.local), (ports >> 16) as u16),
        SocketAddr::new(get(&record.peer), (ports & 0xffff) as u16),
    )
}

/// It takes another path.
pub(crate) fn change(record: &Record, state: u32, reason: u32) {
    record.reason.store(reason, Ordering::Relaxed);
    record.since.store(time::seconds(), Ordering::Relaxed);
    record.state.store(state, Ordering::Release);
}

/// It is gone.
pub(crate) fn end(record: &Record) {
    record.state.store(0, Ordering::Release);
}

fn line(record: &Record, now: u32) -> Line {
    let (local, peer) = addresses(record);
    let flags = record.flags.load(Ordering::Relaxed);
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let reason = record.reason.load(Ordering::Relaxed);
    Line {
        fd: record.fd.load(Ordering::Relaxed),
        local,
        peer,
        rule: match (flags >> 16) as u16 {
            0 => Decision::default(),
            number => Decision {
                upgrade: match flags >> 8 & 0xff {
                    0 => Upgrade::Never,
                    1 => Upgrade::WhenPossible,
                    _ => Upgrade::Always,
                },
                number,
            },
        },
        origin: match flags & ORIGIN {
            0 => Origin::Connected,
            1 => Origin::Accepted,
            _ => Origin::Inherited,
        },
        path: match (record.state.load(Ordering::Relaxed), reason) {
            (MAPPED, 0) => Path::Ring,
            (MEETING, _) => Path::Tcp(Reason::Meeting),
            (_, reason) => Path::Tcp(Reason::from_number(reason as u16)),
        },
        bytes: record.bytes.each_ref().map(load),
        calls: record.calls.each_ref().map(load),
        sleeps: load(&record.sleeps),
        bells: load(&record.bells),
        age: now.saturating_sub(record.since.load(Ordering::Relaxed)),
    }
}

fn put(words: &[AtomicU64; 2], address: IpAddr) {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let bits = address.to_bits();
    let [high, low] = words;
    high.store((bits >> 64) as u64, Ordering::Relaxed);
    low.store(bits as u64, Ordering::Relaxed);
}

fn get(words: &[AtomicU64; 2]) -> IpAddr {
    let [high, low] = words
        .each_ref()
        .map(|word| u128::from(word.load(Ordering::Relaxed)));
    IpAddr::V6(Ipv6Addr::from_bits(high << 64 | low)).to_canonical()
}

/// In `Record::flags`; above it an [`Upgrade`], and in the upper half the number of a rule.
const ORIGIN: u32 = 0xff;
const MEETING: u32 = 2;
const MAPPED: u32 = 3;
