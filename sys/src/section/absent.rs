//! Where there are no sections: handlers run wherever they come.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use rustix::event::PollFd;

use crate::futex::Wake;
use crate::sync::mapped::AtomicU32 as MappedU32;

/// Nothing.
#[derive(Debug)]
pub struct Section(());

impl Section {
    /// Nothing is put off.
    #[must_use = "as where there are sections"]
    pub fn begin(_since: u32) -> Self {
        Self(())
    }

    /// The kernel sees to that.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        false
    }
}

/// Never.
pub fn is_in() -> bool {
    false
}

/// Never.
pub fn is_pending() -> bool {
    false
}

/// As it is.
pub fn paused<R>(act: impl FnOnce() -> R) -> R {
    act()
}

/// There is nothing to end.
pub fn end_left(_target: usize) {}

/// Not counted.
pub fn cancellations() -> u32 {
    0
}

/// Nobody sleeps in a section.
pub fn wake_cancelled(_thread: usize) {}

/// Never.
///
/// # Safety
/// None is needed.
pub unsafe fn put_off(
    _signal: c_int,
    _info: *const c_void,
    _context: *mut c_void,
    _restarts: impl FnOnce() -> bool,
) -> bool {
    false
}

/// Not here.
pub(crate) fn sleep(_word: &MappedU32, _expected: u32, _timeout: Option<Duration>) -> Option<Wake> {
    None
}

/// Not here.
pub(super) fn poll(
    _fds: &[PollFd<'_>],
    _timeout: Option<Duration>,
    _has_limit: bool,
) -> Option<bool> {
    None
}
