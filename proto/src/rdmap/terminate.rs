//! The Terminate message.

use std::fmt;

use super::body::ReadRequest;
use super::code::{Code, RdmapError};
use super::opcode::Opcode;
use crate::ddp::{Header, HeaderOctets, Msn, QN_TERMINATE, TAGGED_LEN, UNTAGGED_LEN, Untagged};

/// Why a stream ends (RFC 5040 section 4.8), and about which segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminate {
    /// What went wrong.
    pub code: Code,
    /// What the DDP Segment Length field says; implementations differ in what they count.
    pub segment_len: Option<u16>,
    /// The header of the segment that went wrong.
    pub header: Option<HeaderOctets>,
    /// The RDMA Read Request that went wrong, or what was left of it.
    pub request: Option<ReadRequest>,
}

/// The segment that something went wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offender {
    /// Octets of its ULPDU.
    pub(super) ulpdu_len: u16,
    /// Its header, as it came.
    pub(super) header: HeaderOctets,
    /// If it was an RDMA Read Request.
    pub(super) request: Option<ReadRequest>,
}

/// What ends a stream from this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) code: Code,
    pub(super) offender: Option<Box<Offender>>,
}

impl<E: Into<Code>> From<E> for Violation {
    /// Without a segment to blame.
    fn from(error: E) -> Self {
        Self {
            code: error.into(),
            offender: None,
        }
    }
}

impl Offender {
    /// What its header says that it is.
    pub(super) fn opcode(&self) -> Option<Opcode> {
        let control = self.header.get(1)?;
        Opcode::from_control(*control).ok()
    }

    pub(super) fn blamed(self, error: impl Into<Code>) -> Violation {
        Violation {
            code: error.into(),
            offender: Some(Box::new(self)),
        }
    }
}

impl Terminate {
    /// With the headers that belong to the code (RFC 5040 figure 10).
    pub(super) fn about(violation: &Violation) -> Self {
        let code = violation.code;
        let offender = violation.offender.as_deref();
        let offender = offender.filter(|_| code.echoes_header());
        Self {
            code,
            segment_len: offender.map(|offender| offender.ulpdu_len),
            header: offender.map(|offender| offender.header),
            request: offender
                .and_then(|offender| offender.request)
                .filter(|_| code.echoes_request()),
        }
    }

    /// The whole segment, DDP header included; it is the first and only one of its queue.
    #[must_use]
    pub fn encode(&self) -> HeaderOctets {
        let header = Untagged {
            last: true,
            ulp: Opcode::Terminate.control(),
            ulp_word: 0,
            queue: QN_TERMINATE,
            msn: Msn::FIRST,
            mo: 0,
        };
        let bit = |on: bool, mask: u8| if on { mask } else { 0 };
        let hdrct = bit(self.segment_len.is_some(), FLAG_M)
            | bit(self.header.is_some(), FLAG_D)
            | bit(self.request.is_some(), FLAG_R);
        let mut octets = header.encode();
        octets.push(&[
            self.code.layer << 4 | self.code.etype & 0x0f,
            self.code.code,
            hdrct,
            0,
        ]);
        if self.segment_len.is_some() || self.header.is_some() {
            octets.push(&self.segment_len.unwrap_or(0).to_be_bytes());
        }
        if let Some(header) = &self.header {
            octets.push(header);
        }
        if let Some(request) = &self.request {
            octets.push(&request.encode());
        }
        octets
    }

    /// Reads what follows the DDP header. Peers differ in what they append, so what is missing or
    /// left over does not matter; a body without a code is an unspecified error.
    ///
    /// Linux siw on a little-endian processor writes layer and type in each other's place, and M, D and R in the lowest bits, first
    /// to last. A code that has a name read so is taken for that if it has none otherwise, or if bits are set that the RFC wants zero.
    /// In every other case (its "unexpected opcode" is one, `2006 0000`) the RFC's reading holds.
    #[must_use]
    pub fn decode(body: &[u8]) -> Self {
        let mut terminate = Self {
            code: RdmapError::Unspecified.into(),
            segment_len: None,
            header: None,
            request: None,
        };
        let Some(([kind, code], rest)) = body.split_first_chunk() else {
            return terminate;
        };
        let mut hdrct = rest.first().copied().unwrap_or_default();
        terminate.code = Code::new(kind >> 4, kind & 0x0f, *code);
        let swapped = Code::new(kind & 0x0f, kind >> 4, *code);
        if swapped.name().is_some() && (is_mirrored(hdrct) || terminate.code.name().is_none()) {
            terminate.code = swapped;
            hdrct = hdrct.reverse_bits();
        }
        if let Some(([_, _], rest)) = rest.split_first_chunk() {
            terminate.decode_headers(hdrct, rest);
        }
        terminate
    }

    fn decode_headers(&mut self, hdrct: u8, mut rest: &[u8]) -> Option<()> {
        if hdrct & (FLAG_M | FLAG_D) != 0 {
            let (len, behind) = rest.split_first_chunk()?;
            self.segment_len = Some(u16::from_be_bytes(*len)).filter(|_| hdrct & FLAG_M != 0);
            rest = behind;
        }
        if hdrct & FLAG_D != 0 {
            // Of the two lengths it is the echoed control octet that tells which.
            let tagged = rest.first()? & 0x80 != 0;
            let len = if tagged { TAGGED_LEN } else { UNTAGGED_LEN };
            let (header, behind) = rest.split_at_checked(len)?;
            let mut octets = HeaderOctets::default();
            octets.push(header);
            self.header = Some(octets);
            rest = behind;
        }
        if hdrct & FLAG_R != 0 {
            self.request = rest.first_chunk().map(ReadRequest::decode);
        }
        Some(())
    }
}

impl fmt::Display for Terminate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(len) = self.segment_len {
            write!(f, " segment {len}")?;
        }
        if let Some(header) = &self.header {
            match Header::decode(header) {
                Ok(header) => write!(f, " [{header}]")?,
                Err(_) => write!(f, " [{header:?}]")?,
            }
        }
        if let Some(request) = &self.request {
            write!(f, " [{request}]")?;
        }
        Ok(())
    }
}

/// The RFC's bits are clear, and those are set that siw has for them.
fn is_mirrored(hdrct: u8) -> bool {
    hdrct & (FLAG_M | FLAG_D | FLAG_R) == 0
        && hdrct.reverse_bits() & (FLAG_M | FLAG_D | FLAG_R) != 0
}

const FLAG_M: u8 = 0x80;
const FLAG_D: u8 = 0x40;
const FLAG_R: u8 = 0x20;
