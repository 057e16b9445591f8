//! Into the queues and out of them.

use std::time::{Duration, Instant};

use super::core::{Core, sent_op};
use super::device::Device;
use super::link::{Link, Sleeper, Waiter};
use super::queue::{Outcome, Request};
use super::vi::{SoftVi, disarm};
use crate::descriptor::Segments;
use crate::provider::Timeout;
use crate::{AsyncError, CompletedOp, Done, Error, ErrorCode, Fault, Queue, ViState};

impl<D: Device> SoftVi<D> {
    pub(super) fn enqueue(
        &self,
        queue: Queue,
        request: Request,
        segments: &Segments,
        core: &mut Core<D>,
    ) -> Result<(), Error> {
        if self.is_full(core, queue) {
            self.report(AsyncError {
                descriptor: Some(request.ticket.token()),
                ..AsyncError::of_vi(ErrorCode::ViOverrun, self.id)
            });
            if core.state == ViState::Connected && core.is_reliable() {
                self.break_off(core);
            }
            return Err(Error::Resource);
        }
        // One that is bad may end the connection, and with it what has arrived.
        let looks = request.fault.is_some() || !core.recv.has_open();
        if queue == Queue::Recv && core.state == ViState::Connected && looks {
            // What arrived before this descriptor does not get it.
            self.progress(core);
        }
        let malformed = request.fault;
        core.queue_mut(queue).push(request, segments);
        match (queue, core.state) {
            (Queue::Send, ViState::Connected) => {
                self.pump(core);
                if core.ending.is_some() {
                    // Nobody else comes by to give it up.
                    self.progress(core);
                }
            }
            (Queue::Send, _) | (Queue::Recv, ViState::Error) => self.flush_new(core, queue),
            (Queue::Recv, _) => {
                if let Some(fault) = malformed {
                    let index = core.recv.len() - 1;
                    let op = CompletedOp::Receive;
                    self.end(core, Queue::Recv, index, Outcome::failed(op, fault, 0));
                    if core.state == ViState::Connected && core.is_reliable() {
                        self.break_off(core);
                    }
                } else if D::Link::MESSAGES {
                    self.offer_receives(core);
                } else if core.holds && core.link.as_ref().is_some_and(Link::ready) {
                    // One that waits for it has rung already.
                    self.progress(core);
                }
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn is_full(&self, core: &Core<D>, queue: Queue) -> bool {
        let limit = self.nic.device.attributes().max_descriptors_per_queue;
        core.queue(queue).len() >= limit as usize
    }

    /// A descriptor was posted to a VI that cannot process it.
    fn flush_new(&self, core: &mut Core<D>, queue: Queue) {
        core.queue_mut(queue).end_all(|posted| {
            let op = match queue {
                Queue::Send => sent_op(posted.request.op),
                Queue::Recv => CompletedOp::Receive,
            };
            Outcome::failed(op, Fault::Flushed, 0)
        });
        self.settle(core, queue);
    }

    #[inline(always)]
    pub(super) fn take(&self, core: &mut Core<D>, queue: Queue) -> Done {
        if let Some(completion) = core.queue_mut(queue).take() {
            return Done::Completed(completion);
        }
        if queue == Queue::Recv {
            if let Some(link) = &mut core.link {
                link.before_look(false);
            }
            if D::Link::MESSAGES {
                if let Some(done) = self.look_short(core) {
                    return done;
                }
            } else if let Some(completion) = self.receive_brief(core) {
                if Self::has_to_send(core) {
                    self.pump(core);
                }
                return Done::Completed(completion);
            }
        }
        self.take_posted(core, queue)
    }

    /// As [`SoftVi::take`], by the queues' general way alone.
    #[inline(always)]
    pub(super) fn take_posted(&self, core: &mut Core<D>, queue: Queue) -> Done {
        self.progress(core);
        match core.queue_mut(queue).take() {
            Some(completion) => Done::Completed(completion),
            None if core.queue(queue).has_open() => Done::NotDone,
            None => Done::Empty,
        }
    }

    /// Waits until `look` finds something: for some microseconds awake, then asleep.
    pub(super) fn await_message<R>(
        &self,
        queue: Queue,
        timeout: Timeout,
        mut look: impl FnMut(&mut Core<D>) -> Option<R>,
    ) -> Result<R, Error> {
        if self.cq(queue).is_some() {
            self.nic.check()?;
            return Err(Error::InvalidParameter);
        }
        let mut once = || {
            let mut core = self.enter()?;
            self.attend(&mut core);
            Ok(look(&mut core))
        };
        let deadline = self.nic.deadline(timeout);
        let mut spin = self.spinner.begin();
        loop {
            if let Some(found) = once()? {
                spin.hit();
                return Ok(found);
            }
            if timeout == Some(Duration::ZERO) {
                return Err(Error::Timeout);
            }
            if !spin.again() {
                break;
            }
        }
        loop {
            if let Some(found) = self.sleep(queue, deadline, &mut look)? {
                spin.hit();
                return Ok(found);
            }
            let mut core = self.enter()?;
            self.attend(&mut core);
            if let Some(found) = look(&mut core) {
                spin.hit();
                return Ok(found);
            }
            drop(core);
            if self.nic.expired(deadline) {
                return Err(Error::Timeout);
            }
        }
    }

    /// Sleeps once, unless there is something to take already.
    fn sleep<R>(
        &self,
        queue: Queue,
        deadline: Option<Instant>,
        look: &mut impl FnMut(&mut Core<D>) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let mut core = self.enter()?;
        let link = core
            .link
            .as_mut()
            .map(|link| (link.arm(Sleeper::Caller), link.waiter()));
        if link.is_none() {
            let armed = self.idle.arm(&self.nic.device);
            armed.map_err(|_| Error::Resource)?;
        }
        if let Some(found) = look(&mut core) {
            disarm(&mut core);
            return Ok(Some(found));
        }
        if link.is_some() && core.link.is_none() {
            return Ok(None);
        }
        core.sleepers += 1;
        drop(core);
        match &link {
            Some((ticket, waiter)) => waiter.sleep(*ticket, deadline),
            None => self.idle.sleep(deadline),
        }
        let mut core = self.lock();
        core.sleepers -= 1;
        // One wake-up without a link may have been meant for several: all have to go where there is a link now or nothing to wait for any more.
        let over = core.destroyed || !core.queue(queue).has_open();
        let more = over || core.link.is_some() || core.queue(queue).has_ready();
        if link.is_none() && core.sleepers > 0 && more {
            self.idle.wake();
        }
        disarm(&mut core);
        drop(core);
        self.nic.device.stirred(self.id);
        Ok(None)
    }
}
