//! What the two ends of a TCP connection say to each other when they meet beside it.
//!
//! One packet a message, little endian. The first eight bytes are the same in every version, and so is [`Message::Decline`]:
//!
//! ```text
//!  0        4         6      7     8
//!  "sVIm"   version   type   0     body
//! ```
//!
//! The caller says [`Message::Hello`]; whoever listens answers with [`Message::Accept`], and the memory, or with [`Message::Decline`]. With a hello and an
//! accept goes a proof of holding the connection, as the first descriptor.

use thiserror::Error;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The version of these messages.
pub const VERSION: u16 = 1;
/// Longest message, bytes.
pub const MESSAGE_MAX: usize = HEAD + size_of::<TermsBody>();

/// A message of a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The caller holds one end, and would use these terms.
    Hello(Terms),
    /// Who listens holds the other end, and has made the memory, which goes along as the second descriptor.
    Accept(Terms),
    /// No; with the number of a reason, from a list that grows.
    Decline {
        /// The number.
        reason: u16,
    },
}

/// What is agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Version of the layout of the shared memory. Both must have the same.
    pub layout: u32,
    /// What an end can do beyond that, one bit each. Both do what both can.
    pub features: u32,
    /// Bytes of the shared memory.
    pub memory_len: u64,
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MeetError {
    /// They do not begin like a message.
    #[error("not a message of a meeting")]
    Magic,
    /// They are of another version of the protocol.
    #[error("version {0} of the protocol")]
    Version(u16),
    /// There is no such message.
    #[error("no message of type {0}")]
    Kind(u8),
    /// They are too many or too few for what they say they are.
    #[error("wrong length")]
    Length,
    /// A bit is set that must be zero.
    #[error("reserved bits are set")]
    Reserved,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// Whatever is wrong with it; a version is told from garbage, and tells nothing of what follows, but a decline is understood in any.
    pub fn decode(bytes: &[u8]) -> Result<Self, MeetError> {
        let (head, body) = Head::read_from_prefix(bytes).map_err(|_| MeetError::Length)?;
        if head.magic != MAGIC {
            return Err(MeetError::Magic);
        }
        if head.version != VERSION && head.kind != DECLINE {
            return Err(MeetError::Version(head.version.get()));
        }
        if head.reserved != 0 {
            return Err(MeetError::Reserved);
        }
        match head.kind {
            HELLO => terms(body).map(Self::Hello),
            ACCEPT => terms(body).map(Self::Accept),
            DECLINE => {
                let body = DeclineBody::read_from_bytes(body).map_err(|_| MeetError::Length)?;
                if body.reserved != 0 {
                    return Err(MeetError::Reserved);
                }
                Ok(Self::Decline {
                    reason: body.reason.get(),
                })
            }
            other => Err(MeetError::Kind(other)),
        }
    }

    /// Writes it to `into`, and returns the bytes written.
    pub fn encode<'a>(&self, into: &'a mut [u8; MESSAGE_MAX]) -> &'a [u8] {
        let kind = match self {
            Self::Hello(_) => HELLO,
            Self::Accept(_) => ACCEPT,
            Self::Decline { .. } => DECLINE,
        };
        let head = Head {
            magic: MAGIC,
            version: VERSION.into(),
            kind,
            reserved: 0,
        };
        let (start, rest) = into.split_at_mut(HEAD);
        start.copy_from_slice(head.as_bytes());
        let len = match self {
            Self::Hello(terms) | Self::Accept(terms) => put(rest, &TermsBody::from(terms)),
            Self::Decline { reason } => {
                let body = DeclineBody {
                    reason: (*reason).into(),
                    reserved: U16::ZERO,
                };
                put(rest, &body)
            }
        };
        &into[..HEAD + len]
    }
}

fn terms(body: &[u8]) -> Result<Terms, MeetError> {
    let body = TermsBody::read_from_bytes(body).map_err(|_| MeetError::Length)?;
    Ok(Terms {
        layout: body.layout.get(),
        features: body.features.get(),
        memory_len: body.memory_len.get(),
    })
}

