//! Messages without descriptors: copied by who sends them and by who waits for them; and held in the link while there is none.

use proto::frame::{Head, Kind};

use super::brief;
use super::core::Core;
use super::device::Device;
use super::link::{Goodbye, Link};
use super::transmit::commit_whole;
use super::vi::SoftVi;
use crate::provider::Received;
use crate::{Done, Queue};

impl<D: Device> SoftVi<D> {
    /// Sends a message that fits in one frame and need not wait, from any memory.
    #[inline(always)]
    pub(super) fn send_bytes(
        &self,
        core: &mut Core<D>,
        bytes: &[u8],
        immediate: Option<u32>,
    ) -> bool {
        // Who awaits acknowledgements keeps what is not acknowledged, and that is descriptors.
        if core.awaits_acks() || core.send.next() != core.send.len() {
            return false;
        }
        let (Some(link), Ok(len)) = (&mut core.link, u32::try_from(bytes.len())) else {
            return false;
        };
        if len > link.frame_max() || len > core.attributes.max_transfer_size {
            return false;
        }
        let seq = core.outbound.next_seq();
        if !brief::send_bytes(link, seq, bytes, immediate) {
            if !link.reserve(len) || link.fill_bytes(bytes).is_err() {
                return false;
            }
            commit_whole(link, seq, immediate, len);
        }
        core.outbound.seq = seq;
        true
    }

    /// The next message: from its descriptor if it has one already, else straight into the caller's memory if it fits there.
    #[inline(always)]
    pub(super) fn receive_bytes(
        &self,
        core: &mut Core<D>,
        into: &mut [u8],
        looks: u32,
    ) -> Received {
        if let Some(completion) = core.recv.take() {
            return Received::Posted(Done::Completed(completion));
        }
        if let Some(link) = &mut core.link {
            link.before_look(true);
        }
        match Self::take_front(core, into, looks) {
            Some((length, immediate)) => {
                if Self::has_to_send(core) {
                    self.pump(core);
                }
                Received::Copied { length, immediate }
            }
            None => Received::Posted(self.take_posted(core, Queue::Recv)),
        }
    }

    /// Takes the message at the front of the link, if it is whole and nobody else is to have it.
    #[inline(always)]
    fn take_front(core: &mut Core<D>, into: &mut [u8], looks: u32) -> Option<(u32, Option<u32>)> {
        let awaited = core.inbound.is_some() || !core.notify[Queue::Recv as usize].is_empty();
        if awaited || core.awaits_acks() {
            return None;
        }
        let link = core.link.as_mut()?;
        if let Some(message) = link.brief(looks)
            && let Some(place) = into.get_mut(..message.len as usize)
        {
            message.read(place);
            link.take_brief();
            core.dry = false;
            return Some((message.len, message.immediate));
        }
        if !link.ready() {
            return None;
        }
        let head = link.peek().ok()??;
        let is_whole = head.kind == Kind::Send && head.len == head.msg_len && head.offset == 0;
        let place = into.get_mut(..head.len as usize).filter(|_| is_whole)?;
        link.read_bytes(place).ok()?;
        link.release();
        core.dry = false;
        Some((head.len, head.immediate))
    }

    /// Whether a message that begins here waits for a receive.
    #[inline]
    pub(super) fn is_held(core: &Core<D>, head: &Head) -> bool {
        core.holds
            && head.kind == Kind::Send
            && head.offset == 0
            && core.recv.first_open().is_none()
    }

    /// Whether the message at the front of the link waits for a receive.
    pub(super) fn holds_back(&self, core: &mut Core<D>) -> bool {
        let front = core.link.as_mut().map(Link::peek);
        matches!(front, Some(Ok(Some(head))) if Self::is_held(core, &head))
    }

    /// The peer is gone, and what it sent has not been taken yet: nobody will take what is queued for it.
    #[cold]
    pub(super) fn give_up_sends(&self, core: &mut Core<D>, why: Goodbye) {
        core.outbound.message = None;
        Self::end_sends(core, Some(why));
        self.settle(core, Queue::Send);
    }
}
