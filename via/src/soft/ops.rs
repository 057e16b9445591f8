//! What the owner of a VI calls.

use std::any::Any;
use std::time::Duration;

use sys::futex::interruptions;

use super::brief::LOOKS;
use super::core::Attempt;
use super::device::{Device, Pending};
use super::link::{Goodbye, Link};
use super::queue::{Plain, Request, Ticket};
use super::vi::SoftVi;
use crate::descriptor::Segments;
use crate::provider::{DoneHandler, Export, Received, Timeout, ViId, ViOps};
use crate::{
    AsyncError, Descriptor, DescriptorAt, Done, Error, ErrorCode, Fault, NetAddress, Op, Queue,
    Segment, ViAttributes, ViEvent, ViState,
};

impl<D: Device> ViOps for SoftVi<D> {
    fn id(&self) -> ViId {
        self.id
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn state(&self) -> Result<ViState, Error> {
        let mut core = self.enter()?;
        self.progress(&mut core);
        Ok(core.state)
    }

    fn attributes(&self) -> Result<ViAttributes, Error> {
        Ok(self.enter()?.attributes)
    }

    fn is_empty(&self, queue: Queue) -> Result<bool, Error> {
        Ok(self.enter()?.queue(queue).len() == 0)
    }

    fn set_attributes(&self, attributes: ViAttributes) -> Result<(), Error> {
        let mut core = self.enter()?;
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        self.nic.check_vi_attributes(&attributes)?;
        self.nic.registry.use_ptag(attributes.ptag)?;
        self.nic.registry.unuse_ptag(core.attributes.ptag);
        core.attributes = attributes;
        Ok(())
    }

    fn connect_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<ViAttributes, Error> {
        self.request(local, remote, timeout)
    }

    fn peer_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<(), Error> {
        self.offer(local, remote, timeout)
    }

    fn peer_done(&self) -> Result<Option<ViAttributes>, Error> {
        self.offer_outcome(false)
    }

    fn peer_wait(&self) -> Result<ViAttributes, Error> {
        self.offer_outcome(true)?.ok_or(Error::Timeout)
    }

    fn export(&self) -> Result<Export, Error> {
        self.export_end()
    }

    fn disconnect(&self) -> Result<(), Error> {
        let mut core = self.enter()?;
        match std::mem::replace(&mut core.attempt, Attempt::None) {
            Attempt::Client {
                pending: Some(pending),
                ..
            }
            | Attempt::Peer { pending, .. } => pending.cancel(),
            Attempt::Client { pending: None, .. } | Attempt::None => {}
        }
        self.hurry(&mut core);
        if let Some(link) = &mut core.link {
            link.close(Goodbye::Disconnected);
        }
        core.step(ViEvent::Disconnect);
        self.flush(&mut core, None);
        // Those that no flushed descriptor needed. Dropped without the lock: a handler may own what calls this VI when it goes.
        let cancelled = std::mem::take(&mut core.notify);
        self.unlink(&mut core);
        drop(core);
        drop(cancelled);
        self.nic.dispatcher.quiesce_vi(self.id);
        Ok(())
    }

    fn destroy(&self) -> Result<(), Error> {
        let mut core = self.enter()?;
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        let strict = self.nic.options.strict;
        if [Queue::Send, Queue::Recv].into_iter().any(|queue| {
            let queue = core.queue(queue);
            queue.has_open() || (strict && queue.len() > 0)
        }) {
            return Err(Error::Resource);
        }
        let cancelled = self.end_life(&mut core);
        drop(core);
        drop(cancelled);
        self.nic.forget_vi(self.id);
        self.nic.dispatcher.forget_vi(self.id);
        Ok(())
    }

    fn post(&self, queue: Queue, descriptor: &Descriptor<'_>, token: u64) -> Result<(), Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        let plain = Plain {
            ticket: Ticket::Named(token),
            immediate: descriptor.immediate,
            len: descriptor.len,
        };
        let limit = self.nic.device.attributes().max_segments_per_desc as usize;
        if queue == Queue::Send
            && descriptor.op == Op::SendRecv
            && !descriptor.fence
            && descriptor.segments.len() <= limit
            && self.send_now(&mut core, plain, &descriptor.segments)
        {
            return Ok(());
        }
        let too_many = descriptor.segments.len() > limit;
        let misplaced = queue == Queue::Recv && descriptor.op != Op::SendRecv;
        let odd = descriptor.op == Op::RdmaRead && descriptor.immediate.is_some();
        let request = Request {
            ticket: Ticket::Named(token),
            op: descriptor.op,
            fence: descriptor.fence,
            immediate: descriptor.immediate.filter(|_| queue == Queue::Send),
            remote: descriptor.remote,
            len: descriptor.len,
            fault: (too_many || misplaced || odd).then_some(Fault::Format),
        };
        self.enqueue(queue, request, &descriptor.segments, &mut core)
    }

