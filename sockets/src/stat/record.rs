//! A connection's place in the ledger, as its process writes it and others read it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sys::ledger::{HISTORY, Record};
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;
use sys::time;

use super::{Change, Line, Nic, Path};
use crate::conn::Origin;
use crate::reason::Reason;
use crate::rules::Upgrade;
use crate::rules::text::Decision;

/// A new connection has this record; its end in this process comes first.
pub(crate) fn begin(record: &Record, fd: u32, origin: Origin, ends: Option<[SocketAddr; 2]>) {
    record.begin();
    record.fd.store(fd, Ordering::Relaxed);
    record.nic.store(0, Ordering::Relaxed);
    record.flags.store(origin as u32, Ordering::Relaxed);
    record.changes.store(0, Ordering::Relaxed);
    match ends {
        Some(ends) => name(record, ends),
        // The addresses of the one before it say nothing without ports.
        None => record.ports.store(0, Ordering::Release),
    }
}

/// These are its ends, the one in this process first.
pub(crate) fn name(record: &Record, [local, peer]: [SocketAddr; 2]) {
    put(&record.local, local.ip());
    put(&record.peer, peer.ip());
    let ports = u32::from(local.port()) << 16 | u32::from(peer.port());
    // Pairs with the acquire in `addresses`: who sees the ports sees the addresses.
    record.ports.store(ports, Ordering::Release);
}

/// Whether its ends are shown.
pub(crate) fn is_named(record: &Record) -> bool {
    record.ports.load(Ordering::Relaxed) != 0
}

/// A rule has said what is wanted of it.
pub(crate) fn mark(record: &Record, upgrade: Upgrade, rule: u16) {
    let origin = record.flags.load(Ordering::Relaxed) & ORIGIN;
    let mark = (upgrade as u32) << 8 | u32::from(rule) << 16;
    record.flags.store(origin | mark, Ordering::Relaxed);
}

/// This end and the other.
pub(crate) fn addresses(record: &Record) -> (SocketAddr, SocketAddr) {
    // Pairs with the release in `name`.
    let ports = record.ports.load(Ordering::Acquire);
    if ports == 0 {
        return (UNKNOWN, UNKNOWN);
    }
    (
        SocketAddr::new(get(&record.local), (ports >> 16) as u16),
        SocketAddr::new(get(&record.peer), (ports & 0xffff) as u16),
    )
}

/// It takes another path.
pub(crate) fn change(record: &Record, state: u32, reason: u32) {
    // Short connections would notice a finer clock.
    let now_ms = time::coarse().as_millis() as u64;
    record.reason.store(reason, Ordering::Relaxed);
    record
        .since
        .store((now_ms / 1000) as u32, Ordering::Relaxed);
    record.set_state(state);
    let way = u64::from(state & 0xf) << 16 | u64::from(reason & 0xffff);
    let changes = record.changes.load(Ordering::Relaxed);
    let place = |n: u32| record.history.get(n as usize % HISTORY);
    let last = changes.checked_sub(1).and_then(place);
    if last.is_some_and(|last| last.load(Ordering::Relaxed) & WAY == way) {
        return;
    }
    if let Some(next) = place(changes) {
        next.store(now_ms << WAY_BITS | way, Ordering::Relaxed);
        record
            .changes
            .store(changes.wrapping_add(1), Ordering::Release);
    }
}

/// It is gone.
pub(crate) fn end(record: &Record) {
    record.end(sys::ledger::totals());
}

/// The last ways, as far as they make sense. The writer may go on meanwhile.
fn history(record: &Record, now_ms: u64) -> Vec<Change> {
    let changes = record.changes.load(Ordering::Acquire);
    let nic = Nic(record.nic.load(Ordering::Relaxed));
    let first = changes.saturating_sub(HISTORY as u32);
    (first..changes)
        .filter_map(|n| record.history.get(n as usize % HISTORY))
        .map(|change| change.load(Ordering::Relaxed))
        .map(|change| Change {
            ago_ms: now_ms.saturating_sub(change >> WAY_BITS),
            path: path((change >> 16 & 0xf) as u32, (change & 0xffff) as u32, nic),
        })
        .collect()
}

fn path(state: u32, reason: u32, nic: Nic) -> Path {
    match (state, reason) {
        (PACKET, _) => Path::Packet(nic),
        (EXTENDED, _) => Path::Extended(nic),
        (MAPPED, 0) => Path::Ring,
        (MEETING, _) => Path::Tcp(Reason::Meeting),
        (_, reason) => Path::Tcp(Reason::from_number(reason as u16)),
    }
}

pub(super) fn now_ms() -> u64 {
    time::monotonic_ns() / 1_000_000
}

pub(super) fn line(record: &Record, now_ms: u64) -> Line {
    let now = (now_ms / 1000) as u32;
    let (local, peer) = addresses(record);
    let flags = record.flags.load(Ordering::Relaxed);
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let reason = record.reason.load(Ordering::Relaxed);
    Line {
        fd: Some(record.fd.load(Ordering::Relaxed)).filter(|&fd| fd != NO_NUMBER),
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
        path: path(
            record.state.load(Ordering::Relaxed),
            reason,
            Nic(record.nic.load(Ordering::Relaxed)),
        ),
        history: history(record, now_ms),
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

/// In an entry of `Record::history`: the state and the reason, below milliseconds of the monotonic clock.
const WAY: u64 = (1 << WAY_BITS) - 1;
const WAY_BITS: u32 = 20;
/// In `Record::flags`; above it an [`Upgrade`], and in the upper half the number of a rule.
const ORIGIN: u32 = 0xff;
const MEETING: u32 = 2;
pub(super) const MAPPED: u32 = 3;
/// Of connections that no [`Conn`](crate::conn::Conn) is for.
pub(super) const PACKET: u32 = 8;
pub(super) const EXTENDED: u32 = 9;
/// In `Record::fd`, of a connection that a library holds without a descriptor.
pub(super) const NO_NUMBER: u32 = u32::MAX;
pub(super) const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
