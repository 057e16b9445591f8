//! Into the queues and out of them.

use std::time::Instant;

use super::core::{Core, sent_op};
use super::link::{Device, Link, Sleeper, Waiter};
use super::queue::{Outcome, Request};
use super::vi::{SoftVi, disarm};
use crate::descriptor::Segments;
use crate::{AsyncError, CompletedOp, Done, Error, ErrorCode, Fault, Queue, ViState};

impl<D: Device> SoftVi<D> {
    pub(super) fn enqueue(
        &self,
        queue: Queue,
        request: Request,
        segments: &Segments,
        core: &mut Core<D>,
    ) -> Result<(), Error> {
        let limit = self.nic.device.attributes().max_descriptors_per_queue as usize;
        if core.queue(queue).len() >= limit {
            self.report(AsyncError {
                descriptor: Some(request.ticket.token()),
                ..AsyncError::of_vi(ErrorCode::ViOverrun, self.id)
            });
            if core.state == ViState::Connected && core.is_reliable() {
                self.break_off(core);
            }
            return Err(Error::Resource);
        }
        let looks = !D::Link::MESSAGES || !core.recv.has_open();
        if queue == Queue::Recv && core.state == ViState::Connected && looks {
            // What arrived before this descriptor does not get it.
            self.progress(core);
        }
        let malformed = request.fault;
        core.queue_mut(queue).push(request, segments);
        match (queue, core.state) {
            (Queue::Send, ViState::Connected) => self.pump(core),
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
                }
            }
        }
        Ok(())
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
        self.progress(core);
        match core.queue_mut(queue).take() {
            Some(completion) => Done::Completed(completion),
            None if core.queue(queue).has_open() => Done::NotDone,
            None => Done::Empty,
        }
    }

    /// Sleeps once, unless there is something to take already.
    pub(super) fn sleep(
        &self,
        queue: Queue,
        deadline: Option<Instant>,
    ) -> Result<Option<Done>, Error> {
        let mut core = self.enter()?;
        let link = core
            .link
            .as_mut()
            .map(|link| (link.arm(Sleeper::Caller), link.waiter()));
        if link.is_none() {
            let armed = self.idle.arm(&self.nic.device);
            armed.map_err(|_| Error::Resource)?;
        }
        let done = self.take(&mut core, queue);
        if done != Done::NotDone {
            disarm(&mut core);
            return Ok(Some(done));
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
        // One wake-up without a link may have been meant for several.
        if link.is_none() && core.sleepers > 0 && core.link.is_some() {
            self.idle.wake();
        }
        disarm(&mut core);
        drop(core);
        self.nic.device.stirred(self.id);
        Ok(None)
    }
}
