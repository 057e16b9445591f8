//! A mapping that several have.

use crate::mem::Parted;
use crate::sync::{Ordering, mapped::AtomicU32};

/// A mapping that lasts as long as any of its leases. Nothing allocates or frees, for that may happen in a signal handler that
/// interrupted the allocator: counts are places in a table.
pub(crate) struct Lease {
    /// Taken by the last lease only, which has it to itself then.
    mapping: std::mem::ManuallyDrop<Parted>,
    /// How many leases there are; `None` if there was no place, and this is the only one.
    count: Option<&'static AtomicU32>,
}

impl Lease {
    pub(crate) fn new(mapping: Parted) -> Self {
        let first = NEXT.fetch_add(1, Ordering::Relaxed) as usize;
        let count = (first..first + TRIES).find_map(|at| {
            let count = COUNTS.get(at % PLACES)?;
            count
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .ok()
                .map(|_| count)
        });
        Self {
            mapping: std::mem::ManuallyDrop::new(mapping),
            count,
        }
    }

    /// Another lease of the same; `None` if there was no place to count them.
    pub(crate) fn share(&self) -> Option<Self> {
        let count = self.count?;
        // This one keeps the count above 0; who has fewer than 2^32 of them cannot make it wrap.
        count.fetch_add(1, Ordering::Relaxed);
        Some(Self {
            mapping: std::mem::ManuallyDrop::new(self.mapping.alias()),
            count: Some(count),
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let last = match self.count {
            // Release for what was done with the mapping; acquire, by the last, of what the others did. Nobody has the place before it is 0.
            Some(count) => count.fetch_sub(1, Ordering::AcqRel) == 1,
            None => true,
        };
        if last {
            // SAFETY: `drop` runs once, and the aliases that other leases had are forgotten, not dropped.
            unsafe { std::mem::ManuallyDrop::drop(&mut self.mapping) };
        }
    }
}

const PLACES: usize = 1 << 16;
const TRIES: usize = 64;
/// Pages that were never used cost nothing.
static COUNTS: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];
static NEXT: AtomicU32 = AtomicU32::new(0);

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::mem::memfd;

    fn parted() -> Parted {
        let memory = memfd::create_as("lease", 4 * 4096).expect("memfd");
        Parted::shared(memory.as_fd(), 4 * 4096).expect("memory")
    }

    fn is_mapped(at: *mut u8) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
        let start = format!("{:x}-", at.addr());
        maps.lines()
            .any(|line| line.starts_with(&start) && line.contains(" rw-s "))
    }

    #[test]
    fn the_last_lease_unmaps() {
        let lease = Lease::new(parted());
        let start = lease.mapping.first();
        let other = lease.share().expect("a place");
        let third = other.share().expect("the same place");
        drop(lease);
        drop(third);
        assert!(is_mapped(start));
        drop(other);
        assert!(!is_mapped(start));
    }

    #[test]
    fn without_a_place_there_is_one_lease() {
        let lease = Lease {
            mapping: std::mem::ManuallyDrop::new(parted()),
            count: None,
        };
        let start = lease.mapping.first();
        assert!(lease.share().is_none());
        drop(lease);
        assert!(!is_mapped(start));
    }
}
