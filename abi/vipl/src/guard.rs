//! Where panics end: every entry point runs in [`guard`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use via::Error;

use crate::abi_types::VipReturn;
use crate::handles::{Handle, Object};

/// Runs the body of an entry point that is about `subject`.
///
/// A panic is a fault of ours or of a provider. The NIC that it happened in is then marked as failed: its consumer is told by
/// `VIP_ERROR_CATASTROPHIC`, once, and all that is left to do with it is to close it.
#[inline]
pub(crate) fn guard<T: Object, R: Into<VipReturn>>(
    subject: Handle<T>,
    body: impl FnOnce() -> Result<R, Error>,
) -> VipReturn {
    match caught(body) {
        Some(result) => result.into(),
        None => {
            caught(|| fail(subject));
            Error::Resource.into()
        }
    }
}

/// As [`guard`], where there is no object yet, or no result to tell with.
#[inline]
pub(crate) fn caught<R>(body: impl FnOnce() -> R) -> Option<R> {
    // Unwind safety: what a panic leaves half done belongs to one NIC, and `fail` closes that one off.
    catch_unwind(AssertUnwindSafe(body)).ok()
}

#[cold]
fn fail<T: Object>(subject: Handle<T>) {
    if let Ok(object) = subject.get() {
        object.fail();
    }
}

#[cfg(test)]
mod tests;