/// `rest` has room for the longest body.
fn put(rest: &mut [u8], body: &(impl IntoBytes + Immutable)) -> usize {
    let bytes = body.as_bytes();
    rest[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 4],
    version: U16,
    kind: u8,
    reserved: u8,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TermsBody {
    layout: U32,
    features: U32,
    memory_len: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct DeclineBody {
    reason: U16,
    reserved: U16,
}

impl From<&Terms> for TermsBody {
    fn from(terms: &Terms) -> Self {
        Self {
            layout: terms.layout.into(),
            features: terms.features.into(),
            memory_len: terms.memory_len.into(),
        }
    }
}

const MAGIC: [u8; 4] = *b"sVIm";
const HEAD: usize = size_of::<Head>();
const HELLO: u8 = 1;
const ACCEPT: u8 = 2;
const DECLINE: u8 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TERMS: Terms = Terms {
        layout: 0x0403_0201,
        features: 0x0807_0605,
        memory_len: 0x0102_0304_0506_0708,
    };
    const EACH: [Message; 3] = [
        Message::Hello(TERMS),
        Message::Accept(TERMS),
        Message::Decline { reason: 0x1234 },
    ];

    fn encoded(message: &Message) -> Vec<u8> {
        // Dirty, so that a byte that is not written shows.
        message.encode(&mut [0xa5; MESSAGE_MAX]).to_vec()
    }

    #[test]
    fn the_bytes_are_these() {
        let mut hello = b"sVIm\x01\x00\x01\x00\x01\x02\x03\x04\x05\x06\x07\x08".to_vec();
        hello.extend([8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(encoded(&EACH[0]), hello);
        hello[6] = 2;
        assert_eq!(encoded(&EACH[1]), hello);
        assert_eq!(encoded(&EACH[2]), b"sVIm\x01\x00\x03\x00\x34\x12\x00\x00");
    }

    #[test]
    fn what_is_written_is_read() {
        for message in EACH {
            assert_eq!(Message::decode(&encoded(&message)), Ok(message));
        }
    }

    #[test]
    fn another_version_is_told_from_garbage() {
        let mut bytes = encoded(&EACH[0]);
        bytes[4] = 9;
        bytes.truncate(9);
        assert_eq!(Message::decode(&bytes), Err(MeetError::Version(9)));
        bytes[0] = b'S';
        assert_eq!(Message::decode(&bytes), Err(MeetError::Magic));
        let mut decline = encoded(&EACH[2]);
        decline[4] = 9;
        assert_eq!(Message::decode(&decline), Ok(EACH[2]));
    }

    #[test]
    fn no_length_but_its_own_will_do() {
        for message in EACH {
            let mut bytes = encoded(&message);
            bytes.push(0);
            assert_eq!(Message::decode(&bytes), Err(MeetError::Length));
            for len in 0..bytes.len() - 1 {
                assert_eq!(Message::decode(&bytes[..len]), Err(MeetError::Length));
            }
        }
    }

    /// Each bit matters: a changed message is an error or another message, never the same one.
    #[test]
    fn every_flipped_bit_is_seen() {
        for message in EACH {
            let bytes = encoded(&message);
            for bit in 0..bytes.len() * 8 {
                let mut mutant = bytes.clone();
                mutant[bit / 8] ^= 1 << (bit % 8);
                match Message::decode(&mutant) {
                    Ok(other) if matches!(message, Message::Decline { .. }) && bit / 8 / 2 == 2 => {
                        assert_eq!(other, message, "a decline is understood in any version");
                    }
                    Ok(other) => assert_ne!(other, message, "bit {bit}"),
                    Err(_) => {}
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(mut bytes: Vec<u8>, framed: bool) {
            if framed && bytes.len() >= 6 {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
            }
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&encoded(&message)), Ok(message));
            }
        }
    }
}
