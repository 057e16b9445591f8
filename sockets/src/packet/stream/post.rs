//! Packets on their way to the NIC.

use proto::packet::{Kind, Packet, WAKEUP_LEN};
use via::{Completion, Descriptor, Done};

use super::Stream;
use super::inner::Inner;

impl Stream {
    /// Sends what the protocol has to say.
    #[inline]
    pub(super) fn transmit(&self, inner: &mut Inner) {
        while let Some(packet) = inner.talk.poll_transmit() {
            if inner.lost {
                return;
            }
            if packet.kind == Kind::Wakeup {
                self.send_wakeup(inner, packet);
            } else if !self.post_at_once(&[], packet) {
                self.post(inner, packet, Descriptor::send(), NO_SLOT);
            }
        }
    }

    fn send_wakeup(&self, inner: &mut Inner, packet: Packet) {
        let Some(slot) = inner.free.pop() else {
            return self.lose(inner);
        };
        let start = slot * self.stride;
        let bytes = inner.wakeup.encode();
        if self
            .outgoing
            .memory()
            .write(start as usize, &bytes)
            .is_err()
        {
            return self.lose(inner);
        }
        let range = start..start + WAKEUP_LEN as u32;
        let descriptor = Descriptor::send().segment(&self.outgoing, range);
        self.post(inner, packet, descriptor, slot);
    }

    /// Posts a packet; `slot` is free again when the NIC has it.
    #[inline]
    pub(super) fn post(
        &self,
        inner: &mut Inner,
        packet: Packet,
        descriptor: Descriptor<'_>,
        slot: u32,
    ) {
        if inner.unsent >= UNSENT_MAX {
            self.reap(inner);
        }
        let descriptor = descriptor.immediate(packet.encode());
        match self.vi.post_send(&descriptor, slot.into()) {
            Ok(()) => inner.unsent += 1,
            Err(_) => self.lose(inner),
        }
    }

    /// Hands a packet to a NIC that copies, from wherever its bytes are; `false` if it has to be posted.
    #[inline(always)]
    pub(super) fn post_at_once(&self, bytes: &[u8], packet: Packet) -> bool {
        self.adapter.copies && matches!(self.vi.send_copied(bytes, Some(packet.encode())), Ok(true))
    }

    /// Notices sends that are done.
    #[inline]
    pub(super) fn reap(&self, inner: &mut Inner) {
        while inner.unsent > 0 {
            let completion = match self.vi.send_done() {
                Ok(Done::Completed(completion)) => completion,
                Ok(Done::NotDone) => return,
                Ok(Done::Empty) | Err(_) => {
                    inner.unsent = 0;
                    return;
                }
            };
            Self::note_sent(inner, completion);
        }
    }

    /// A posted send has left, or will not.
    #[inline]
    pub(super) fn note_sent(inner: &mut Inner, completion: Completion) {
        inner.unsent = inner.unsent.saturating_sub(1);
        if completion.token != u64::from(NO_SLOT) {
            inner.free.push(completion.token as u32);
        }
        if completion.ok().is_err() {
            // It also shows on the other queue; but behind what came before, which the program may never read.
            inner.note_break();
            inner.is_refused = true;
        }
    }
}

/// Of packets that need no buffer.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Sends in a row before those that are done are looked for.
const UNSENT_MAX: u32 = 16;
