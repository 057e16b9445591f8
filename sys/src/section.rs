//! Stretches of a thread's work in which no signal handler of the program's runs: a handler that came in between would find locks taken by its own thread,
//! and one that left by a jump would leave them taken.
//!
//! Nothing is blocked beforehand, which would be a call of the kernel's for each: whoever stands in front of the program's handlers asks [`put_off`]
//! whether the thread is in a section, and then the signal waits for its end. A section costs a few plain instructions. A thread that sleeps in one
//! ([`crate::futex::wait`]) is woken by a signal that is put off, and by a [cancellation](wake_cancelled), so that it comes to the section's end.
//!
//! On x86-64; elsewhere sections are none.

use std::time::{Duration, Instant};

use rustix::event::PollFd;

use crate::{futex, time};

#[cfg(any(loom, not(target_arch = "x86_64")))]
mod absent;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod cancel;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod own;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod signal;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod sleep;

#[cfg(any(loom, not(target_arch = "x86_64")))]
pub(crate) use absent::sleep;
#[cfg(any(loom, not(target_arch = "x86_64")))]
pub use absent::{
    Section, cancellations, end_left, is_in, is_pending, paused, put_off, wake_cancelled,
};
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub use cancel::{cancellations, wake_cancelled};
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub use own::{Section, end_left, is_in, is_pending, paused};
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub use signal::put_off;
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub(crate) use sleep::sleep;

#[cfg(any(loom, not(target_arch = "x86_64")))]
use absent::poll as poll_within;
#[cfg(all(not(loom), target_arch = "x86_64"))]
use sleep::poll as poll_within;

/// Sleeps until one of `fds` is ready, at most for `timeout` and until `deadline`, or for no reason: look again. What waits for the end of the section that this thread
/// is in ends it, too, and counts as an [interruption](futex::interruptions). `false`, and nothing done, if it is in none.
pub fn poll(fds: &[PollFd<'_>], timeout: Option<Duration>, deadline: Option<Instant>) -> bool {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(time::now()));
    let shorter = timeout.into_iter().chain(left).min();
    let ended = poll_within(fds, shorter, deadline.is_some());
    if ended == Some(true) {
        futex::note_interruption();
    }
    ended.is_some()
}

#[cfg(all(test, not(loom), target_arch = "x86_64"))]
mod tests;
