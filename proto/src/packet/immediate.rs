//! What stands in the immediate data.

use thiserror::Error;

/// Most DATA packets that one packet can acknowledge.
pub const ACKS_MAX: u32 = 0xffff;

/// What a packet is: the numbers are those on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// A piece of the stream.
    Data = 1,
    /// Acknowledgements alone.
    Ack = 2,
    /// The first packet of each end: who it is and what it has room for.
    Wakeup = 3,
    /// Nothing more follows in this direction.
    Fin = 4,
    /// The peer's FIN has come.
    FinAck = 5,
    /// Nothing more follows in packets: who sends this hands its end to another way, which its peer is to take.
    Move = 6,
    /// The peer's MOVE has come, and nothing more follows in packets here either.
    Moved = 7,
    /// A byte of urgent data, at its place in the stream. It is in the immediate data.
    Urgent = 8,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Self; 8] = [
        Self::Data,
        Self::Ack,
        Self::Wakeup,
        Self::Fin,
        Self::FinAck,
        Self::Move,
        Self::Moved,
        Self::Urgent,
    ];
}

/// The immediate data of a packet.
///
/// ```text
///  31    28 27    24 23    16 15              0
///  kind     zero     byte     DATA, WAKEUP and URGENT packets acknowledged
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// What it is.
    pub kind: Kind,
    /// How many packets of the other direction may be sent again, at most [`ACKS_MAX`].
    pub acks: u32,
    /// Of an URGENT packet; else 0.
    pub byte: u8,
}

/// Why 32 bits are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadImmediate {
    /// There is no packet of this kind.
    #[error("no packet of kind {0}")]
    Kind(u32),
    /// Bits are set that must be zero.
    #[error("reserved bits are set")]
    Reserved,
}

impl Packet {
    /// Reads the immediate data of a message.
    ///
    /// # Errors
    /// What no end of this version says.
    #[inline]
    pub fn decode(immediate: u32) -> Result<Self, BadImmediate> {
        let kind = match immediate >> KIND_SHIFT {
            1 => Kind::Data,
            2 => Kind::Ack,
            3 => Kind::Wakeup,
            4 => Kind::Fin,
            5 => Kind::FinAck,
            6 => Kind::Move,
            7 => Kind::Moved,
            8 => Kind::Urgent,
            other => return Err(BadImmediate::Kind(other)),
        };
        let byte = (immediate >> BYTE_SHIFT) as u8;
        if immediate & RESERVED != 0 || (byte != 0 && kind != Kind::Urgent) {
            return Err(BadImmediate::Reserved);
        }
        Ok(Self {
            kind,
            acks: immediate & ACKS_MAX,
            byte,
        })
    }

    /// As it travels; acknowledgements beyond [`ACKS_MAX`] are the caller's mistake and cut off.
    #[must_use]
    #[inline]
    pub fn encode(self) -> u32 {
        debug_assert!(self.acks <= ACKS_MAX, "windows are smaller");
        let byte = u32::from(self.byte) << BYTE_SHIFT;
        ((self.kind as u32) << KIND_SHIFT) | byte | (self.acks & ACKS_MAX)
    }
}

const KIND_SHIFT: u32 = 28;
const BYTE_SHIFT: u32 = 16;
const RESERVED: u32 = 0x0f00_0000;
