//! What comes in: where it belongs, and what it means.

use std::collections::VecDeque;

use super::body::{AtomicRequest, AtomicResponse, ReadRequest};
use super::code::{RdmapError, of_write};
use super::config::{Config, NoBuffer};
use super::incoming::{Incoming, Kind};
use super::opcode::{Carries, Opcode};
use super::outbound::Outbound;
use super::response::Response;
use super::terminate::{Terminate, Violation};
use super::work::{Receive, WorkId};
use crate::ddp::{Access, Arrival, DdpError, Memory, Msn, Queue, Spot, Stag, Untagged};
use crate::mpa::{Place, Role, Terms};

/// A message that has come into a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Of the receive.
    pub id: WorkId,
    /// Its octets, at the beginning of the receive; none of immediate data.
    pub len: u32,
    /// The sender asked to wake up for it.
    pub solicited: bool,
    /// The right that it took back.
    pub invalidated: Option<Stag>,
    /// Immediate data.
    pub immediate: Option<[u8; 8]>,
    /// With immediate data, the octets that the peer wrote since the message before.
    pub written: u64,
}

/// The receiving half of a stream, above FPDUs.
#[derive(Debug)]
pub(super) struct Inbound {
    receives: Queue<Receive>,
    /// Of the next Read or Atomic Request.
    request_msn: Msn,
    /// Of the next Atomic Response.
    answer_msn: Msn,
    /// Requests that are not answered entirely.
    responses: VecDeque<Response>,
    responses_max: u16,
    extensions: bool,
    no_buffer: NoBuffer,
    /// The first message may be a Send for nobody.
    may_be_rtr: bool,
    /// Octets of the Writes since the last message.
    written: u64,
}

/// Where a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Its payload belongs here.
    To(Place),
    /// There is no payload to place.
    Nowhere,
    /// Not yet: a receive is to be posted first.
    Blocked,
}

/// What a segment brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Brought {
    /// Nothing that a user hears of.
    Nothing,
    /// A message.
    Message(Received),
    /// The end.
    Terminate(Box<Terminate>),
}

impl Inbound {
    pub(super) fn new(terms: &Terms, config: &Config) -> Self {
        Self {
            receives: Queue::new(Arrival::Ordered, Msn::FIRST),
            request_msn: Msn::FIRST,
            answer_msn: Msn::FIRST,
            responses: VecDeque::new(),
            responses_max: terms.depths.ird,
            extensions: config.extensions,
            no_buffer: config.no_buffer,
            may_be_rtr: terms.role == Role::Responder && terms.rtr.send,
            written: 0,
        }
    }

    pub(super) fn post(&mut self, receive: Receive) {
        self.receives.post(receive, receive.capacity);
    }

