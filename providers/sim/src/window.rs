//! Memory for byte streams, with planned faults.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use via::Error;
use via::window::Windows;

/// Lends sealed memfds, counts the calls, and fails those that it is told to.
#[derive(Debug, Default)]
pub struct SimWindows {
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    made: u64,
    /// The one that fails, counted from 0.
    fails: Option<u64>,
}

impl SimWindows {
    /// Memory without faults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            calls: Mutex::new(Calls {
                made: 0,
                fails: None,
            }),
        }
    }

    /// Fails the call after the next `nth`.
    pub fn fail(&self, nth: u64) {
        let mut calls = self.calls();
        calls.fails = Some(calls.made + nth);
    }

    /// Calls made so far, of both kinds.
    #[must_use]
    pub fn calls_made(&self) -> u64 {
        self.calls().made
    }

    fn strike(&self) -> Result<(), Error> {
        let mut calls = self.calls();
        let nth = calls.made;
        calls.made += 1;
        match calls.fails.take_if(|fails| *fails == nth) {
            Some(_) => Err(Error::Resource),
            None => Ok(()),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Windows for SimWindows {
    fn name(&self) -> &'static str {
        crate::NAME
    }

    fn create(&self, len: usize) -> Result<OwnedFd, Error> {
        self.strike()?;
        sys::window::create(sys::stream::NAME, len).map_err(|_| Error::Resource)
    }

    fn admit(&self, fd: OwnedFd, len: usize) -> Result<OwnedFd, Error> {
        self.strike()?;
        sys::window::admit(&fd, len).map_err(|_| Error::InvalidParameter)?;
        Ok(fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_the_call_that_it_is_told_to_and_no_other() {
        let windows = SimWindows::new();
        windows.fail(1);
        let fd = windows.create(4096).expect("the first");
        assert_eq!(
            windows.admit(fd, 4096).expect_err("told to"),
            Error::Resource
        );
        windows.create(4096).expect("the third");
        assert_eq!(windows.calls_made(), 3);
    }
}
