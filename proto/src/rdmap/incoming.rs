//! A segment that has come, read as far as it can be without knowing the stream.

use super::body::ReadRequest;
use super::code::{Code, RdmapError};
use super::opcode::{Carries, Opcode};
use super::terminate::{Offender, Violation};
use crate::ddp::{
    DdpError, Header, HeaderOctets, QN_ATOMIC_RESPONSE, QN_TERMINATE, TAGGED_LEN, Tagged,
    UNTAGGED_LEN, Untagged,
};

/// A segment whose header fits its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incoming {
    pub(super) kind: Kind,
    pub(super) payload_len: u32,
    header_len: u8,
    /// The header and what of the body was there.
    head: HeaderOctets,
}

/// Which message it is of. The variants have the headers that belong to them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Write(Tagged),
    ReadResponse(Tagged),
    /// A Send or immediate data.
    Send(Opcode, Untagged),
    ReadRequest(Untagged),
    AtomicRequest(Untagged),
    AtomicResponse(Untagged),
    Terminate(Untagged),
}

impl Incoming {
    /// Reads the beginning of a ULPDU of `ulpdu_len` octets: its header, and the body if it has
    /// one.
    pub(super) fn parse(
        head: HeaderOctets,
        ulpdu_len: u16,
        extensions: bool,
    ) -> Result<Self, Violation> {
        let is_tagged = head.first().is_some_and(|control| control & 0x80 != 0);
        let header_len = if is_tagged { TAGGED_LEN } else { UNTAGGED_LEN };
        let Some(raw) = head.get(..header_len) else {
            // Nothing to echo.
            return Err(DdpError::Local.into());
        };
        let blamed = |error: Code| {
            let offender = Offender {
                ulpdu_len,
                header: HeaderOctets::of(raw),
                request: None,
            };
            offender.blamed(error)
        };
        let header = Header::decode(raw).map_err(|error| blamed(error.into()))?;
        let last_queue = if extensions {
            QN_ATOMIC_RESPONSE
        } else {
            QN_TERMINATE
        };
        if let Header::Untagged(untagged) = header
            && untagged.queue > last_queue
        {
            return Err(blamed(DdpError::InvalidQueue.into()));
        }
        let opcode = Opcode::from_control(header.ulp()).map_err(|error| blamed(error.into()))?;
        let kind = Kind::new(opcode, header)
            .filter(|_| extensions || !opcode.is_extension())
            .ok_or_else(|| blamed(RdmapError::UnexpectedOpcode.into()))?;
        Ok(Self {
            kind,
            payload_len: u32::from(ulpdu_len) - header_len as u32,
            header_len: header_len as u8,
            head,
        })
    }

    pub(super) fn header_len(&self) -> usize {
        self.header_len.into()
    }

    /// It goes wrong in this way.
    #[cold]
    pub(super) fn blamed(&self, error: impl Into<Code>) -> Violation {
        self.offender().blamed(error)
    }

    /// What a Terminate says of it.
    pub(super) fn offender(&self) -> Offender {
        let header = self.head.get(..self.header_len()).unwrap_or_default();
        let request = match self.kind {
            Kind::ReadRequest(_) => self.bodies_octets().first_chunk(),
            _ => None,
        };
        Offender {
            ulpdu_len: self.payload_len as u16 + u16::from(self.header_len),
            header: HeaderOctets::of(header),
            request: request.map(ReadRequest::decode),
        }
    }

    /// Memory of ours that should have been there was not.
    pub(super) fn local_failure(&self) -> Violation {
        self.blamed(DdpError::Local)
    }

    /// The body of a message that has one of this length, and is one segment.
    pub(super) fn body<const N: usize>(&self, header: &Untagged) -> Result<[u8; N], Violation> {
        let whole = header.last && header.mo == 0 && self.payload_len as usize == N;
        let body = self.bodies_octets().first_chunk().filter(|_| whole);
        body.copied()
            .ok_or_else(|| self.blamed(RdmapError::Unspecified))
    }

    /// What follows the header, as far as it was looked at.
    pub(super) fn bodies_octets(&self) -> &[u8] {
        self.head.get(self.header_len()..).unwrap_or_default()
    }

    /// Whether a user's octets follow the header.
    pub(super) fn has_payload(&self) -> bool {
        match self.kind {
            Kind::Write(_) | Kind::ReadResponse(_) => true,
            Kind::Send(opcode, _) => opcode.row().carries == Carries::Payload,
            _ => false,
        }
    }
}

impl Kind {
    /// `None` if the message does not travel under such a header.
    fn new(opcode: Opcode, header: Header) -> Option<Self> {
        let untagged = match header {
            Header::Tagged(tagged) => {
                return match opcode {
                    Opcode::Write => Some(Self::Write(tagged)),
                    Opcode::ReadResponse => Some(Self::ReadResponse(tagged)),
                    _ => None,
                };
            }
            Header::Untagged(untagged) => untagged,
        };
        if opcode.row().queue != Some(untagged.queue) {
            return None;
        }
        Some(match opcode {
            Opcode::Write | Opcode::ReadResponse => return None,
            Opcode::ReadRequest => Self::ReadRequest(untagged),
            Opcode::AtomicRequest => Self::AtomicRequest(untagged),
            Opcode::AtomicResponse => Self::AtomicResponse(untagged),
            Opcode::Terminate => Self::Terminate(untagged),
            Opcode::Send
            | Opcode::SendInvalidate
            | Opcode::SendSolicited
            | Opcode::SendSolicitedInvalidate
            | Opcode::Immediate
            | Opcode::ImmediateSolicited => Self::Send(opcode, untagged),
        })
    }
}
