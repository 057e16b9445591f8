//! Stretches of a thread's work in which no signal handler of the program's runs: a handler that came in between would find locks taken by its own thread,
//! and one that left by a jump would leave them taken.
//!
//! Nothing is blocked beforehand, which would be a call of the kernel's for each: whoever stands in front of the program's handlers asks [`put_off`]
//! whether the thread is in a section, and then the signal waits for its end. A section costs a few plain instructions. A thread that sleeps in one
//! ([`crate::futex::wait`]) is woken by a signal that is put off, and by a [cancellation](wake_cancelled), so that it comes to the section's end.
//!
//! On x86-64; elsewhere sections are none.

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

#[cfg(all(test, not(loom), target_arch = "x86_64"))]
mod tests;
