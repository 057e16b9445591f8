//! Answers to what the peer has asked, and the peer's to us.

use std::collections::VecDeque;

use super::super::body::{AtomicResponse, Remote};
use super::super::code::RdmapError;
use super::super::opcode::Opcode;
use super::super::response::Response;
use super::super::terminate::Violation;
use super::{NoPayload, Outbound, Stage};
use crate::ddp::{Access, Memory, QN_ATOMIC_RESPONSE, TAGGED_LEN, Tagged, Untagged};

impl Outbound {
    /// One segment of the first response; whether it was the last.
    pub(super) fn frame_response(
        &mut self,
        responses: &mut VecDeque<Response>,
        memory: &impl Memory,
    ) -> Result<bool, Violation> {
        let last = match responses.front_mut() {
            None => true,
            Some(Response::Atomic(response)) => {
                let response = *response;
                self.frame_atomic_response(&response)?;
                true
            }
            Some(Response::Read {
                request,
                sent,
                asked,
            }) => {
                let segment = self.cut(request.len.into(), TAGGED_LEN, *sent);
                let rest = request.after(segment.offset);
                let place = if segment.len == 0 {
                    None
                } else {
                    // Again for every segment: the right may have been taken back.
                    let Remote { stag, to } = rest.source;
                    let granted = memory.grant(Access::RemoteRead, stag, to, segment.len);
                    asked.request = Some(rest);
                    Some(granted.map_err(|fault| asked.blamed(RdmapError::Protection(fault)))?)
                };
                let header = Tagged {
                    last: segment.last,
                    ulp: Opcode::ReadResponse.control(),
                    stag: rest.sink.stag,
                    to: rest.sink.to,
                };
                let payload = place.map(|place| (place, segment.len));
                let framed = if self.copies_reads {
                    self.framer.frame_copied(&header.encode(), payload, memory)
                } else {
                    self.framer.frame(&header.encode(), payload, memory)
                };
                framed.map_err(|_| RdmapError::Local)?;
                *sent = segment.offset + segment.len;
                segment.last
            }
        };
        if last {
            responses.pop_front();
        }
        Ok(last)
    }

    fn frame_atomic_response(&mut self, response: &AtomicResponse) -> Result<(), Violation> {
        let header = Untagged {
            last: true,
            ulp: Opcode::AtomicResponse.control(),
            ulp_word: 0,
            queue: QN_ATOMIC_RESPONSE,
            msn: self.answer_msn,
            mo: 0,
        };
        let mut head = header.encode();
        head.push(&response.encode());
        self.answer_msn = self.answer_msn.plus(1);
        self.framer
            .frame(&head, None, &NoPayload)
            .map_err(|_| RdmapError::Local.into())
    }

    /// A segment of a Read Response is in its place.
    pub(in crate::rdmap) fn handle_response(&mut self, header: &Tagged, payload_len: u32) {
        if let Some(seq) = self.outstanding.handle_placed(header, payload_len) {
            self.answer(seq, None);
        }
    }

    pub(in crate::rdmap) fn handle_atomic_response(
        &mut self,
        response: &AtomicResponse,
    ) -> Result<(), RdmapError> {
        let seq = self.outstanding.answered(response)?;
        self.answer(seq, Some(response.original));
        Ok(())
    }

    fn answer(&mut self, seq: u64, original: Option<u64>) {
        if let Some(entry) = self.entry(seq) {
            let value = original.unwrap_or_else(|| entry.operation.payload_len());
            entry.stage = Stage::Answered(value);
        }
    }
}
