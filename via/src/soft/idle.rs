//! Sleeping on a VI that has no link.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::link::Device;

/// Where threads sleep on a VI that has no link.
#[derive(Default)]
pub(super) struct IdleBell {
    word: Mutex<u32>,
    rung: Condvar,
}

impl IdleBell {
    pub(super) fn ticket(&self) -> u32 {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sleep<D: Device>(&self, ticket: u32, deadline: Option<Instant>, device: &D) {
        let word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        if *word != ticket {
            return;
        }
        let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
            deadline.saturating_duration_since(device.now())
        });
        // Woken, timed out or neither: the caller looks again.
        drop(self.rung.wait_timeout(word, left));
    }

    pub(super) fn wake(&self) {
        let mut word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        *word = word.wrapping_add(1);
        self.rung.notify_all();
    }
}