    pub(super) fn flush(&mut self) -> impl Iterator<Item = WorkId> + '_ {
        self.responses.clear();
        self.receives.drain().map(|receive| receive.id)
    }

    pub(super) fn extensions(&self) -> bool {
        self.extensions
    }

    pub(super) fn responses(&mut self) -> &mut VecDeque<Response> {
        &mut self.responses
    }

    /// Octets of the receive behind a segment, if nothing has come into them: [`Queue::free_behind`].
    pub(super) fn free_behind(&self, header: &Untagged, len: u32) -> u32 {
        self.receives.free_behind(header, len)
    }

    pub(super) fn owes_nothing(&self) -> bool {
        self.responses.is_empty()
    }

    /// Where the segment goes, if it may. Changes nothing.
    pub(super) fn way(
        &self,
        incoming: &Incoming,
        outbound: &Outbound,
        memory: &impl Memory,
    ) -> Result<Way, Violation> {
        let len = incoming.payload_len;
        let blamed = |error| incoming.blamed(error);
        match &incoming.kind {
            Kind::Write(_) if len == 0 => Ok(Way::Nowhere),
            Kind::Write(header) => memory
                .grant(Access::RemoteWrite, header.stag, header.to, len)
                .map(Way::To)
                .map_err(|fault| blamed(of_write(fault).into())),
            Kind::ReadResponse(header) => outbound
                .outstanding()
                .spot(header, len)
                .map(Way::To)
                .map_err(blamed),
            Kind::Send(opcode, header) => self.way_of_send(incoming, *opcode, header),
            Kind::ReadRequest(header) | Kind::AtomicRequest(header) => {
                self.next_in_turn(header, self.request_msn)
                    .and_then(|()| {
                        let room = self.responses.len() < usize::from(self.responses_max);
                        room.then_some(()).ok_or(DdpError::NoBuffer)
                    })
                    .map_err(|error| blamed(error.into()))?;
                Ok(Way::Nowhere)
            }
            Kind::AtomicResponse(header) => {
                self.next_in_turn(header, self.answer_msn)
                    .map_err(|error| blamed(error.into()))?;
                Ok(Way::Nowhere)
            }
            Kind::Terminate(header) => {
                self.next_in_turn(header, Msn::FIRST)
                    .and_then(|()| {
                        let whole = header.mo == 0;
                        whole.then_some(()).ok_or(DdpError::InvalidOffset)
                    })
                    .map_err(|error| blamed(error.into()))?;
                Ok(Way::Nowhere)
            }
        }
    }

    fn next_in_turn(&self, header: &Untagged, msn: Msn) -> Result<(), DdpError> {
        (header.msn == msn).then_some(()).ok_or(DdpError::MsnRange)
    }

    fn way_of_send(
        &self,
        incoming: &Incoming,
        opcode: Opcode,
        header: &Untagged,
    ) -> Result<Way, Violation> {
        if self.is_rtr(incoming, header) {
            return Ok(Way::Nowhere);
        }
        let is_body = matches!(opcode.row().carries, Carries::Body(_));
        if is_body {
            incoming.body::<8>(header)?;
        }
        let len = if is_body { 0 } else { incoming.payload_len };
        match self.receives.spot(header, len) {
            Ok(Spot::In(receive)) if len > 0 => {
                Ok(Way::To(receive.into.advanced(header.mo.into())))
            }
            Ok(_) => Ok(Way::Nowhere),
            Err(DdpError::NoBuffer) if self.no_buffer == NoBuffer::Wait => Ok(Way::Blocked),
            Err(error) => Err(incoming.blamed(error)),
        }
    }

    /// Whether this is the Send that says only that the initiator is there.
    fn is_rtr(&self, incoming: &Incoming, header: &Untagged) -> bool {
        self.may_be_rtr
            && incoming.payload_len == 0
            && header.last
            && header.msn == Msn::FIRST
            && header.mo == 0
            && incoming.has_payload()
    }

    /// The segment has gone its [way](Self::way).
    pub(super) fn handle_placed<M: Memory>(
        &mut self,
        incoming: &Incoming,
        outbound: &mut Outbound,
        memory: &mut M,
    ) -> Result<Brought, Violation> {
        match &incoming.kind {
            Kind::Write(_) => {
                let len = u64::from(incoming.payload_len);
                self.written = self.written.saturating_add(len);
            }
            Kind::ReadResponse(header) => {
                outbound.handle_response(header, incoming.payload_len);
            }
            Kind::Send(opcode, header) => {
                return self.handle_send(incoming, *opcode, header, memory);
            }
            Kind::ReadRequest(header) => self.handle_read(incoming, header, memory)?,
            Kind::AtomicRequest(header) => self.handle_atomic(incoming, header, memory)?,
            Kind::AtomicResponse(header) => {
                let response = AtomicResponse::decode(&incoming.body(header)?);
                self.answer_msn = self.answer_msn.plus(1);
                outbound
                    .handle_atomic_response(&response)
                    .map_err(|error| incoming.blamed(error))?;
            }
            Kind::Terminate(header) if header.last => {
                let terminate = Terminate::decode(incoming.bodies_octets());
                return Ok(Brought::Terminate(Box::new(terminate)));
            }
            Kind::Terminate(_) => {
                return Err(incoming.blamed(RdmapError::Unspecified));
            }
        }
        self.may_be_rtr = false;
        Ok(Brought::Nothing)
    }

    /// The number of the next Send, if none of its octets has come, and its receive is `id` and takes `len`.
    #[inline]
    pub(super) fn awaits_whole(&self, id: WorkId, len: u32) -> Option<Msn> {
        let is_rtr = self.may_be_rtr && len == 0;
        let (receive, capacity) = self.receives.untouched().filter(|_| !is_rtr)?;
        (receive.id == id && len <= capacity).then(|| self.receives.next_msn())
    }

    /// Where the `n`th Send from now goes, how many octets it may have, and how many of the first have come.
    pub(super) fn vacancy(&self, n: usize) -> Option<(Place, u32, u32)> {
        let (receive, capacity, done) = self.receives.vacancy(n)?;
        Some((receive.into, capacity, done))
    }

    /// It has come, in one segment, and is in its place.
    #[inline]
    pub(super) fn deliver_whole(&mut self) {
        self.may_be_rtr = false;
        self.written = 0;
        self.receives.deliver_whole();
    }

    fn handle_send(
        &mut self,
        incoming: &Incoming,
        opcode: Opcode,
        header: &Untagged,
        memory: &mut impl Memory,
    ) -> Result<Brought, Violation> {
        if self.is_rtr(incoming, header) {
            self.may_be_rtr = false;
            self.receives.skip();
            return Ok(Brought::Nothing);
        }
        self.may_be_rtr = false;
        let immediate = match opcode.row().carries {
            Carries::Body(_) => Some(incoming.body::<8>(header)?),
            Carries::Payload | Carries::Terminate => None,
        };
        if immediate.is_some() {
            memory.handle_told();
        }
        let len = immediate.map_or(incoming.payload_len, |_| 0);
        self.receives
            .handle_placed(header, len)
            .map_err(|error| incoming.blamed(error))?;
        let Some(delivered) = self.receives.deliver() else {
            return Ok(Brought::Nothing);
        };
        let written = std::mem::take(&mut self.written);
        let invalidated = opcode.row().invalidates.then_some(Stag(header.ulp_word));
        let invalidation = invalidated.map_or(Ok(()), |stag| memory.invalidate(stag));
        if let Err(fault) = invalidation {
            // The receive is not completed; it is flushed with the others.
            self.receives.post(delivered.buffer, 0);
            return Err(incoming.blamed(fault));
        }
        Ok(Brought::Message(Received {
            id: delivered.buffer.id,
            len: delivered.len,
            solicited: opcode.row().solicited,
            invalidated,
            immediate,
            written: immediate.map_or(0, |_| written),
        }))
    }

    fn handle_read(
        &mut self,
        incoming: &Incoming,
        header: &Untagged,
        memory: &impl Memory,
    ) -> Result<(), Violation> {
        let request = ReadRequest::decode(&incoming.body(header)?);
        let ReadRequest { source, len, .. } = request;
        if len > 0 {
            memory
                .grant(Access::RemoteRead, source.stag, source.to, len)
                .map_err(|fault| incoming.blamed(RdmapError::Protection(fault)))?;
        }
        self.request_msn = self.request_msn.plus(1);
        self.responses.push_back(Response::Read {
            request,
            sent: 0,
            asked: incoming.offender(),
        });
        Ok(())
    }

    fn handle_atomic(
        &mut self,
        incoming: &Incoming,
        header: &Untagged,
        memory: &mut impl Memory,
    ) -> Result<(), Violation> {
        let blamed = |error: RdmapError| incoming.blamed(error);
        let request = AtomicRequest::decode(&incoming.body(header)?)
            .ok_or_else(|| blamed(RdmapError::Unspecified))?;
        let AtomicRequest {
            operation,
            id,
            target,
        } = request;
        if !target.to.is_multiple_of(8) {
            return Err(blamed(RdmapError::Stream));
        }
        let place = memory
            .grant(Access::RemoteAtomic, target.stag, target.to, 8)
            .map_err(|fault| blamed(RdmapError::Protection(fault)))?;
        let original = memory
            .atomic(place, |original| operation.apply(original))
            .map_err(|_| blamed(RdmapError::Local))?;
        self.request_msn = self.request_msn.plus(1);
        self.responses
            .push_back(Response::Atomic(AtomicResponse { id, original }));
        Ok(())
    }
}
