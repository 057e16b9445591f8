//! Registrations of the program's memory, kept for the next time.
//!
//! Registering pins pages and tells the NIC about them; a program sends from the same few buffers again and again. So a registration stays when the send
//! is over. It must not outlive the memory, and whoever unmaps can say so ([`Cache::forget`]); a program's `munmap`, or that inside `free`, nobody sees. For a NIC that is software that is harmless: an
//! address means what it means when the bytes are copied, and it is never more than the pages of this process. A NIC that is hardware has pinned
//! the pages, and would send what was there before: over such a NIC nothing is kept unless every unmapping is seen ([`Cache::for_hardware`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use via::{Access, Nic, Ptag, Region};

use super::adapter::Borrow;

/// Registrations by address, the least recently used given up first.
pub struct Cache {
    borrow: Borrow,
    /// Nothing is kept.
    forgetful: bool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By the address where it begins; none overlaps another.
    regions: BTreeMap<u64, Entry>,
    clock: u64,
    bytes: u64,
}

struct Entry {
    region: Arc<Region>,
    used: u64,
}

impl Cache {
    /// An empty cache over that way to the program's memory.
    #[must_use]
    pub fn new(borrow: Borrow) -> Self {
        Self {
            borrow,
            forgetful: false,
            inner: Mutex::default(),
        }
    }

    /// A cache that keeps nothing: for a NIC that pins pages.
    #[must_use]
    pub fn for_hardware(borrow: Borrow) -> Self {
        Self {
            forgetful: true,
            ..Self::new(borrow)
        }
    }

    /// A registration that holds all of `addr` to `addr + len`; `None` when that memory cannot be registered.
    pub fn find(&self, nic: &Nic, tag: &Ptag, addr: u64, len: u64) -> Option<Arc<Region>> {
        let end = addr.checked_add(len)?;
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let now = inner.clock;
        if let Some((_, entry)) = inner.regions.range_mut(..=addr).next_back()
            && entry.end() >= end
        {
            entry.used = now;
            return Some(Arc::clone(&entry.region));
        }
        // Whole pages, so that the next buffer beside it is found too.
        let first = addr & !(PAGE - 1);
        let past = end.checked_next_multiple_of(PAGE)?;
        inner.forget(first, past);
        let memory = (self.borrow)(
            usize::try_from(first).ok()?,
            usize::try_from(past - first).ok()?,
        )?;
        let region = Arc::new(nic.register(memory, tag, Access::Local).ok()?);
        if self.forgetful {
            return Some(region);
        }
        inner.bytes += past - first;
        inner.regions.insert(
            first,
            Entry {
                region: Arc::clone(&region),
                used: now,
            },
        );
        inner.shrink();
        Some(region)
    }

    /// Gives up whatever holds a byte of this memory. A send that is under way keeps its registration until it is over.
    pub fn forget(&self, addr: u64, len: u64) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.forget(addr, addr.saturating_add(len));
    }

    /// How many registrations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .regions
            .len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    fn forget(&mut self, first: u64, past: u64) {
        loop {
            let before = self.regions.range(..past).next_back();
            let Some((&start, _)) = before.filter(|(_, entry)| entry.end() > first) else {
                return;
            };
            self.remove(start);
        }
    }

    fn shrink(&mut self) {
        while self.regions.len() > REGIONS_MAX || (self.bytes > BYTES_MAX && self.regions.len() > 1)
        {
            let oldest = self.regions.iter().min_by_key(|(_, entry)| entry.used);
            let Some((&start, _)) = oldest else { return };
            self.remove(start);
        }
    }

    fn remove(&mut self, start: u64) {
        if let Some(entry) = self.regions.remove(&start) {
            self.bytes -= entry.region.len() as u64;
        }
    }
}

impl Entry {
    fn end(&self) -> u64 {
        self.region.addr() + self.region.len() as u64
    }
}

const PAGE: u64 = 4096;
const REGIONS_MAX: usize = 256;
const BYTES_MAX: u64 = 256 << 20;
