//! What a sender waits for: the peer's first packet, its window, a buffer of the NIC's.

use std::time::Instant;

use sys::errno::Errno;
use sys::lock::Guard;
use sys::section;
use via::{Done, Queue};

use super::Stream;
use super::inner::{Inner, Taken};
use super::relay::BY_KERNEL;
use crate::packet::variant::Waiting;
use crate::packet::wait::{Wait, left};

impl Stream {
    #[inline(always)]
    fn may_send(inner: &Inner) -> Result<(), Errno> {
        if let Some(error) = inner.error {
            return Err(error);
        }
        if inner.lost || inner.is_refused || !inner.sends() {
            return Err(Errno::PIPE);
        }
        Ok(())
    }

    /// After a wait, which is never the relay's.
    fn still_ours(&self, inner: &Inner) -> Result<(), Errno> {
        if inner.is_relayed {
            // It may have met what this thread had of the NIC's.
            self.show(inner, false);
            return Err(BY_KERNEL);
        }
        Ok(())
    }

    /// A buffer to send from.
    pub(super) fn buffer<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<(Guard<'a, Inner>, u32), Errno> {
        loop {
            self.reap(&mut inner);
            if let Some(slot) = inner.free.pop() {
                return Ok((inner, slot));
            }
            Self::may_send(&inner)?;
            let limit = match patient().limit() {
                Ok(limit) => limit,
                Err(errno) => {
                    self.watch_room(&mut inner);
                    return Err(errno);
                }
            };
            // The peer may wait for the same.
            self.settle(&mut inner);
            if inner.is_full() {
                self.stash(&mut inner);
            }
            let (drained, interrupted) = self.drain(inner, limit);
            inner = drained;
            if interrupted {
                return Err(Errno::INTR);
            }
            self.still_ours(&inner)?;
            self.take_in(&mut inner);
        }
    }

    /// Waits until the NIC lets go of a buffer, which is when the peer makes room there, a signal, which it tells, or the limit. One waits in the
    /// NIC, and the others for it.
    fn drain<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        limit: Option<Instant>,
    ) -> (Guard<'a, Inner>, bool) {
        if self.adapter.variant.waiting == Waiting::Polling {
            drop(inner);
            std::thread::yield_now();
            return (self.lock(), section::is_pending());
        }
        if inner.is_draining {
            return self.wait_for_others(inner, limit);
        }
        inner.is_draining = true;
        drop(inner);
        let sent = self.vi.send_wait_or_signal(left(limit));
        let mut inner = self.lock();
        inner.is_draining = false;
        // Others may have seen all of them done meanwhile.
        if let Ok(Done::Completed(completion)) = sent {
            Self::note_sent(&mut inner, completion);
        }
        let interrupted = sent == Ok(Done::NotDone) && !self.was_rung(Queue::Send);
        if inner.waiters > 0 {
            self.moved.notify_all();
        }
        (inner, interrupted)
    }

    /// Waits until something has come, as long as the call may.
    #[inline]
    fn wait_for_packets<'a>(
        &'a self,
        inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        let limit = patient().limit()?;
        let (inner, taken) = self.wait(inner, &mut [], limit);
        if taken == Taken::Interrupted {
            return Err(Errno::INTR);
        }
        self.still_ours(&inner)?;
        Ok(inner)
    }

    /// Waits for the peer's first packet, which says what it has room for.
    #[inline]
    pub(super) fn acquainted<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        loop {
            Self::may_send(&inner)?;
            if inner.peer.is_some() {
                return Ok(inner);
            }
            if self.take_in(&mut inner) {
                continue;
            }
            inner = self.wait_for_packets(inner, patient)?;
        }
    }

    /// Waits until a packet may be sent.
    #[inline(always)]
    pub(super) fn window<'a>(
        &'a self,
        inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        Self::may_send(&inner)?;
        if inner.talk.window() > 0 {
            return Ok(inner);
        }
        self.wait_for_window(inner, patient)
    }

    #[cold]
    fn wait_for_window<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        loop {
            Self::may_send(&inner)?;
            if inner.talk.window() > 0 {
                return Ok(inner);
            }
            // The peer may wait for the same.
            self.settle(&mut inner);
            if inner.is_full() {
                self.stash(&mut inner);
            }
            if self.take_in(&mut inner) {
                continue;
            }
            inner = self.wait_for_packets(inner, patient)?;
        }
    }
}
