//! The numbers of what goes wrong: layer, type and code.

use std::fmt;

use thiserror::Error;

use crate::ddp::{DdpError, Fault, InvalidateFault};
use crate::mpa::MpaError;

/// An error of RFC 5040 section 4.8; layer 0 of a Terminate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum RdmapError {
    /// Something of our own.
    #[error("local catastrophic error")]
    Local,
    /// The peer may not reach what it asks for.
    #[error("remote protection: {0}")]
    Protection(Fault),
    /// The STag belongs to another stream, and cannot be invalidated on this.
    #[error("STag of another stream cannot be invalidated")]
    InvalidateProtection,
    /// Another version of RDMAP.
    #[error("invalid RDMAP version")]
    Version,
    /// No such message, or not here.
    #[error("unexpected opcode")]
    UnexpectedOpcode,
    /// The stream cannot go on (also: a misaligned atomic).
    #[error("catastrophic error on this stream")]
    Stream,
    /// The STag cannot be invalidated.
    #[error("STag cannot be invalidated")]
    Invalidate,
    /// A message that contradicts itself.
    #[error("unspecified")]
    Unspecified,
}

/// What went wrong, as a Terminate says it: printed `1/1/00 invalid STag`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    /// 0 RDMAP, 1 DDP, 2 MPA; four bits.
    pub layer: u8,
    /// Type within the layer; four bits.
    pub etype: u8,
    /// Code within the type.
    pub code: u8,
}

impl Code {
    /// A code.
    #[must_use]
    pub const fn new(layer: u8, etype: u8, code: u8) -> Self {
        Self { layer, etype, code }
    }

    /// Its name in the registry, if it is there.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES
            .iter()
            .find(|(layer, etype, code, _)| {
                (*layer, *etype) == (self.layer, self.etype)
                    && (*code == self.code || (self.layer, self.etype) == (0, 0))
            })
            .map(|(_, _, _, name)| *name)
    }

    /// Whether a Terminate with it echoes the offending segment's header (RFC 5040 figure 10).
    #[must_use]
    pub fn echoes_header(self) -> bool {
        matches!((self.layer, self.etype), (0, 1 | 2) | (1, _))
    }

    /// Whether it echoes an offending RDMA Read Request as well.
    #[must_use]
    pub fn echoes_request(self) -> bool {
        (self.layer, self.etype) == (0, 1)
    }
}

impl From<RdmapError> for Code {
    fn from(error: RdmapError) -> Self {
        let (etype, code) = match error {
            RdmapError::Local => (0, 0),
            RdmapError::Protection(Fault::UnknownStag) => (1, 0),
            RdmapError::Protection(Fault::Bounds) => (1, 1),
            RdmapError::Protection(Fault::NoRight) => (1, 2),
            RdmapError::Protection(Fault::NotAssociated) => (1, 3),
            RdmapError::Protection(Fault::Wrap) => (1, 4),
            RdmapError::InvalidateProtection => (1, 9),
            RdmapError::Version => (2, 5),
            RdmapError::UnexpectedOpcode => (2, 6),
            RdmapError::Stream => (2, 7),
            RdmapError::Invalidate => (2, 9),
            RdmapError::Unspecified => (2, 0xff),
        };
        Self::new(0, etype, code)
    }
}

impl From<DdpError> for Code {
    fn from(error: DdpError) -> Self {
        let (etype, code) = error.numbers();
        Self::new(1, etype, code)
    }
}

impl From<MpaError> for Code {
    fn from(error: MpaError) -> Self {
        Self::new(2, 0, error.code())
    }
}

impl From<InvalidateFault> for Code {
    fn from(fault: InvalidateFault) -> Self {
        match fault {
            InvalidateFault::UnknownStag => RdmapError::Invalidate.into(),
            InvalidateFault::NotAssociated => RdmapError::InvalidateProtection.into(),
        }
    }
}

/// What DDP calls a write that memory does not allow; it has no code for a missing right.
pub(super) fn of_write(fault: Fault) -> DdpError {
    match fault {
        Fault::UnknownStag | Fault::NoRight => DdpError::InvalidStag,
        Fault::NotAssociated => DdpError::NotAssociated,
        Fault::Wrap => DdpError::Wrap,
        Fault::Bounds => DdpError::Bounds,
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}/{:x}/{:02x}", self.layer, self.etype, self.code)?;
        match self.name() {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

/// The registries of RFC 6580, RFC 6581 and RFC 7306.
#[rustfmt::skip]
const NAMES: &[(u8, u8, u8, &str)] = &[
    (0, 0, 0x00, "local catastrophic"),
    (0, 1, 0x00, "invalid STag"),
    (0, 1, 0x01, "base or bounds"),
    (0, 1, 0x02, "access rights"),
    (0, 1, 0x03, "STag not associated with stream"),
    (0, 1, 0x04, "TO wrap"),
    (0, 1, 0x09, "STag cannot be invalidated"),
    (0, 1, 0xff, "unspecified protection error"),
    (0, 2, 0x05, "invalid RDMAP version"),
    (0, 2, 0x06, "unexpected opcode"),
    (0, 2, 0x07, "catastrophic, this stream"),
    (0, 2, 0x08, "catastrophic, global"),
    (0, 2, 0x09, "STag cannot be invalidated"),
    (0, 2, 0xff, "unspecified operation error"),
    (1, 0, 0x00, "DDP local catastrophic"),
    (1, 1, 0x00, "invalid STag"),
    (1, 1, 0x01, "base or bounds"),
    (1, 1, 0x02, "STag not associated with stream"),
    (1, 1, 0x03, "TO wrap"),
    (1, 1, 0x04, "invalid DDP version"),
    (1, 2, 0x01, "invalid QN"),
    (1, 2, 0x02, "invalid MSN, no buffer"),
    (1, 2, 0x03, "invalid MSN, out of range"),
    (1, 2, 0x04, "invalid MO"),
    (1, 2, 0x05, "message too long"),
    (1, 2, 0x06, "invalid DDP version"),
    (2, 0, 0x01, "TCP closed or lost"),
    (2, 0, 0x02, "MPA CRC"),
    (2, 0, 0x03, "MPA marker and length mismatch"),
    (2, 0, 0x04, "invalid MPA Request or Reply"),
    (2, 0, 0x05, "MPA local catastrophic"),
    (2, 0, 0x06, "insufficient IRD"),
    (2, 0, 0x07, "no matching RTR"),
];