    fn post_at(&self, queue: Queue, at: DescriptorAt) -> Result<(), Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        // Filled where it stays: moving what has just been written piece by piece costs more than writing it.
        let mut segments = Segments::default();
        let Some(request) = self.parse(&mut core, queue, at, &mut segments) else {
            self.report(AsyncError {
                descriptor: Some(at.addr),
                ..AsyncError::of_vi(ErrorCode::PostDesc, self.id)
            });
            if core.state == ViState::Connected && core.is_reliable() {
                self.break_off(&mut core);
            }
            return Ok(());
        };
        if !self.is_full(&core, queue) {
            self.chain(&mut core, queue, at);
        }
        let plain = Plain {
            ticket: Ticket::At(at),
            immediate: request.immediate,
            len: request.len,
        };
        if queue == Queue::Send
            && request.op == Op::SendRecv
            && !request.fence
            && request.fault.is_none()
            && self.send_now(&mut core, plain, &segments)
        {
            return Ok(());
        }
        self.enqueue(queue, request, &segments, &mut core)
    }

    fn done(&self, queue: Queue) -> Result<Done, Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        Ok(self.take(&mut core, queue))
    }

    fn wait(&self, queue: Queue, timeout: Timeout) -> Result<Done, Error> {
        self.await_message(queue, timeout, |core| {
            Some(self.take(core, queue)).filter(|done| *done != Done::NotDone)
        })
    }

    fn wait_or_signal(&self, queue: Queue, timeout: Timeout) -> Result<Done, Error> {
        let before = interruptions();
        self.await_message(queue, timeout, |core| {
            let done = self.take(core, queue);
            let ends = done != Done::NotDone || core.take_interruption(queue);
            (ends || interruptions() != before).then_some(done)
        })
    }

    fn interrupt(&self, queue: Queue) {
        if let Ok(mut core) = self.enter() {
            core.interrupted[queue as usize] = true;
            self.wake(&core);
        }
    }

    fn hold_back(&self) -> Result<(), Error> {
        let mut core = self.enter()?;
        if D::Link::MESSAGES || !self.nic.device.capabilities().flow_control {
            return Err(Error::NotSupported);
        }
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        core.holds = true;
        Ok(())
    }

    fn send_copied(&self, bytes: &[u8], immediate: Option<u32>) -> Result<bool, Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        Ok(self.send_bytes(&mut core, bytes, immediate))
    }

    fn look(&self, into: &mut [u8], looks: u32) -> Result<Received, Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        Ok(self.receive_bytes(&mut core, into, looks))
    }

    fn receive(&self, into: &mut [u8], timeout: Timeout) -> Result<Received, Error> {
        if timeout == Some(Duration::ZERO) {
            return self.look(into, 1);
        }
        let before = interruptions();
        self.await_message(Queue::Recv, timeout, |core| {
            let received = self.receive_bytes(core, into, LOOKS);
            let came = received != Received::Posted(Done::NotDone);
            let ends = came || core.take_interruption(Queue::Recv);
            (ends || interruptions() != before).then_some(received)
        })
    }

    fn expect_write(&self, at: Segment) {
        // A link of frames checks each before anybody sees it.
        if D::Link::MESSAGES
            && let Ok(mut core) = self.enter()
        {
            core.expected.add(at);
        }
    }

    fn dismiss_write(&self, at: Segment) {
        if D::Link::MESSAGES
            && let Ok(mut core) = self.enter()
        {
            core.expected.remove(at);
        }
    }

    fn notify(&self, queue: Queue, handler: DoneHandler) -> Result<(), Error> {
        let mut core = self.enter()?;
        if self.cq(queue).is_some() {
            return Err(Error::InvalidParameter);
        }
        self.progress(&mut core);
        match core.queue_mut(queue).take() {
            Some(completion) => self.nic.dispatcher.done(self.id, handler, completion),
            None => {
                core.notify[queue as usize].push_back(handler);
                // Whoever asks to be called does not stay to poll.
                self.arm_for_agent(&mut core);
            }
        }
        Ok(())
    }
}
