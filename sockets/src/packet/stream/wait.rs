//! Waiting for packets, in the NIC or for the thread that does.

use std::thread;
use std::time::Instant;

use sys::lock::Guard;
use sys::section;
use sys::sync::Ordering;
use via::Done;
use via::provider::Received;

use super::Stream;
use super::inner::{Inner, Taken};
use crate::packet::keeper;
use crate::packet::variant::Waiting;
use crate::packet::wait::left;

impl Stream {
    /// Waits until something may have come, a signal, or the limit; takes in what has come, DATA to `into` if it can. Where other streams of the process held something back that leaves instead.
    /// The lock is let go of meanwhile, but for the first microsecond of a wait that polls.
    pub(super) fn wait<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        into: &mut [u8],
        limit: Option<Instant>,
    ) -> (Guard<'a, Inner>, Taken) {
        if self.others_hold() {
            drop(inner);
            keeper::release();
            return (self.lock(), Taken::Nothing);
        }
        self.settle(&mut inner);
        if limit.is_none() && section::is_pending() {
            return (inner, Taken::Interrupted);
        }
        // One waits in the NIC, and the others for it.
        if self.adapter.variant.handler || inner.is_awaited || inner.is_noticed {
            let (inner, interrupted) = self.wait_for_others(inner, limit);
            let taken = if interrupted {
                Taken::Interrupted
            } else {
                Taken::Nothing
            };
            return (inner, taken);
        }
        let acquainted = inner.peer.is_some();
        let received = match self.look_some_more(acquainted, into) {
            Ok(Received::Posted(Done::NotDone)) => {
                inner.is_awaited = true;
                drop(inner);
                let received = self.wait_in_the_nic(acquainted, into, limit);
                inner = self.lock();
                inner.is_awaited = false;
                received
            }
            received => received,
        };
        let taken = match received {
            Ok(Received::Posted(Done::NotDone)) if self.was_rung(via::Queue::Recv) => {
                Taken::Nothing
            }
            Ok(Received::Posted(Done::NotDone)) => Taken::Interrupted,
            Err(via::Error::Timeout) => Taken::Nothing,
            received => self.absorb_received(&mut inner, received),
        };
        if inner.shown.is_some()
            && let Some(me) = inner.me.upgrade()
        {
            me.attend(&mut inner);
        }
        self.show(&inner, true);
        if inner.waiters > 0 {
            self.moved.notify_all();
        }
        (inner, taken)
    }

    /// As long as an answer takes that is on its way: to let go of the lock and take it anew would be a third of what a short packet costs here.
    #[inline]
    fn look_some_more(&self, acquainted: bool, into: &mut [u8]) -> Result<Received, via::Error> {
        let nothing = Received::Posted(Done::NotDone);
        if self.adapter.variant.waiting != Waiting::Polling {
            return Ok(nothing);
        }
        for _ in 0..LOOKS_LOCKED {
            let received = self.look(acquainted, into, LOOKS)?;
            if received != nothing {
                return Ok(received);
            }
        }
        Ok(nothing)
    }

    fn wait_in_the_nic(
        &self,
        acquainted: bool,
        into: &mut [u8],
        limit: Option<Instant>,
    ) -> Result<Received, via::Error> {
        match self.adapter.variant.waiting {
            Waiting::Polling => self.poll(acquainted, into, POLLS_A_YIELD, limit),
            Waiting::Blocking if acquainted && self.adapter.copies => {
                self.vi.receive(into, left(limit))
            }
            Waiting::Blocking => {
                let waited = self.vi.ops().wait_or_signal(via::Queue::Recv, left(limit));
                waited.map(Received::Posted)
            }
        }
    }

    /// Waits until another thread is back from the NIC, or what it waits for has changed here. Whether a signal came.
    pub(super) fn wait_for_others<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        limit: Option<Instant>,
    ) -> (Guard<'a, Inner>, bool) {
        inner.waiters += 1;
        let ticket = self.moved.ticket();
        drop(inner);
        let interrupted = self.moved.wait(ticket, limit);
        let mut inner = self.lock();
        inner.waiters -= 1;
        (inner, interrupted)
    }

    /// Looks until there is something or [`Stream::ring`] is called, and lets others have the CPU after so many looks.
    pub(super) fn poll(
        &self,
        acquainted: bool,
        into: &mut [u8],
        looks: u32,
        limit: Option<Instant>,
    ) -> Result<Received, via::Error> {
        let mut fruitless = 0u32;
        loop {
            let received = self.look(acquainted, into, LOOKS)?;
            if received != Received::Posted(Done::NotDone) {
                return Ok(received);
            }
            fruitless = fruitless.wrapping_add(1);
            if fruitless.is_multiple_of(looks) {
                if limit.is_some_and(|limit| Instant::now() >= limit) {
                    return Err(via::Error::Timeout);
                }
                let is_rung = self.rung[via::Queue::Recv as usize].load(Ordering::Relaxed);
                if is_rung || section::is_pending() {
                    return Ok(received);
                }
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Looks with the lock held: a microsecond in all, which another thread spends with pauses.
const LOOKS_LOCKED: u32 = 8;
/// Looks for a short packet within a call of the NIC.
const LOOKS: u32 = 64;
/// Calls between two turns of others at the CPU.
const POLLS_A_YIELD: u32 = 256;
