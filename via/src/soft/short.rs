//! Short messages over a link of messages, where nothing but the message needs attention: past the queues' general way, as [`super::brief`] has
//! it for frames.
//!
//! What is checked is the same. Where anything is out of the ordinary the answer is "no", nothing has changed, and the general way finds and tells it.

use proto::rdmap::WorkId;

use super::core::Core;
use super::device::Device;
use super::link::{Link, Look};
use super::memory::Reach;
use super::messages::send_work;
use super::queue::{Outcome, Plain, Ticket};
use super::vi::SoftVi;
use crate::descriptor::Segments;
use crate::{CompletedOp, Completion, Done, Queue, Segment};

impl<D: Device> SoftVi<D> {
    /// Sends `plain`, which is the next of its queue.
    #[inline(always)]
    pub(super) fn send_short(&self, core: &mut Core<D>, plain: Plain, segments: &Segments) -> bool {
        let Plain { immediate, len, .. } = plain;
        let is_plain = core.refused_write.is_none() && !core.awaits_acks();
        let Some(link) = &mut core.link else {
            return false;
        };
        if !is_plain || (immediate.is_some() && !link.has_immediate()) {
            return false;
        }
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        link.send_short(len, immediate, |room| match segments.only() {
            Some(segment) => gather(&mut reach, segment, room),
            None => gather_all(&mut reach, segments, room),
        })
    }

    /// Sends `plain`, which is the next of its queue and not short, from where it lies. `None` if it was not sent, else whether it is complete.
    #[inline]
    pub(super) fn send_lone(
        &self,
        core: &mut Core<D>,
        plain: Plain,
        segments: &Segments,
    ) -> Option<bool> {
        let segment = segments.only()?;
        let is_plain =
            plain.immediate.is_none() && core.refused_write.is_none() && !core.awaits_acks();
        let number = core.send.number(core.send.len());
        let link = core.link.as_mut().filter(|_| is_plain)?;
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let (memory, offset) = reach.local(segment.handle, segment.addr, segment.len)?;
        let work = send_work(number, plain.len);
        link.send_lone(&work, plain.len, (memory, offset))
    }

    /// Looks for a message for the receive queue, which has none that is complete. `None` where [`SoftVi::progress`] is to say what there is.
    #[inline(always)]
    pub(super) fn look_short(&self, core: &mut Core<D>) -> Option<Done> {
        match core.link.as_mut()?.look() {
            Look::Came => self.receive_short(core).map(Done::Completed),
            Look::Nothing => nothing_done(core),
            Look::Expected(len) => self.look_lone(core, len),
            Look::Unclear => None,
        }
    }

    /// Looks for a message of `len` bytes, which should be what comes next.
    fn look_lone(&self, core: &mut Core<D>, len: u32) -> Option<Done> {
        let (ticket, segment) = self.plain_receive(core)?;
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let (memory, offset) = reach.writable(segment.handle, segment.addr, segment.len)?;
        let id = WorkId(core.recv.number(0));
        let link = core.link.as_mut().filter(|_| len <= segment.len)?;
        match link.look_for(id, len, (memory, offset)) {
            Look::Came => Some(Done::Completed(self.received(core, ticket, len))),
            Look::Nothing => nothing_done(core),
            Look::Expected(_) | Look::Unclear => None,
        }
    }

    /// The receive at the front of its queue, if nobody but the caller is to hear of its end.
    #[inline]
    fn plain_receive(&self, core: &Core<D>) -> Option<(Ticket, Segment)> {
        let is_plain = core.sleepers == 0
            && !core.awaits_acks()
            && core.refused_write.is_none()
            && self.cq(Queue::Recv).is_none()
            && core.notify[Queue::Recv as usize].is_empty();
        core.recv.plain_front().filter(|_| is_plain)
    }

    /// Takes a message that has come as the completion of the receive at the front of its queue.
    #[inline]
    fn receive_short(&self, core: &mut Core<D>) -> Option<Completion> {
        let (ticket, segment) = self.plain_receive(core)?;
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let (memory, offset) = reach.writable(segment.handle, segment.addr, segment.len)?;
        let id = WorkId(core.recv.number(0));
        let link = core.link.as_mut()?;
        let len = link.receive_short(id, |octets| {
            octets.len() <= segment.len as usize && memory.write(offset, octets).is_ok()
        })?;
        Some(self.received(core, ticket, len))
    }

    /// The receive at the front of its queue has its message.
    #[inline]
    fn received(&self, core: &mut Core<D>, ticket: Ticket, len: u32) -> Completion {
        core.dry = false;
        core.recv.drop_front();
        let outcome = Outcome::done(CompletedOp::Receive, len, None);
        if matches!(ticket, Ticket::At(_)) {
            self.write_outcome(core, ticket, &outcome);
        }
        if core.send.next() < core.send.len() {
            self.pump(core);
        }
        Completion {
            token: ticket.token(),
            status: outcome.status,
            length: len,
            immediate: None,
        }
    }
}

/// What there is to say where nothing has come.
#[inline]
fn nothing_done<D: Device>(core: &Core<D>) -> Option<Done> {
    let is_all =
        core.recv.has_open() && core.send.next() >= core.send.len() && core.refused_write.is_none();
    is_all.then_some(Done::NotDone)
}

/// Copies a segment; whether it could.
#[inline(always)]
fn gather(reach: &mut Reach<'_>, segment: Segment, into: &mut [u8]) -> bool {
    let place = reach.local(segment.handle, segment.addr, segment.len);
    place.is_some_and(|(memory, offset)| into.is_empty() || memory.read(offset, into).is_ok())
}

#[inline(never)]
fn gather_all(reach: &mut Reach<'_>, segments: &Segments, into: &mut [u8]) -> bool {
    let mut room = into;
    segments.iter().all(|segment| {
        let gathered = room.split_off_mut(..segment.len as usize);
        gathered.is_some_and(|here| gather(reach, segment, here))
    })
}
