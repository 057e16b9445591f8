//! Noticing that this process is a forked child.

use std::io;
use std::sync::OnceLock;

use crate::sync::{Ordering, mapped::AtomicU32};

/// How many forks lie between the process that first called [`watch`] and this one.
///
/// An object that must not work in a forked child remembers the value it was created under and compares: one relaxed load. The child's
/// only thread is the one that ran the handler, so program order is all the ordering needed.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Starts counting; cheap when done before. Whoever stores a [`generation`] calls this first.
///
/// Covers `fork` of the C library, and so what is built on it. A raw `clone` system call runs no handlers and goes unnoticed;
/// a `vfork` child shares its parent's memory and is, rightly, not counted.
///
/// # Errors
/// `ENOMEM` if the C library could not note the handler.
pub fn watch() -> io::Result<()> {
    static REGISTERED: OnceLock<i32> = OnceLock::new();
    let errno = *REGISTERED.get_or_init(|| {
        // SAFETY: the handler is a plain function that lives as long as the program (the C library forgets it when the object that holds
        // it is unloaded), takes nothing, and does a single atomic add, which is async-signal-safe as a fork handler must be.
        unsafe { libc::pthread_atfork(None, None, Some(count)) }
    });
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

static GENERATION: AtomicU32 = AtomicU32::new(0);
