//! The way back to TCP without the peer, who makes no call.
//!
//! What this end has not taken stays on the ring until the peer's next call finds the direction called back, and puts it on TCP. Until then nothing
//! comes there but doorbells that were begun before the peer could see that this end has left. They are counted, so they can be told from the program's
//! bytes behind them.

use super::{AFTER, BEFORE, Flow, ON_RING, Stop};
use crate::kernel::Kernel;

impl Flow {
    /// Some time after [`Flow::call_back`], in both turns: rings once more, before this end renounces its own ring. As the peer can have seen by now that it
    /// is called, it takes this doorbell off only once it has begun to follow: if it dies before, its kernel resets the connection, and what is
    /// on the ring is not lost silently. False if it cannot be rung.
    ///
    /// # Errors
    /// If the doorbell cannot be rung.
    pub(crate) fn call_again(&self, kernel: &impl Kernel, may_switch: bool) -> Result<bool, Stop> {
        self.bell_if_possible(kernel, may_switch)
    }

    /// After [`Flow::call_again`], which said whether the peer was `rung`: waits no longer for it. True if what comes on TCP from now on are bytes of the
    /// program. False where the peer must do its part, or a doorbell has still to come.
    ///
    /// # Errors
    /// TCP's.
    pub(crate) fn go_alone(&self, kernel: &impl Kernel, rung: bool) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        let is_safe = rung || rx.to_ring().is_none();
        if rx.to_tcp().is_some() || rx.mark().is_some() || !is_safe {
            // It follows; or the kernel counts otherwise, for urgent data.
            return Ok(false);
        }
        self.follow(kernel)?;
        rx.set_left();
        if rx.to_tcp().is_some() {
            return Ok(false);
        }
        let bells = rx.bells();
        match (rx.phase(), rx.to_ring()) {
            (BEFORE, _) if bells == 0 => self.follow_to(AFTER),
            (ON_RING, Some(at)) => return self.drop_doorbells(kernel, at.saturating_add(bells)),
            (AFTER, _) => {}
            // Doorbells behind bytes that nobody has read.
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the peer, which goes back to TCP, has yet to be answered. Nothing is taken off TCP until then: who is killed with its doorbell unread
    /// is reset, and it may not wait. An end of TCP is its own only if it waits: else there are heirs, to whom what is on the ring is owed.
    #[inline]
    pub(super) fn is_called(&self, kernel: &impl Kernel) -> bool {
        let tx = self.stream.tx();
        tx.back_wanted()
            && tx.to_tcp().is_none()
            && (tx.is_left() || !kernel.has_ended())
            && kernel.written().is_ok()
    }

    /// Whether this end has gone back to TCP and the peer has not followed.
    pub(super) fn is_alone(&self) -> bool {
        let rx = self.stream.rx();
        rx.phase() == AFTER && rx.to_tcp().is_none()
    }
}
