//! Short messages over a link of messages, where nothing but the message needs attention: past the queues' general way, as [`super::brief`] has
//! it for frames.
//!
//! What is checked is the same. Where anything is out of the ordinary the answer is "no", nothing has changed, and the general way finds and tells it.

use proto::rdmap::WorkId;

use super::core::Core;
use super::device::Device;
use super::link::{Link, Look};
use super::memory::Reach;
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

    /// Looks for a message for the receive queue, which has none that is complete. `None` where [`SoftVi::progress`] is to say what there is.
    #[inline(always)]
    pub(super) fn look_short(&self, core: &mut Core<D>) -> Option<Done> {
        match core.link.as_mut()?.look() {
            Look::Came => self.receive_short(core).map(Done::Completed),
            Look::Nothing => {
                let is_all = core.recv.has_open()
                    && core.send.next() >= core.send.len()
                    && core.refused_write.is_none();
                is_all.then_some(Done::NotDone)
            }
            Look::Unclear => None,
        }
    }

    /// Takes a message that has come as the completion of the receive at the front of its queue.
    #[inline]
    fn receive_short(&self, core: &mut Core<D>) -> Option<Completion> {
        let is_plain = core.sleepers == 0
            && !core.awaits_acks()
            && core.refused_write.is_none()
            && self.cq(Queue::Recv).is_none()
            && core.notify[Queue::Recv as usize].is_empty();
        let (ticket, segment) = core.recv.plain_front().filter(|_| is_plain)?;
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
        core.dry = false;
        core.recv.drop_front();
        let outcome = Outcome::done(CompletedOp::Receive, len, None);
        if matches!(ticket, Ticket::At(_)) {
            self.write_outcome(core, ticket, &outcome);
        }
        if core.send.next() < core.send.len() {
            self.pump(core);
        }
        Some(Completion {
            token: ticket.token(),
            status: outcome.status,
            length: len,
            immediate: None,
        })
    }
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
