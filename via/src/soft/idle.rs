//! Sleeping on a VI that has no link.

use std::io;
use std::sync::OnceLock;
use std::time::Instant;

use super::device::{CqWaiter, Device};

/// Where threads sleep on a VI that has no link: on a completion queue's bell without VIs, made
/// when it is first needed.
pub(super) struct IdleBell<D: Device>(OnceLock<D::CqWaiter>);

impl<D: Device> IdleBell<D> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Makes sure that a wake-up from now on is not lost. Called with the VI's lock held, as
    /// [`IdleBell::wake`] is.
    pub(super) fn arm(&self, device: &D) -> io::Result<()> {
        if self.0.get().is_none() {
            let bell = device.cq_waiter()?;
            let set = self.0.set(bell);
            debug_assert!(set.is_ok(), "the VI's lock is held");
        }
        Ok(())
    }

    pub(super) fn sleep(&self, deadline: Option<Instant>) {
        if let Some(bell) = self.0.get() {
            bell.sleep(deadline, &mut Vec::new());
        }
    }

    pub(super) fn wake(&self) {
        if let Some(bell) = self.0.get() {
            bell.wake();
        }
    }
}
