//! What a connection costs by when it leaves TCP, as measured on two CPUs of a virtual machine (EPYC, Zen 4). Other machines differ in the figures, and less in what they
//! are to each other.

use super::Level;

/// The time that a connection of so many turns and bytes takes if it leaves TCP at `level`: microseconds.
pub(super) fn cost_us(level: Level, turns: u32, bytes: u64) -> u64 {
    // Beyond, no level is the better one by more than before.
    let turns = u64::from(turns.min(1 << 20));
    let bytes = bytes.min(1 << 30);
    let tcp = turns * TCP_TURN_US + bytes / TCP_BYTES_PER_US;
    let early = u64::from(level.turns);
    if turns < early && bytes < level.bytes {
        return tcp;
    }
    // It comes to its turns, or to its bytes, whichever is first, in proportion.
    let part = |most: u64, of: u64| tcp * most.min(of) / of.max(1);
    let by_turns = if turns < early {
        tcp
    } else {
        part(early, turns)
    };
    let by_bytes = if bytes < level.bytes {
        tcp
    } else {
        part(level.bytes, bytes)
    };
    let before = by_turns.min(by_bytes);
    let ring = turns * RING_TURN_US + bytes / RING_BYTES_PER_US;
    let rest = tcp - before;
    let moved = bytes * rest / tcp.max(1);
    before + LEAVE_US + moved.min(FRESH_BYTES) / FRESH_BYTES_PER_US + ring * rest / tcp.max(1)
}

/// Of both ends, with what comes after it until they have found each other's pace.
const LEAVE_US: u64 = 300;
/// Half of 64 B there and back.
const TCP_TURN_US: u64 = 7;
const RING_TURN_US: u64 = 1;
/// In writes of 32 kB.
const TCP_BYTES_PER_US: u64 = 2_500;
const RING_BYTES_PER_US: u64 = 12_000;
/// Memory that a ring uses for the first time, in which a stream [stays](crate::io) for long, and gives back at the end.
const FRESH_BYTES: u64 = 256 << 10;
const FRESH_BYTES_PER_US: u64 = 1_000;
