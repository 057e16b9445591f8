//! What can go wrong in MPA, by number.

use thiserror::Error;

/// An error of RFC 5044 section 8 or RFC 6581 section 12; layer 2, type 0 of a Terminate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[repr(u8)]
pub enum MpaError {
    /// The TCP connection ended, or its time was up.
    #[error("TCP connection closed, lost or timed out")]
    Lost = 1,
    /// Checksum and octets disagree.
    #[error("MPA CRC error")]
    Crc = 2,
    /// A marker does not point to the beginning of its FPDU.
    #[error("MPA marker and ULPDU_Length mismatch")]
    Marker = 3,
    /// A Request or Reply is improperly formatted.
    #[error("invalid MPA Request or Reply")]
    Startup = 4,
    /// Something of our own failed while the connection was set up.
    #[error("local catastrophic error")]
    Local = 5,
    /// The peer wants to read deeper than we can serve.
    #[error("insufficient IRD")]
    InsufficientIrd = 6,
    /// No ready-to-receive message that both ends know.
    #[error("no matching RTR")]
    NoMatchingRtr = 7,
}

impl MpaError {
    /// The number in a Terminate.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}
