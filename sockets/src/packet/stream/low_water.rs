//! How much has to be there before a receive takes it (`SO_RCVLOWAT`), and from where one looks (`SO_PEEK_OFF`).

use sys::errno::Errno;
use sys::lock::Guard;
use sys::sync::Ordering;

use super::Stream;
use super::inner::{Inner, Taken};
use crate::packet::wait::Wait;

impl Stream {
    /// SO_RCVLOWAT: a receive that may wait does for so many bytes, and as many have to be there before a program that polls sees any.
    pub(in crate::packet) fn set_low_water(&self, bytes: u32) {
        self.low_water.store(bytes.max(1), Ordering::Relaxed);
        self.refresh();
    }

    /// Whether a receive may have to wait for more than a byte.
    #[inline]
    pub(in crate::packet) fn has_low_water(&self) -> bool {
        self.low_water.load(Ordering::Relaxed) > 1
    }

    /// SO_PEEK_OFF: each look begins where the last one ended, and what is received moves that place back. `None` is at the beginning, always.
    pub(in crate::packet) fn set_peek_offset(&self, offset: Option<usize>) {
        self.lock().peek_offset = offset;
    }

    /// Where the next look begins.
    pub(in crate::packet) fn peek_offset(&self) -> Option<usize> {
        self.lock().peek_offset
    }

    /// Waits until a receive of `wanted` bytes may take what there is. It may take what there is after `SO_RCVTIMEO`, too.
    ///
    /// # Errors
    /// `EINTR` with nothing there.
    #[cold]
    pub(in crate::packet) fn await_low_water(
        &self,
        wanted: usize,
        patient: impl Fn() -> Wait,
    ) -> Result<(), Errno> {
        let mut inner = self.lock();
        self.settle(&mut inner);
        self.flush_now(&mut inner);
        loop {
            while self.take_in(&mut inner) {}
            // What is relayed the receive finds out by itself.
            if inner.is_relayed || self.is_enough(&inner, wanted) {
                return Ok(());
            }
            let part = !inner.arrived.is_empty();
            let wait = match patient() {
                wait if part => wait.for_the_rest(),
                wait => wait,
            };
            // The receive itself says what comes of it.
            let Ok(limit) = wait.limit() else {
                return Ok(());
            };
            let (waited, taken): (Guard<'_, Inner>, Taken) = self.wait(inner, &mut [], limit);
            inner = waited;
            if taken == Taken::Interrupted {
                return if inner.arrived.is_empty() {
                    Err(Errno::INTR)
                } else {
                    Ok(())
                };
            }
            self.flush_now(&mut inner);
        }
    }

    /// Whether there is something that a receive of `wanted` bytes need not wait for.
    pub(super) fn is_enough(&self, inner: &Inner, wanted: usize) -> bool {
        let low = self.low_water.load(Ordering::Relaxed) as usize;
        inner.ended
            || inner.is_shut
            || inner.lost
            || inner.is_full()
            || inner.readable() >= low.min(wanted)
    }
}
