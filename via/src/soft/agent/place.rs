//! How many agents a process may have.

use sys::sync::{AtomicUsize, Ordering};

/// One of the agents, and so of the NIC handles, that a process may have of one kind.
pub(super) struct Place(&'static AtomicUsize);

impl Place {
    pub(super) fn take(open: &'static AtomicUsize) -> Option<Self> {
        let place = Self(open);
        (open.fetch_add(1, Ordering::Relaxed) < HANDLES_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const HANDLES_MAX: usize = 64;
