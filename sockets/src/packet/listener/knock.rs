//! A listener that asks for itself, to learn who listens there.

use std::time::{Duration, Instant};

use via::ViConfig;

use super::Listener;

impl Listener {
    /// Whether somebody listens there who has no claim to it, or whose NIC knows no claims. A listener may be away for a moment.
    pub(super) fn is_taken(&self) -> bool {
        (0..KNOCKS).any(|_| {
            std::thread::yield_now();
            matches!(self.knock(), Some(via::Error::Reject | via::Error::Timeout))
        })
    }

    /// Whether a thread of ours waits: it refuses a request that comes from this address.
    pub(super) fn is_reached(&self) -> bool {
        let deadline = Instant::now() + START_TIME;
        while Instant::now() < deadline && !self.lock().failed {
            match self.knock() {
                Some(via::Error::NoMatch) => std::thread::yield_now(),
                Some(via::Error::Reject) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Ends the waits of a listener that is closed, so that nobody finds it there any more. Each request of ours ends that of one thread,
    /// but one that was about to begin when it was asked for begins yet. What hinders us for long (descriptors have run out) is not waited for.
    pub(super) fn call_back(&self) {
        let deadline = Instant::now() + CLOSE_TIME;
        loop {
            let ticket = self.changed.ticket();
            let now = Instant::now();
            if self.lock().receiving == 0 || self.adapter.is_closed() || now >= deadline {
                return;
            }
            match self.knock_for(deadline - now) {
                Some(via::Error::Reject) => {}
                _ => {
                    self.changed.wait(ticket, Some(now + KNOCK_AGAIN));
                }
            }
        }
    }

    /// Asks ourselves; what the answer was.
    pub(super) fn knock(&self) -> Option<via::Error> {
        self.knock_for(CLOSE_TIME)
    }

    fn knock_for(&self, time: Duration) -> Option<via::Error> {
        let config = ViConfig::new(&self.adapter.tag);
        let asker = self.adapter.nic.create_vi(&config).ok()?;
        let from = self.adapter.nic.address(OURSELVES).ok()?;
        asker.connect(&from, &self.at, Some(time)).err()
    }
}

/// From where we ask ourselves.
pub(super) const OURSELVES: &[u8] = b"SOVI?";
const START_TIME: Duration = Duration::from_secs(10);
/// How often one asks whether a place is taken.
const KNOCKS: usize = 3;
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// Before one that nobody heard is tried again.
const KNOCK_AGAIN: Duration = Duration::from_millis(1);
