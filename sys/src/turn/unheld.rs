//! In the place of the list of a thread's turns, under loom, which knows no signal handlers.

use crate::sync::AtomicUsize;

/// No turn is left there.
#[derive(Debug)]
pub enum Left {}

impl Left {
    pub(super) fn is(&self, _: &AtomicUsize) -> bool {
        match *self {}
    }
}

pub(super) fn announce(_: usize, _: &AtomicUsize) {}

pub(super) fn withdraw(_: usize, _: &AtomicUsize) {}

pub(super) fn announce_sole(_: usize, _: &AtomicUsize) {}

pub(super) fn withdraw_sole(_: usize, _: &AtomicUsize) {}

/// Never.
pub fn is_in_sole() -> bool {
    false
}

/// Never.
pub fn is_in_turn() -> bool {
    false
}

/// There is nothing to end.
pub fn end_left(_: usize, _: impl FnMut(&Left)) {}
