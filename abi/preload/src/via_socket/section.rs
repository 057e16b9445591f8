//! Calls on sockets of type `SOCK_VIA`, in whose middle no signal handler of the program's runs ([`sys::section`]).

use std::ffi::c_int;

use sockets::packet::table;
use sys::errno::Errno;
use sys::section::{Section, cancellations};

use crate::cancel;
use crate::outcome::Outcome;

/// Does a call that may wait, and does it again where only handlers ended the wait after which calls go on. What it holds it gives back each time, so that a
/// handler may leave it by a jump, or close its socket, and a thread that is cancelled may end.
#[inline]
pub(super) fn again<T>(mut call: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    loop {
        let since = cancellations();
        let _deferred = cancel::point();
        let section = Section::begin(since);
        let outcome = call();
        let goes_on = matches!(outcome, Outcome::Failed(Errno::INTR)) && section.goes_on();
        drop(section);
        if !goes_on {
            return outcome;
        }
    }
}

/// Does what waits for nothing.
#[inline]
pub(super) fn within<T>(act: impl FnOnce() -> T) -> T {
    let _section = Section::begin(cancellations());
    act()
}

/// A descriptor, if it is such a socket, is about to be closed or to become another's.
#[inline]
pub(crate) fn hold(fd: c_int) -> Option<Section> {
    let is_ours = table::is(fd) || table::is_relayed(fd);
    is_ours.then(|| Section::begin(cancellations()))
}

/// The same of several.
#[inline]
pub(crate) fn hold_all() -> Option<Section> {
    table::any().then(|| Section::begin(cancellations()))
}
