//! The segments of works.

use super::super::body::{AtomicRequest, ReadRequest};
use super::super::code::RdmapError;
use super::super::opcode::Opcode;
use super::super::response::AskedFor;
use super::super::terminate::Violation;
use super::super::work::{Operation, Work};
use super::{Outbound, Stage, len_of, request_id};
use crate::ddp::{
    Cut, HeaderOctets, Memory, QN_REQUEST, QN_SEND, Segment, Stag, TAGGED_LEN, Tagged,
    UNTAGGED_LEN, Untagged,
};
use crate::mpa::{Crc, Place, ULPDU_APART_MAX};

impl Outbound {
    /// One segment of the next work; whether it was the last.
    pub(super) fn frame_work(&mut self, memory: &impl Memory) -> Result<bool, Violation> {
        let seq = self.next;
        let Some((operation, sent)) = self.entry(seq).and_then(|entry| match entry.stage {
            Stage::Waiting(sent) => Some((entry.operation, sent)),
            Stage::Sent(_) | Stage::Answered(_) => None,
        }) else {
            return Ok(true);
        };
        let (head, payload, segment) = self.segment_of(seq, &operation, sent);
        let framed = if segment.len <= self.inline_max {
            self.framer.frame_copied(&head, payload, memory)
        } else {
            self.framer.frame(&head, payload, memory)
        };
        framed.map_err(|_| RdmapError::Local)?;
        let end = self.framer.position();
        if let Some(entry) = self.entry(seq) {
            entry.stage = if segment.last {
                Stage::Sent(end)
            } else {
                Stage::Waiting(segment.offset + segment.len)
            };
        }
        if segment.last {
            self.next += 1;
            self.handle_message_sent(seq, &operation);
        }
        Ok(segment.last)
    }

