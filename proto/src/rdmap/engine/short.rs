//! Short messages where nothing else is under way: one segment that leaves, or has come, whole.
//!
//! What is checked is the same. Where anything is out of the ordinary the answer is "no", nothing has changed, and the
//! general way finds and tells it.

use super::super::opcode::Opcode;
use super::super::state::State;
use super::super::work::WorkId;
use super::Engine;
use crate::ddp::{QN_SEND, Stag, UNTAGGED_LEN, Untagged};

impl Engine {
    /// Frames a Send of `len` octets, which `fill` puts where it is told to: the octets to be written, of which the stream
    /// [knows nothing yet](Self::handle_short_written). `None` when it is to be [posted](Self::post), which is always right.
    #[inline(always)]
    pub fn frame_short(
        &mut self,
        len: u32,
        invalidate: Option<Stag>,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Option<&[u8]> {
        if self.state != State::Open {
            return None;
        }
        self.outbound.frame_short(len, invalidate, fill)
    }

    /// The socket took the first `n` octets of what [`frame_short`](Self::frame_short) has just framed, one at least; the others are
    /// [pieces](Self::pieces) from now on. The message is complete, as its octets are the engine's, and has no completion.
    #[inline(always)]
    pub fn handle_short_written(&mut self, n: usize) {
        self.outbound.handle_short_written(n);
    }

    /// Room for what the socket has, if nothing is under way and a short message [may](Self::take_short) be what comes next.
    /// [`handle_filled`](Self::handle_filled) says how much came. `None` where the [space](Self::space) is to be filled.
    #[inline(always)]
    pub fn space_short(&mut self) -> Option<&mut [u8]> {
        let is_plain =
            self.state == State::Open && self.strays.is_empty() && !self.blocked && !self.fin;
        if !is_plain {
            return None;
        }
        let room = self.deframer.fresh()?;
        let most = room.len().min(self.glance);
        room.get_mut(..most)
    }

    /// Delivers a Send if that is all that has come, to the next receive, if that is `id`: `place` puts it there, or refuses. Its octets; no
    /// [action](Self::poll_action) tells of it. `None` when what has come is to be [carried out](Self::handle_arrivals), which is always right.
    #[inline]
    pub fn take_short(&mut self, id: WorkId, place: impl FnOnce(&[u8]) -> bool) -> Option<u32> {
        let is_plain = self.state == State::Open
            && self.diversion.is_none()
            && self.strays.is_empty()
            && self.actions.is_empty()
            && !self.blocked
            && !self.fin;
        if !is_plain {
            return None;
        }
        let (header, payload) = self.deframer.alone()?.split_first_chunk()?;
        let len = payload.len() as u32;
        // All others that mean the same go the general way.
        let expected = Untagged {
            last: true,
            ulp: Opcode::Send.control(),
            ulp_word: 0,
            queue: QN_SEND,
            msn: self.inbound.awaits_whole(id, len)?,
            mo: 0,
        };
        if words(header) != words(&expected.octets()) || !place(payload) {
            return None;
        }
        self.deframer.discard();
        self.inbound.deliver_whole();
        Some(len)
    }
}

/// A header in pieces that are compared quickly.
#[inline]
fn words(octets: &[u8; UNTAGGED_LEN]) -> (u64, u64, u16) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = *octets;
    (
        u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
        u16::from_ne_bytes([q, r]),
    )
}
