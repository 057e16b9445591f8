//! What the sockets layer asks of whoever put it into a program: to sleep as the program would, and where its VI NICs are.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::time::Duration;

use sys::errno::Errno;
use via::window::Windows;

use crate::rules::Kept;

/// The surroundings. Calls go to the C library where that makes a difference: cancellation of threads, and signals.
pub trait Host: Sync {
    /// Sleeps until something can be received, as a blocking `recv` does: for `SO_RCVTIMEO` at most, restarted after a signal if that
    /// asks for it. The end of the connection is a thing that can be received.
    ///
    /// # Errors
    /// `EINTR`, `EAGAIN` after the time-out; the connection's, which the kernel tells once, so that the next call would not hear of it.
    fn wait_to_receive(&self, fd: BorrowedFd<'_>) -> Result<(), Errno>;

    /// `poll` on one descriptor. Returns the events, 0 after the time-out.
    ///
    /// # Errors
    /// `EINTR`.
    fn poll(&self, fd: BorrowedFd<'_>, events: i16, timeout_ms: i32) -> Result<i16, Errno>;

    /// `poll` for nothing but the connection's end.
    ///
    /// # Errors
    /// `EINTR`.
    fn nap(&self, fd: BorrowedFd<'_>, time: Duration) -> Result<(), Errno>;

    /// Whether calls that a signal interrupts are restarted, as far as that can be told: by all handlers that there are.
    fn restarts(&self) -> bool;

    /// Whether there may be other threads of the program.
    fn has_threads(&self) -> bool;

    /// The VI NIC over which connections of this host can go.
    fn windows(&self) -> Option<&'static dyn Windows>;

    /// A connection has been upgraded.
    fn upgraded(&self, fd: BorrowedFd<'_>);

    /// One that a rule wants upgraded always is not.
    fn kept_on_tcp(&self, kept: &Kept<'_>);
}

/// The surroundings, if they have been [installed](install).
pub fn host() -> Option<&'static dyn Host> {
    HOST.get().copied()
}

/// Whether a call that was interrupted in `poll`, which is never restarted, goes on as `send` and `recv` would: if they wait without limit,
/// and the signal's handler asks for it.
pub(crate) fn goes_on(errno: Errno, limited: bool) -> Result<(), Errno> {
    let restarted = errno == Errno::INTR && !limited && host().is_some_and(|host| host.restarts());
    if restarted { Ok(()) } else { Err(errno) }
}

/// Whether another thread of this process may be doing something meanwhile.
pub(crate) fn has_threads() -> bool {
    host().is_some_and(|host| host.has_threads())
}

/// Says what the surroundings are; the first call counts.
#[inline]
pub fn install(host: &'static dyn Host) {
    let _ = HOST.set(host);
}

static HOST: OnceLock<&'static dyn Host> = OnceLock::new();
