//! Messages of a few bytes, where nothing but the message needs attention: sent and received in one pass each, past the queues' general way.
//!
//! What is checked is the same. Where anything is out of the ordinary the answer is "no", nothing has changed, and the general way finds and tells it.

use super::core::Core;
use super::device::Device;
use super::link::{Brief, Link};
use super::memory::Reach;
use super::queue::{Outcome, Plain};
use super::vi::SoftVi;
use crate::descriptor::Segments;
use crate::{CompletedOp, Completion, Queue};

impl<D: Device> SoftVi<D> {
    /// Sends `plain` as a [`Brief`], message number `seq`. It is the next of its queue, and fits into it.
    #[inline(always)]
    pub(super) fn send_brief(
        &self,
        core: &mut Core<D>,
        seq: u32,
        plain: Plain,
        segments: &Segments,
    ) -> bool {
        let Some(link) = &mut core.link else {
            return false;
        };
        let Plain { immediate, len, .. } = plain;
        if !Brief::fits(len, immediate) || !link.has_brief_room() {
            return false;
        }
        let Some(segment) = segments.only() else {
            return false;
        };
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let Some((memory, offset)) = reach.local(segment.handle, segment.addr, len) else {
            return false;
        };
        let Ok(words) = memory.read_short(offset, len as usize) else {
            return false;
        };
        let message = Brief {
            seq,
            len,
            words,
            immediate,
        };
        dispatch(link, message)
    }

    /// Takes the message at the front of the link as the completion of the receive at the front of its queue.
    #[inline(always)]
    pub(super) fn receive_brief(&self, core: &mut Core<D>) -> Option<Completion> {
        // All that can be looked up is looked up before the look at the link, which waits for the line that the peer wrote.
        let plain = core.inbound.is_none()
            && core.sleepers == 0
            && !core.awaits_acks()
            && self.cq(Queue::Recv).is_none()
            && core.notify[Queue::Recv as usize].is_empty();
        let (ticket, segment) = core.recv.plain_front().filter(|_| plain)?;
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let (memory, offset) = reach.writable(segment.handle, segment.addr, segment.len)?;
        let link = core.link.as_mut()?;
        let Brief {
            len,
            words,
            immediate,
            ..
        } = link.brief(LOOKS)?;
        if len > segment.len || memory.write_short(offset, words, len as usize).is_err() {
            return None;
        }
        link.take_brief();
        core.dry = false;
        core.recv.drop_front();
        let outcome = Outcome::done(CompletedOp::Receive, len, immediate);
        self.write_outcome(core, ticket, &outcome);
        Some(Completion {
            token: ticket.token(),
            status: outcome.status,
            length: len,
            immediate,
        })
    }
}

/// As [`SoftVi::send_brief`], of bytes that are not registered.
#[inline(always)]
pub(super) fn send_bytes<L: Link>(
    link: &mut L,
    seq: u32,
    bytes: &[u8],
    immediate: Option<u32>,
) -> bool {
    let len = bytes.len() as u32;
    if !Brief::fits(len, immediate) || !link.has_brief_room() {
        return false;
    }
    let message = Brief {
        seq,
        len,
        words: Brief::words(bytes),
        immediate,
    };
    dispatch(link, message)
}

#[inline(always)]
fn dispatch<L: Link>(link: &mut L, message: Brief) -> bool {
    let sent = link.send_brief(message);
    if sent {
        link.flush();
    }
    sent
}

/// A look at lines that nobody has written takes 2 ns, and to call again for the next one 30: what comes in between is found late. 8 bytes one way
/// are 10 ns quicker with 8 looks than with one.
pub(super) const LOOKS: u32 = 8;
