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
    USED.fetch_or(CANCELLED, Ordering::SeqCst);
    // SAFETY: the program's own call.
    let result = unsafe { real::pthread_cancel(thread) };
    if result == 0 {
        // One that sleeps in a NIC has the C library tell it nothing.
        section::wake_cancelled(thread as usize);
    }
    result
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int {
    if kind == ASYNCHRONOUS {
        USED.fetch_or(ANYWHERE, Ordering::SeqCst);
    }
    // SAFETY: the program's own call, which may end this thread.
    unsafe { real::pthread_setcanceltype(kind, before) }
}

/// Where a thread ends that is to be cancelled. To be called while nothing is held that a destructor does not give back.
///
/// One that may be ended between any two instructions ends only at such points until the result is dropped: in the middle of our code it would keep what it
/// has, and unwind from where nothing can be unwound.
#[inline]
pub(crate) fn point() -> Deferred {
    let anywhere = match USED.load(Ordering::Relaxed) {
        0 => false,
        used => end_if_cancelled(used),
    };
    Deferred { anywhere }
}

/// Until this is dropped a thread is cancelled at points alone.
#[must_use = "the thread may end anywhere again once it is dropped"]
pub(crate) struct Deferred {
    /// Whether it could end anywhere before.
    anywhere: bool,
}

impl Drop for Deferred {
    #[inline]
    fn drop(&mut self) {
        if self.anywhere {
            set_kind(ASYNCHRONOUS);
        }
    }
}

/// Whether the thread could end anywhere, and now cannot.
#[cold]
fn end_if_cancelled(used: u32) -> bool {
    let anywhere = used & ANYWHERE != 0 && set_kind(DEFERRED) == ASYNCHRONOUS;
    // SAFETY: a plain function, which may unwind this thread to its end.
    unsafe { pthread_testcancel() };
    anywhere
}

/// The kind before. Ends the thread if it is to be cancelled, and may be anywhere from now on.
#[cold]
fn set_kind(kind: c_int) -> c_int {
    let mut before = DEFERRED;
    // SAFETY: a plain function, which may unwind this thread to its end.
    unsafe { real::pthread_setcanceltype(kind, &raw mut before) };
    before
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// What the program has done yet: most never do any of it, and then a point costs no call.
static USED: AtomicU32 = AtomicU32::new(0);
/// It has cancelled a thread.
const CANCELLED: u32 = 1;
/// A thread has asked to end wherever it is.
const ANYWHERE: u32 = 2;

/// The C library's `PTHREAD_CANCEL_DEFERRED` and `PTHREAD_CANCEL_ASYNCHRONOUS`.
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_end_anywhere_ends_at_points_alone_in_the_middle_of_a_call() {
        let began_as = set_kind(DEFERRED);
        // SAFETY: nobody cancels this thread.
        unsafe { pthread_setcanceltype(ASYNCHRONOUS, std::ptr::null_mut()) };
        let call = point();
        let during = set_kind(DEFERRED);
        drop(call);
        let after = set_kind(began_as);
        assert_eq!((during, after), (DEFERRED, ASYNCHRONOUS));
    }
}
