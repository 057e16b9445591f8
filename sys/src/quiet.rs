//! Threads that take no signals.
//!
//! A library inside somebody's program has threads that the program does not know of. A signal for the process goes to any thread that does not
//! block it: its handler would run where the program does not expect it, and the call that it was to interrupt would go on.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Begins a thread that takes no signals, with a stack of so many bytes, or as many as usual.
///
/// # Errors
/// The kernel's: no thread can be had.
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack: Option<usize>,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let builder = Builder::new().name(name.into());
    let builder = match stack {
        Some(bytes) => builder.stack_size(bytes),
        None => builder,
    };
    // A thread begins with the mask of who makes it.
    let _quiet = Quiet::begin();
    builder.spawn(run)
}

/// As long as it lives this thread takes no signals.
pub(crate) struct Quiet(libc::sigset_t);

impl Quiet {
    pub(crate) fn begin() -> Self {
        // SAFETY: a set of signals is plain bits; the calls write to ours and change this thread's mask, which `drop` puts back.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: as in `begin`.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}
