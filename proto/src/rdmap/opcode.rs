//! The messages, one row each.

use std::fmt;

use super::code::RdmapError;
use crate::ddp::{QN_ATOMIC_RESPONSE, QN_REQUEST, QN_SEND, QN_TERMINATE};

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// Places octets in memory that the receiver told about.
    Write,
    /// Asks for octets.
    ReadRequest,
    /// Brings them.
    ReadResponse,
    /// For a receive of the peer's.
    Send,
    /// Takes the right to an STag back as well.
    SendInvalidate,
    /// Asks the peer to wake up for it.
    SendSolicited,
    /// Both.
    SendSolicitedInvalidate,
    /// Says why nothing more will come.
    Terminate,
    /// Eight octets that travel in a completion (RFC 7306).
    Immediate,
    /// And ask the peer to wake up.
    ImmediateSolicited,
    /// Changes a number in the receiver's memory (RFC 7306).
    AtomicRequest,
    /// Says what it was before.
    AtomicResponse,
}

/// A row of the table of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Which message.
    pub opcode: Opcode,
    /// Its number, four bits.
    pub number: u8,
    /// As in a capture.
    pub name: &'static str,
    /// The queue that it is for; `None` if it is tagged.
    pub queue: Option<u32>,
    /// What follows the header.
    pub carries: Carries,
    /// Asks for an event at the peer.
    pub solicited: bool,
    /// The header's other ULP octets name an STag to invalidate.
    pub invalidates: bool,
}

/// What follows a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Octets of a user.
    Payload,
    /// So many octets of the protocol's, in one segment.
    Body(u32),
    /// The octets of a Terminate, of which there are more or fewer.
    Terminate,
}

impl Opcode {
    /// Every message: RFC 5040 figure 4, RFC 7306 figure 4.
    #[rustfmt::skip]
    pub const TABLE: [Row; 12] = [
        row(0x0, Self::Write,                   "Write",          None,                     Carries::Payload,   "  "),
        row(0x1, Self::ReadRequest,             "Read Request",   Some(QN_REQUEST),         Carries::Body(28),  "  "),
        row(0x2, Self::ReadResponse,            "Read Response",  None,                     Carries::Payload,   "  "),
        row(0x3, Self::Send,                    "Send",           Some(QN_SEND),            Carries::Payload,   "  "),
        row(0x4, Self::SendInvalidate,          "Send Inv",       Some(QN_SEND),            Carries::Payload,   " I"),
        row(0x5, Self::SendSolicited,           "Send SE",        Some(QN_SEND),            Carries::Payload,   "S "),
        row(0x6, Self::SendSolicitedInvalidate, "Send SE Inv",    Some(QN_SEND),            Carries::Payload,   "SI"),
        row(0x7, Self::Terminate,               "Terminate",      Some(QN_TERMINATE),       Carries::Terminate, "  "),
        row(0x8, Self::Immediate,               "Immediate",      Some(QN_SEND),            Carries::Body(8),   "  "),
        row(0x9, Self::ImmediateSolicited,      "Immediate SE",   Some(QN_SEND),            Carries::Body(8),   "S "),
        row(0xa, Self::AtomicRequest,           "Atomic Request", Some(QN_REQUEST),         Carries::Body(52),  "  "),
        row(0xb, Self::AtomicResponse,          "Atomic Response", Some(QN_ATOMIC_RESPONSE), Carries::Body(12), "  "),
    ];

    /// Its row.
    #[must_use]
    pub fn row(self) -> &'static Row {
        let [first, ..] = &Self::TABLE;
        Self::TABLE.get(self as usize).unwrap_or(first)
    }

    /// Its control octet.
    #[must_use]
    pub fn control(self) -> u8 {
        VERSION | self.row().number
    }

    /// Reads a control octet; its reserved bits mean nothing.
    ///
    /// # Errors
    /// [`RdmapError::Version`] or [`RdmapError::UnexpectedOpcode`].
    pub fn from_control(control: u8) -> Result<Self, RdmapError> {
        if control & VERSION_MASK != VERSION {
            return Err(RdmapError::Version);
        }
        Self::TABLE
            .get(usize::from(control & NUMBER_MASK))
            .map(|row| row.opcode)
            .ok_or(RdmapError::UnexpectedOpcode)
    }

    /// Whether it is one of RFC 7306, which not every peer knows.
    #[must_use]
    pub fn is_extension(self) -> bool {
        self.row().number >= Self::Immediate.row().number
    }

    /// Whether it is one of the four Sends.
    #[must_use]
    pub fn is_send(self) -> bool {
        let row = self.row();
        row.queue == Some(QN_SEND) && row.carries == Carries::Payload
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)
    }
}

const fn row(
    number: u8,
    opcode: Opcode,
    name: &'static str,
    queue: Option<u32>,
    carries: Carries,
    flags: &str,
) -> Row {
    let [solicited, invalidates] = *flags.as_bytes() else {
        panic!("two flags");
    };
    Row {
        opcode,
        number,
        name,
        queue,
        carries,
        solicited: solicited == b'S',
        invalidates: invalidates == b'I',
    }
}

/// Each row is found by its number.
const _: () = {
    let mut at = 0;
    while at < Opcode::TABLE.len() {
        let row = Opcode::TABLE[at];
        assert!(row.number as usize == at && row.opcode as usize == at);
        at += 1;
    }
};

const VERSION_MASK: u8 = 0xc0;
const VERSION: u8 = 0x40;
const NUMBER_MASK: u8 = 0x0f;
