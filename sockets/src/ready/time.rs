//! How long to wait: in all, and at a time.

use std::time::{Duration, Instant};

/// When a wait ends. Reads the clock only for waits that end at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    #[inline]
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.and_then(|timeout| sys::time::now().checked_add(timeout)))
    }

    /// What is left: `None` for ever.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(sys::time::now()))
    }
}

/// Whether a wait of this length polls first: one that is shorter than the poll would overrun.
#[inline]
pub(crate) fn worth_polling(timeout: Option<Duration>) -> bool {
    timeout.is_none_or(|timeout| timeout >= SHORT)
}

/// The shorter of a wait and a nap.
pub(crate) fn nap_within(left: Option<Duration>) -> Option<Duration> {
    Some(left.map_or(NAP, |left| left.min(NAP)))
}

/// Naps in a row. A receiver that is at work has emptied the ring within the first, and is kept waiting by a longer one; of
/// one that is not, nobody knows when it comes back.
#[derive(Debug, Default)]
pub(crate) struct Naps(u32);

impl Naps {
    /// The next, or the rest of a wait if that is shorter.
    pub(crate) fn next_within(&mut self, left: Option<Duration>) -> Duration {
        let nap = NAP_FIRST.saturating_mul(1 << self.0).min(NAP);
        self.0 = (self.0 + 1).min(NAPS_GROW);
        left.map_or(nap, |left| left.min(nap))
    }
}

/// How long one sleeps where nobody rings.
pub(crate) const NAP: Duration = Duration::from_millis(1);
/// How long one sleeps without a look where another thread of the program may have done what nobody rings for.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// How long one sleeps without a look where nobody may ever ring.
pub(crate) const LOOK_SELDOM: Duration = Duration::from_secs(1);
/// A ring lasts for 100 µs at 5 GB/s.
const NAP_FIRST: Duration = Duration::from_micros(60);
/// After so many they are no longer.
const NAPS_GROW: u32 = 5;
/// Twice the longest spin.
const SHORT: Duration = Duration::from_micros(50);