    /// [`Engine::frame_short`](crate::rdmap::Engine::frame_short).
    #[inline(always)]
    pub(in crate::rdmap) fn frame_short(
        &mut self,
        len: u32,
        invalidate: Option<Stag>,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Option<&[u8]> {
        let ulpdu_len = len as usize + UNTAGGED_LEN;
        if !self.is_alone() || len > SHORT_MAX || ulpdu_len > usize::from(self.mulpdu) {
            return None;
        }
        let header = self.header_of_send(invalidate);
        self.framer
            .frame_apart(ulpdu_len, |ulpdu| match ulpdu.split_first_chunk_mut() {
                Some((head, payload)) => {
                    *head = header.octets();
                    fill(payload)
                }
                None => false,
            })
    }

    /// [`Engine::handle_short_written`](crate::rdmap::Engine::handle_short_written).
    #[inline(always)]
    pub(in crate::rdmap) fn handle_short_written(&mut self, n: usize) {
        self.framer.handle_apart_written(n);
        self.send_msn = self.send_msn.plus(1);
    }

    /// [`Engine::frame_lone`](crate::rdmap::Engine::frame_lone).
    #[inline]
    pub(in crate::rdmap) fn frame_lone(
        &mut self,
        len: u32,
        invalidate: Option<Stag>,
        digest: impl FnOnce(&mut Crc) -> bool,
    ) -> Option<[&[u8]; 2]> {
        let ulpdu_len = len as usize + UNTAGGED_LEN;
        if !self.is_alone() || ulpdu_len > usize::from(self.mulpdu) {
            return None;
        }
        let header = self.header_of_send(invalidate);
        self.framer.frame_around(&header.octets(), len, digest)
    }

    /// [`Engine::handle_lone_written`](crate::rdmap::Engine::handle_lone_written).
    #[inline]
    pub(in crate::rdmap) fn handle_lone_written(&mut self, n: usize, work: &Work) -> bool {
        let Operation::Send { from, .. } = work.operation else {
            return false;
        };
        let is_whole = self.framer.handle_around_written(n, from);
        if !is_whole {
            let end = self.framer.position();
            self.push(Some(work.id), work.operation, work.fence);
            if let Some(entry) = self.entries.back_mut() {
                entry.stage = Stage::Sent(end);
            }
            self.next += 1;
        }
        self.send_msn = self.send_msn.plus(1);
        is_whole
    }

    fn is_alone(&self) -> bool {
        self.entries.is_empty() && self.current.is_none()
    }

    /// Of one that is a single segment.
    #[inline]
    fn header_of_send(&self, invalidate: Option<Stag>) -> Untagged {
        let opcode = match invalidate {
            Some(_) => Opcode::SendInvalidate,
            None => Opcode::Send,
        };
        Untagged {
            last: true,
            ulp: opcode.control(),
            ulp_word: invalidate.map_or(0, |stag| stag.0),
            queue: QN_SEND,
            msn: self.send_msn,
            mo: 0,
        }
    }

    fn handle_message_sent(&mut self, seq: u64, operation: &Operation) {
        match *operation {
            Operation::Send { .. } | Operation::Immediate { .. } => {
                self.send_msn = self.send_msn.plus(1);
            }
            Operation::Write { .. } => {}
            Operation::Read {
                into, len, sink, ..
            } => {
                self.request_msn = self.request_msn.plus(1);
                let read = AskedFor::Read {
                    into,
                    sink,
                    len: len_of(len),
                    come: 0,
                };
                self.outstanding.push(seq, read);
            }
            Operation::Atomic { .. } => {
                self.request_msn = self.request_msn.plus(1);
                let id = request_id(seq);
                self.outstanding.push(seq, AskedFor::Atomic { id });
            }
        }
    }

    fn segment_of(
        &self,
        seq: u64,
        operation: &Operation,
        sent: u32,
    ) -> (HeaderOctets, Option<(Place, u32)>, Segment) {
        let ulp = operation.opcode().control();
        let untagged = |queue, msn, segment: &Segment, word| Untagged {
            last: segment.last,
            ulp,
            ulp_word: word,
            queue,
            msn,
            mo: segment.offset,
        };
        let whole = Segment {
            offset: 0,
            len: 0,
            last: true,
        };
        match *operation {
            Operation::Send {
                from,
                len,
                invalidate,
                ..
            } => {
                let segment = self.cut(len, UNTAGGED_LEN, sent);
                let word = invalidate.map_or(0, |stag| stag.0);
                let header = untagged(QN_SEND, self.send_msn, &segment, word);
                (header.encode(), payload(from, &segment), segment)
            }
            Operation::Write { from, len, to } => {
                let segment = self.cut(len, TAGGED_LEN, sent);
                let header = Tagged {
                    last: segment.last,
                    ulp,
                    stag: to.stag,
                    to: to.advanced(segment.offset).to,
                };
                (header.encode(), payload(from, &segment), segment)
            }
            Operation::Read {
                len, sink, source, ..
            } => {
                let request = ReadRequest {
                    sink,
                    len: len_of(len),
                    source,
                };
                let mut head = untagged(QN_REQUEST, self.request_msn, &whole, 0).encode();
                head.push(&request.encode());
                (head, None, whole)
            }
            Operation::Immediate { data, .. } => {
                let mut head = untagged(QN_SEND, self.send_msn, &whole, 0).encode();
                head.push(&data);
                (head, None, whole)
            }
            Operation::Atomic { operation, target } => {
                let request = AtomicRequest {
                    operation,
                    id: request_id(seq),
                    target,
                };
                let mut head = untagged(QN_REQUEST, self.request_msn, &whole, 0).encode();
                head.push(&request.encode());
                (head, None, whole)
            }
        }
    }

    pub(super) fn cut(&self, len: u64, header_len: usize, sent: u32) -> Segment {
        let len = len_of(len);
        let mut mulpdu = self.mulpdu;
        if self.even_segments {
            let room = u32::from(mulpdu).saturating_sub(header_len as u32).max(1);
            let even = len.div_ceil(len.div_ceil(room).max(1));
            mulpdu = even.min(room) as u16 + header_len as u16;
        }
        let mut cut = Cut::new(len, mulpdu, header_len).starting_at(sent);
        cut.next().unwrap_or(Segment {
            offset: sent,
            len: 0,
            last: true,
        })
    }
}

/// Octets of a message that is [framed apart](Outbound::frame_short).
const SHORT_MAX: u32 = 512;
const _: () = assert!(SHORT_MAX as usize + UNTAGGED_LEN <= ULPDU_APART_MAX);

fn payload(from: Place, segment: &Segment) -> Option<(Place, u32)> {
    (segment.len > 0).then(|| (from.advanced(segment.offset.into()), segment.len))
}
