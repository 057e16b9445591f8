//! Frames: the pieces into which a software VI NIC cuts messages.
//!
//! A message (a send, an RDMA write, a read request or its response) travels as one or more
//! frames. Every frame carries the whole head, so that a receiver that lost one can tell where the
//! next belongs. The head is ten 32-bit words, little endian:
//!
//! ```text
//!  word 0      1     2         3        4     5        6        7      8..10
//!  kind,flags  len   msg_len   offset   seq   imm      handle   zero   addr
//! ```

use std::fmt;

use thiserror::Error;

/// Words of a head.
pub const HEAD_WORDS: usize = 10;
/// Bytes of a head.
pub const HEAD_LEN: usize = HEAD_WORDS * 4;

/// What a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A send, for the receive descriptor at the head of the target's queue.
    Send = 1,
    /// An RDMA write to `addr` in region `handle`.
    RdmaWrite = 2,
    /// Asks for `msg_len` bytes from `addr` in region `handle`; no payload.
    ReadRequest = 3,
    /// Answers the read request numbered `seq`.
    ReadResponse = 4,
    /// Messages up to `seq` are in the target's memory; no payload.
    Ack = 5,
    /// Message `seq` failed at the target, which breaks the connection; `offset` holds a [`Refusal`].
    Refused = 6,
    /// The sender disconnects; no payload.
    Disconnect = 7,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Send,
        Self::RdmaWrite,
        Self::ReadRequest,
        Self::ReadResponse,
        Self::Ack,
        Self::Refused,
        Self::Disconnect,
    ];

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == code)
    }
}

/// Why a target refused a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// The receive descriptor was missing, too small or faulty.
    Descriptor = 1,
    /// The remote range of an RDMA operation is not permitted.
    Protection = 2,
}

impl Refusal {
    /// The refusal with this code.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Descriptor),
            2 => Some(Self::Protection),
            _ => None,
        }
    }
}

/// What every frame begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What the frame belongs to.
    pub kind: Kind,
    /// Immediate data of the message.
    pub immediate: Option<u32>,
    /// The payload of the whole RDMA write is in the target's memory already, and none of it in this frame.
    pub placed: bool,
    /// Bytes of payload in this frame.
    pub len: u32,
    /// Bytes of the whole message.
    pub msg_len: u32,
    /// Where in the message this frame's payload begins.
    pub offset: u32,
    /// Number of the message within its direction.
    pub seq: u32,
    /// Memory handle of the target's region (RDMA).
    pub handle: u32,
    /// Address in the target's region (RDMA).
    pub addr: u64,
}

/// A peer sent a head that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// No such kind of frame.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// Flag bits that mean nothing, or nothing with such a frame.
    #[error("unknown frame flags {0:#04x}")]
    Flags(u8),
    /// The piece lies outside its message.
    #[error("frame of {len} bytes at {offset} of a message of {msg_len}")]
    Extent {
        /// Bytes in the frame.
        len: u32,
        /// Where it begins.
        offset: u32,
        /// Bytes of the message.
        msg_len: u32,
    },
}

impl Head {
    /// A head without payload, immediate data or address.
    #[must_use]
    pub fn bare(kind: Kind, seq: u32) -> Self {
        Self {
            kind,
            immediate: None,
            placed: false,
            len: 0,
            msg_len: 0,
            offset: 0,
            seq,
            handle: 0,
            addr: 0,
        }
    }

