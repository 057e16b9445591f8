//! Messages of one segment where nothing else is under way: it leaves, or has come, whole.
//!
//! What is checked is the same. Where anything is out of the ordinary the answer is "no", nothing has changed, and the
//! general way finds and tells it.

use super::super::opcode::Opcode;
use super::super::state::State;
use super::super::work::{Work, WorkId};
use super::Engine;
use super::guess::{Guess, SEAM_MAX};
use super::usual::SEND_LEAD;
use crate::ddp::{Msn, QN_SEND, Stag, UNTAGGED_LEN, Untagged};
use crate::mpa::{Crc, fpdu_len};

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

    /// Frames a Send around `len` octets, which `digest` adds to a checksum: what is to be written before and behind them. Say [how much](Self::handle_lone_written)
    /// was. `None` when it is to be [posted](Self::post), which is always right.
    #[inline]
    pub fn frame_lone(
        &mut self,
        len: u32,
        invalidate: Option<Stag>,
        digest: impl FnOnce(&mut Crc) -> bool,
    ) -> Option<[&[u8]; 2]> {
        if self.state != State::Open {
            return None;
        }
        self.outbound.frame_lone(len, invalidate, digest)
    }

    /// The socket took the first `n` octets of what [`frame_lone`](Self::frame_lone) has just framed, one at least. Whether those are all: the message is
    /// complete then, and has no completion. Else it is as if it had been posted as `work`, which is that Send.
    #[inline]
    pub fn handle_lone_written(&mut self, n: usize, work: &Work) -> bool {
        self.outbound.handle_lone_written(n, work)
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
        let msn = self.inbound.awaits_whole(id, len)?;
        if !is_whole_send(header, msn) || !place(payload) {
            return None;
        }
        self.deframer.discard();
        self.inbound.deliver_whole();
        self.usual.learn_whole(len);
        Some(len)
    }

    /// Whether the message of `len` octets that is [expected](Self::expects_lone) goes to receive `id`.
    #[must_use]
    #[inline]
    pub fn awaits_lone(&self, id: WorkId, len: u32) -> bool {
        self.inbound.awaits_whole(id, len).is_some()
    }

    /// Delivers an [expected](Self::expects_lone) Send of `len` octets that was read to the receive that [awaits it](Self::awaits_lone), behind the first slot of
    /// `seams` and before the second, as a [guess](Self::guess) is: if those `n` octets are all of it and nothing else. `digest` adds the `len` octets to
    /// a checksum. No [action](Self::poll_action) tells of it. Else they are as yet to be [handled](Self::handle_guessed).
    #[inline]
    pub fn take_lone(
        &mut self,
        id: WorkId,
        len: u32,
        n: usize,
        seams: &[u8],
        digest: impl FnOnce(&mut Crc) -> bool,
    ) -> bool {
        let is_taken = self.is_lone(id, len, n, seams, digest);
        if is_taken == Some(true) {
            self.inbound.deliver_whole();
            self.usual.learn_whole(len);
            return true;
        }
        self.guesses.clear();
        if let Some((place, ..)) = self.inbound.vacancy(0) {
            let seam = SEND_LEAD;
            self.guesses.push(Guess { seam, place, len });
        }
        false
    }

    #[inline]
    fn is_lone(
        &mut self,
        id: WorkId,
        len: u32,
        n: usize,
        seams: &[u8],
        digest: impl FnOnce(&mut Crc) -> bool,
    ) -> Option<bool> {
        let behind = n.checked_sub(SEND_LEAD + len as usize)?;
        if n != fpdu_len(UNTAGGED_LEN + len as usize) {
            return None;
        }
        let before: &[u8; SEND_LEAD] = seams.first_chunk()?;
        let behind = seams.get(SEAM_MAX..)?.get(..behind)?;
        let (_, header) = before.split_last_chunk()?;
        let msn = self.inbound.awaits_whole(id, len)?;
        let is_right =
            is_whole_send(header, msn) && self.deframer.pass(before, len as usize, behind, digest);
        Some(is_right)
    }
}

/// Whether that is the header of a Send of one segment, and of that number. All others that mean the same go the general way.
#[inline]
fn is_whole_send(header: &[u8; UNTAGGED_LEN], msn: Msn) -> bool {
    let expected = Untagged {
        last: true,
        ulp: Opcode::Send.control(),
        ulp_word: 0,
        queue: QN_SEND,
        msn,
        mo: 0,
    };
    words(header) == words(&expected.octets())
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
