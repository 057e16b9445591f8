//! Short messages where nothing else is under way: one segment that leaves, or has come, whole.
//!
//! What is checked is the same as on the general way. Where anything is out of the ordinary the answer is "no", nothing has changed, and the
//! general way finds and tells it.

use super::super::opcode::Opcode;
use super::super::state::State;
use super::super::work::WorkId;
use super::Engine;
use crate::ddp::{Header, QN_SEND, Stag, UNTAGGED_LEN};
use crate::mpa::Ready;

impl Engine {
    /// Frames a Send of `len` octets, which `fill` puts where it is told to: they are the engine's then, so it is complete already, and has no
    /// completion. Write the [pieces](Self::pieces), or [withdraw](Self::withdraw_short) it. `false` when it is to be [posted](Self::post), which is always right.
    pub fn send_short(
        &mut self,
        len: u32,
        invalidate: Option<Stag>,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        self.state == State::Open && self.outbound.send_short(len, invalidate, fill)
    }

    /// Takes back what [`send_short`](Self::send_short) has just framed, of which nothing was written.
    pub fn withdraw_short(&mut self) {
        self.outbound.withdraw_short();
    }

    /// Delivers a Send if that is all that has come, to the next receive, if that is `id`: `place` puts it there, or refuses. Its octets; no
    /// [action](Self::poll_action) tells of it. `None` when what has come is to be [carried out](Self::handle_arrivals), which is always right.
    pub fn take_short(&mut self, id: WorkId, place: impl FnOnce(&[u8]) -> bool) -> Option<u32> {
        let is_plain = self.state == State::Open
            && self.diversion.is_none()
            && self.strays.is_empty()
            && self.actions.is_empty()
            && !self.blocked
            && !self.fin;
        if !is_plain || self.deframer.poll() != Ok(Ready::Fpdu) || !self.deframer.is_all() {
            return None;
        }
        let ulpdu = self.deframer.ulpdu();
        let mut pieces = ulpdu.pieces();
        let octets = pieces.next().filter(|_| pieces.next().is_none())?;
        let (header, payload) = octets.split_at_checked(UNTAGGED_LEN)?;
        let Ok(Header::Untagged(header)) = Header::decode(header) else {
            return None;
        };
        let is_send = Opcode::from_control(header.ulp) == Ok(Opcode::Send);
        if !is_send || header.queue != QN_SEND || header.mo != 0 || !header.last {
            return None;
        }
        let len = payload.len() as u32;
        if !self.inbound.expects(id, &header, len) || !place(payload) {
            return None;
        }
        self.deframer.release();
        self.inbound.take_whole(&header, len)
    }
}
