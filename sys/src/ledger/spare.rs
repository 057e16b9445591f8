//! Records for connections that have no place in the table of descriptors.

use std::ops::Deref;

use super::{LEDGER, RECORDS, Record, SPARE, record};
use crate::fork::generation;
use crate::sync::{Ordering, mapped::AtomicU64};

/// A record of this process for a connection that has no place of its own, until it is dropped.
#[derive(Debug)]
pub struct Spare {
    record: &'static Record,
    place: usize,
    home: u32,
}

impl Spare {
    /// One that nobody has; `None` if there is none, or no ledger.
    ///
    /// Takes no lock: a forked child could find it taken by a thread that it does not have.
    pub fn take() -> Option<Self> {
        let place = free()?;
        let record = record(RECORDS + place);
        Some(Self {
            record,
            place,
            home: generation(),
        })
    }

    /// Whether this is the process that took it. Another must not write.
    pub fn is_home(&self) -> bool {
        generation() == self.home
    }
}

impl Deref for Spare {
    type Target = Record;

    fn deref(&self) -> &Record {
        self.record
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some((word, bit)) = TAKEN.get(self.place / 64).zip(Some(1 << (self.place % 64))) {
            // Release: what was counted is told before the next counts.
            word.fetch_and(!bit, Ordering::Release);
        }
    }
}

/// Takes a place.
fn free() -> Option<usize> {
    // Else each would be a record that nobody reads, and is never given back.
    if LEDGER.get().is_some_and(Option::is_none) {
        return None;
    }
    TAKEN.iter().enumerate().find_map(|(index, word)| {
        let mut seen = word.load(Ordering::Relaxed);
        while seen != u64::MAX {
            let bit = seen.trailing_ones();
            // Acquire pairs with the release of whoever had it.
            seen = word.fetch_or(1 << bit, Ordering::Acquire);
            if seen & 1 << bit == 0 {
                return Some(index * 64 + bit as usize);
            }
        }
        None
    })
}

static TAKEN: [AtomicU64; SPARE / 64] = [const { AtomicU64::new(0) }; SPARE / 64];
