//! Threads that take no signals.
//!
//! A library inside somebody's program has threads that the program does not know of. A signal for the process goes to any thread that does not
//! block it: its handler would run where the program does not expect it, and the call that it was to interrupt would go on.

use std::io;
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle};

use crate::fds;
use crate::fork::Own;
use crate::sync::{Ordering, mapped::AtomicU32 as StaticU32};

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
    let ours = Ours::begin();
    builder.spawn(move || {
        let _ours = ours;
        run()
    })
}

/// Whether the program has other threads than the calling one, besides those that were begun here. Where nobody tells it may have.
pub fn program_has_others() -> bool {
    let ours = OURS.get().load(Ordering::Relaxed) as usize;
    fds::thread_count().map_or(true, |count| count > ours + 1)
}

/// One of them, until its end.
struct Ours(&'static StaticU32);

impl Ours {
    fn begin() -> Self {
        let count = OURS.get();
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is in `place`, made at first: quietly, for a handler that came in between would wait for it, and one that jumped out would leave it unmade for ever.
#[inline]
pub fn once<T>(place: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match place.get() {
        Some(value) => value,
        None => once_made(place, make),
    }
}

#[cold]
fn once_made<T>(place: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    let _quiet = Quiet::begin();
    place.get_or_init(make)
}

/// As long as it lives this thread takes no signals: for what no handler may leave by a jump, because it holds locks, the C library's own among them.
pub struct Quiet(Option<libc::sigset_t>);

impl std::fmt::Debug for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Quiet")
    }
}

impl Quiet {
    /// From now on.
    #[must_use = "it is over when this is dropped"]
    pub fn begin() -> Self {
        if FORGONE.load(Ordering::Relaxed) != 0 {
            return Self(None);
        }
        // SAFETY: a set of signals is plain bits; the calls write to ours and change this thread's mask, which `drop` puts back.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(Some(before))
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: as in `begin`.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

/// From now on every thread takes signals as ever: the program is about to forbid itself system calls, and may be killed for one of ours.
pub fn forgo() {
    FORGONE.store(1, Ordering::Relaxed);
}

/// How many there are of a process; a forked child has none of its parent's.
static OURS: Own<StaticU32> = Own::new();
static FORGONE: StaticU32 = StaticU32::new(0);
