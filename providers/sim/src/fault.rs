//! Faults at the n-th frame.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::tap::{Direction, Sight, Tap};

/// What is done to a frame, or to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// One bit is changed.
    Corrupt,
    /// It comes so much later. Above a device nothing overtakes it, and it goes on when its VI is
    /// next polled or waited for after that time.
    Delay(Duration),
    /// The connection ends at both ends.
    Disconnect,
    /// It is lost.
    Drop,
}

/// Planned faults, for a [`Tapped`](crate::Tapped) device. Clones share the plan.
///
/// They strike above the device: nothing below repairs them, and no checksum finds them.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
}

#[derive(Debug, Default)]
struct Plan {
    faults: Vec<Fault>,
    /// Frames so far in each direction.
    seen: [u64; 2],
}

#[derive(Debug)]
struct Fault {
    direction: Direction,
    nth: u64,
    act: Act,
}

impl Faults {
    /// No fault yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans `act` for the frame in `direction` after the next `nth`, over all connections.
    pub fn plan(&self, direction: Direction, nth: u64, act: Act) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = plan.seen[direction as usize] + nth;
        plan.faults.push(Fault {
            direction,
            nth,
            act,
        });
    }

    /// How many planned faults have not struck yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.faults.len()
    }
}

impl Tap for Faults {
    fn frame(&self, sight: &Sight<'_>) -> Option<Act> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = &mut plan.seen[sight.direction as usize];
        let nth = *seen;
        *seen += 1;
        let due = |fault: &Fault| fault.direction == sight.direction && fault.nth == nth;
        let index = plan.faults.iter().position(due)?;
        Some(plan.faults.swap_remove(index).act)
    }
}
