//! What a peer can do wrong in DDP, by number.

use thiserror::Error;

/// An error of RFC 5041 section 7.2; layer 1 of a Terminate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum DdpError {
    /// Anything of our own; also an FPDU without room for a header.
    #[error("local catastrophic error")]
    Local,
    /// No such STag, or none that may be written.
    #[error("invalid STag")]
    InvalidStag,
    /// Outside the region.
    #[error("base or bounds violation")]
    Bounds,
    /// The STag is another stream's.
    #[error("STag not associated with the stream")]
    NotAssociated,
    /// Offset and length go beyond 2^64.
    #[error("TO wrap")]
    Wrap,
    /// Tagged segment of another version.
    #[error("invalid DDP version (tagged)")]
    TaggedVersion,
    /// No such queue.
    #[error("invalid QN")]
    InvalidQueue,
    /// No buffer for the message.
    #[error("invalid MSN, no buffer available")]
    NoBuffer,
    /// Not the number of a message that may come.
    #[error("invalid MSN, out of range")]
    MsnRange,
    /// The offset is outside the buffer, or octets before it never came.
    #[error("invalid MO")]
    InvalidOffset,
    /// The message is longer than its buffer.
    #[error("message too long for the buffer")]
    TooLong,
    /// Untagged segment of another version.
    #[error("invalid DDP version (untagged)")]
    UntaggedVersion,
}

impl DdpError {
    /// Type and code in a Terminate.
    #[must_use]
    pub fn numbers(self) -> (u8, u8) {
        match self {
            Self::Local => (0, 0),
            Self::InvalidStag => (1, 0),
            Self::Bounds => (1, 1),
            Self::NotAssociated => (1, 2),
            Self::Wrap => (1, 3),
            Self::TaggedVersion => (1, 4),
            Self::InvalidQueue => (2, 1),
            Self::NoBuffer => (2, 2),
            Self::MsnRange => (2, 3),
            Self::InvalidOffset => (2, 4),
            Self::TooLong => (2, 5),
            Self::UntaggedVersion => (2, 6),
        }
    }
}
