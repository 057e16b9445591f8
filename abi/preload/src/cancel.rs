//! Cancellation of threads.
//!
//! A thread that is to be cancelled ends at its next call that may sleep, even if that would not sleep. The C library sees to it in its own calls; where
//! ours do without them it is done here.

use std::ffi::c_int;

use sys::section;
use sys::sync::{AtomicU32, Ordering};

use crate::real;

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: libc::pthread_t) -> c_int {
    USED.store(1, Ordering::SeqCst);
    // SAFETY: the program's own call.
    let result = unsafe { real::pthread_cancel(thread) };
    if result == 0 {
        // One that sleeps in a NIC has the C library tell it nothing.
        section::wake_cancelled(thread as usize);
    }
    result
}

/// Where a thread ends that is to be cancelled. To be called while nothing is held that a destructor does not give back.
#[inline]
pub(crate) fn point() {
    if USED.load(Ordering::Relaxed) != 0 {
        end_if_cancelled();
    }
}

#[cold]
fn end_if_cancelled() {
    // SAFETY: a plain function, which may unwind this thread to its end.
    unsafe { pthread_testcancel() };
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Whether the program has cancelled a thread yet: most never do, and then a point costs no call.
static USED: AtomicU32 = AtomicU32::new(0);
