//! How long a receive waits in all.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use sys::time::now;

use crate::conn::Way;
use crate::haste;

/// Of one call: `SO_RCVTIMEO` counts from its first sleep on, however often it wakes.
#[derive(Default)]
pub(super) struct Patience {
    since: Option<Instant>,
    /// Once it was asked for.
    until: Option<Option<Instant>>,
}

impl Patience {
    /// Before a sleep that the kernel ends in time by itself; false if it is not the first, whose time is not all of it.
    pub(super) fn begins(&mut self) -> bool {
        let first = self.since.is_none();
        if first {
            self.since = Some(now());
        }
        first
    }

    /// The end of it; `None` for ever.
    #[cold]
    pub(super) fn until(&mut self, fd: BorrowedFd<'_>) -> Option<Instant> {
        let since = *self.since.get_or_insert_with(now);
        *self.until.get_or_insert_with(|| {
            let limit_ms = haste::limit_ms(fd, Way::In)?;
            since.checked_add(Duration::from_millis(limit_ms))
        })
    }
}
