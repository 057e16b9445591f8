//! What is known of a newborn.

use std::os::fd::RawFd;

use sys::ledger;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};

use crate::conn::{Exchanged, Way};

/// What is known of one: all in one line of the processor's.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Newborn {
    pub(super) fd: AtomicU32,
    /// The set that watches it, plus 1; 0 if none does.
    pub(super) set: AtomicU32,
    pub(super) events: AtomicU32,
    /// Whether the kernel has a call on it under way.
    pub(super) under_way: AtomicU32,
    pub(super) data: AtomicU64,
    bytes: [AtomicU32; 2],
    calls: [AtomicU32; 2],
    turns: AtomicU32,
    /// The direction of the last call, plus 1.
    last: AtomicU32,
}

impl Newborn {
    pub(super) const fn new() -> Self {
        Self {
            fd: AtomicU32::new(0),
            set: AtomicU32::new(0),
            events: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            data: AtomicU64::new(0),
            bytes: [const { AtomicU32::new(0) }; 2],
            calls: [const { AtomicU32::new(0) }; 2],
            turns: AtomicU32::new(0),
            last: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(super) fn open(&self, fd: RawFd) {
        self.fd.store(fd.cast_unsigned(), Ordering::Relaxed);
        let [sent, received] = &self.bytes;
        let [sends, receives] = &self.calls;
        for word in [&self.set, &self.under_way, sent, received, sends, receives] {
            word.store(0, Ordering::Relaxed);
        }
        self.turns.store(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
    }

    /// Counts a call that moved `bytes`; whether it is to be noted from now on, of which this call is still to be told.
    #[inline]
    pub(super) fn counts(&self, way: Way, bytes: usize) -> bool {
        let index = way as usize;
        let (Some(total), Some(calls)) = (self.bytes.get(index), self.calls.get(index)) else {
            return true;
        };
        let add = |count: &AtomicU32, more: u32| {
            let now = count.load(Ordering::Relaxed).saturating_add(more);
            count.store(now, Ordering::Relaxed);
            now
        };
        let moved = add(total, u32::try_from(bytes).unwrap_or(u32::MAX));
        let many = add(calls, 1) >= CALLS;
        let last = self.last.load(Ordering::Relaxed);
        let is_turn = last != way as u32 + 1;
        // That the other end sends no more is no request.
        let is_second = is_turn && last != 0 && matches!(way, Way::In) && bytes > 0;
        if is_second || many || moved > LITTLE {
            return true;
        }
        if is_turn {
            add(&self.turns, 1);
            self.last.store(way as u32 + 1, Ordering::Relaxed);
        }
        false
    }

    pub(super) fn exchanged(&self) -> Exchanged {
        Exchanged {
            bytes: self
                .bytes
                .each_ref()
                .map(|n| n.load(Ordering::Relaxed).into()),
            calls: self
                .calls
                .each_ref()
                .map(|n| n.load(Ordering::Relaxed).into()),
            turns: self.turns.load(Ordering::Relaxed),
            last: self.last.load(Ordering::Relaxed),
        }
    }

    /// It was one, and is closed: what others read is the sums.
    #[inline]
    pub(super) fn add_up(&self) {
        let Some(totals) = ledger::totals() else {
            return;
        };
        // A count that a signal handler loses is worth less than a locked instruction.
        let add = |total: &AtomicU64, more: u64| {
            let now = total.load(Ordering::Relaxed).wrapping_add(more);
            total.store(now, Ordering::Relaxed);
        };
        add(&totals.connections, 1);
        let pairs = [(&totals.bytes, &self.bytes), (&totals.calls, &self.calls)];
        for (totals, counts) in pairs {
            for (total, count) in totals.iter().zip(counts) {
                add(total, count.load(Ordering::Relaxed).into());
            }
        }
    }
}

/// More than that is no short answer any more: an eighth at most of what a connection exchanges before it leaves TCP, by [the rules](crate::rules::leave_time).
pub(super) const LITTLE: u32 = 8 << 10;
/// With so many calls it is noted, too.
const CALLS: u32 = 8;
