//! The C library's own streams, whose bytes go past us.

use std::os::fd::RawFd;

use sys::quiet::Quiet;

use crate::real;

/// Whether there is one for such a number.
pub(super) fn is_at(fd: RawFd) -> bool {
    if !real::has_list_of_streams() {
        return true;
    }
    // A handler must not leave the list locked.
    let _quiet = Quiet::begin();
    // SAFETY: the list is locked by this thread as long as it is walked, so that no stream in it is freed.
    unsafe {
        real::_IO_list_lock();
        let mut at = real::_IO_iter_begin();
        let end = real::_IO_iter_end();
        let mut found = false;
        while at != end && !found {
            found = real::fileno_unlocked(real::_IO_iter_file(at)) == fd;
            at = real::_IO_iter_next(at);
        }
        real::_IO_list_unlock();
        found
    }
}

/// Streams begin, end and are written out together only by this thread, until [`release_list`]. What another thread has begun is waited for, as `fork` does.
pub(crate) fn hold_list() {
    if real::has_list_of_streams() {
        // SAFETY: a lock that counts for its thread.
        unsafe { real::_IO_list_lock() };
    }
}

/// After [`hold_list`].
pub(crate) fn release_list() {
    if real::has_list_of_streams() {
        // SAFETY: this thread has it.
        unsafe { real::_IO_list_unlock() };
    }
}

/// After [`hold_list`], in a child of the fork: nobody has it there. The C library does so only where there were several threads.
pub(crate) fn reset_list() {
    if real::has_list_of_streams() {
        // SAFETY: there is no other thread.
        unsafe { real::_IO_list_resetlock() };
    }
}