    /// Whether this frame ends its message.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.placed || self.offset + self.len == self.msg_len
    }

    /// The head as words.
    #[must_use]
    pub fn encode(&self) -> [u32; HEAD_WORDS] {
        let mut flags = 0;
        if self.immediate.is_some() {
            flags |= FLAG_IMMEDIATE;
        }
        if self.placed {
            flags |= FLAG_PLACED;
        }
        [
            u32::from(self.kind as u8) | u32::from(flags) << 8,
            self.len,
            self.msg_len,
            self.offset,
            self.seq,
            self.immediate.unwrap_or(0),
            self.handle,
            0,
            self.addr as u32,
            (self.addr >> 32) as u32,
        ]
    }

    /// Reads a head.
    ///
    /// # Errors
    /// [`FrameError`] for unknown kinds and flags, and when a piece does not lie within its message.
    pub fn decode(words: &[u32; HEAD_WORDS]) -> Result<Self, FrameError> {
        let [
            first,
            len,
            msg_len,
            offset,
            seq,
            immediate,
            handle,
            _,
            addr_low,
            addr_high,
        ] = *words;
        let [kind, flags, ..] = first.to_le_bytes();
        let kind = Kind::from_code(kind).ok_or(FrameError::Kind(kind))?;
        if flags & !(FLAG_IMMEDIATE | FLAG_PLACED) != 0 {
            return Err(FrameError::Flags(flags));
        }
        let placed = flags & FLAG_PLACED != 0;
        // Only an RDMA write can be in its place before a frame tells of it, and then nothing of it comes with that.
        if placed && (kind != Kind::RdmaWrite || len != 0) {
            return Err(FrameError::Flags(flags));
        }
        let carries = matches!(kind, Kind::Send | Kind::RdmaWrite | Kind::ReadResponse);
        let within = offset
            .checked_add(len)
            .is_some_and(|end| end <= msg_len && (len > 0 || offset == 0));
        if (carries && !within) || (!carries && len != 0) {
            return Err(FrameError::Extent {
                len,
                offset,
                msg_len,
            });
        }
        Ok(Self {
            kind,
            immediate: (flags & FLAG_IMMEDIATE != 0).then_some(immediate),
            placed,
            len,
            msg_len,
            offset,
            seq,
            handle,
            addr: u64::from(addr_low) | u64::from(addr_high) << 32,
        })
    }
}

impl fmt::Debug for Head {
    /// One line, like a capture.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} seq {} {}+{}/{}",
            self.kind, self.seq, self.offset, self.len, self.msg_len
        )?;
        if matches!(self.kind, Kind::RdmaWrite | Kind::ReadRequest) {
            write!(f, " at {:#x} in {:#x}", self.addr, self.handle)?;
        }
        if let Some(immediate) = self.immediate {
            write!(f, " imm {immediate:#x}")?;
        }
        if self.placed {
            f.write_str(" placed")?;
        }
        Ok(())
    }
}

const FLAG_IMMEDIATE: u8 = 0x01;
const FLAG_PLACED: u8 = 0x02;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_write_with_immediate() {
        let head = Head {
            immediate: Some(0xdead_beef),
            len: 16,
            msg_len: 48,
            offset: 32,
            handle: 7,
            addr: 0x1_0000_0002,
            ..Head::bare(Kind::RdmaWrite, 5)
        };
        let words = head.encode();
        assert_eq!(words, [0x102, 16, 48, 32, 5, 0xdead_beef, 7, 0, 2, 1]);
        assert_eq!(Head::decode(&words), Ok(head));
        assert!(head.is_last());
        assert_eq!(
            format!("{head:?}"),
            "RdmaWrite seq 5 32+16/48 at 0x100000002 in 0x7 imm 0xdeadbeef"
        );
    }

    #[test]
    fn pieces_lie_within_their_message() {
        for (len, offset, msg_len, good) in [
            (0, 0, 0, true),
            (8, 0, 8, true),
            (8, 1, 8, false),
            (0, 8, 8, false),
            (u32::MAX, 2, 1, false),
        ] {
            let mut words = Head::bare(Kind::Send, 0).encode();
            words[1..4].copy_from_slice(&[len, msg_len, offset]);
            assert_eq!(
                Head::decode(&words).is_ok(),
                good,
                "{len} {offset} {msg_len}"
            );
        }
    }

    #[test]
    fn only_an_rdma_write_is_in_place_already() {
        for (kind, len, good) in [
            (Kind::RdmaWrite, 0, true),
            (Kind::RdmaWrite, 8, false),
            (Kind::Send, 0, false),
            (Kind::Send, 8, false),
            (Kind::ReadRequest, 0, false),
            (Kind::ReadResponse, 8, false),
            (Kind::Ack, 0, false),
        ] {
            let head = Head {
                placed: true,
                len,
                msg_len: 8,
                ..Head::bare(kind, 1)
            };
            let decoded = Head::decode(&head.encode());
            assert_eq!(decoded == Ok(head), good, "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn any_words_decode_to_what_encodes_to_them_or_to_an_error(words: [u32; HEAD_WORDS]) {
            if let Ok(head) = Head::decode(&words) {
                prop_assert_eq!(Head::decode(&head.encode()), Ok(head));
            }
        }
    }
}
