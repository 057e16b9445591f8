//! What travels between hosts, as bytes under a checksum.
//!
//! ```text
//!  0      4     5    9         13        21
//!  crc32c kind  seq  ack.next  ack.seen  body: 1 = frame: head (40), payload
//!                                              2 = close: why, refusal, seq
//! ```

use std::fmt;
use std::sync::Arc;

use crc_fast::CrcAlgorithm::Crc32Iscsi;
use proto::arq::{self, Ack, Seq};
use proto::frame::{HEAD_LEN, HEAD_WORDS, Head, Refusal};
use via::soft::Goodbye;

/// What one host sends to another for a connection.
#[derive(Debug, Clone)]
pub(crate) enum Packet {
    /// Of an unreliable connection.
    Datagram { seq: Seq, body: Body },
    /// Of a reliable one.
    Reliable(arq::Packet<Body>),
}

/// What a packet carries.
#[derive(Clone)]
pub(crate) struct Body {
    bytes: Arc<Vec<u8>>,
    start: usize,
}

/// What a body means.
#[derive(Debug)]
pub(crate) enum Content {
    Frame(Frame),
    Close(Goodbye),
}

/// A frame as it came; its head may mean nothing.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) words: [u32; HEAD_WORDS],
    body: Body,
}

impl Packet {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, seq, ack, body) = match self {
            Self::Datagram { seq, body } => (DATAGRAM, *seq, NO_ACK, Some(body)),
            Self::Reliable(arq::Packet::Data { seq, ack, body }) => (DATA, *seq, *ack, Some(body)),
            Self::Reliable(arq::Packet::Ack(ack)) => (ACK, Seq(0), *ack, None),
        };
        let body = body.map_or(&[][..], Body::bytes);
        let mut bytes = Vec::with_capacity(BODY_AT + body.len());
        bytes.extend([0; CRC_LEN]);
        bytes.push(kind);
        bytes.extend(seq.0.to_le_bytes());
        bytes.extend(ack.next.0.to_le_bytes());
        bytes.extend(ack.seen.to_le_bytes());
        bytes.extend(body);
        let crc = crc(&bytes[CRC_LEN..]);
        bytes[..CRC_LEN].copy_from_slice(&crc);
        bytes
    }

    /// `None` for what is not a packet, or not any more.
    pub(crate) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let (checksum, rest) = bytes.split_first_chunk::<CRC_LEN>()?;
        if crc(rest) != *checksum {
            return None;
        }
        let ([kind], rest) = rest.split_first_chunk()?;
        let (seq, rest) = rest.split_first_chunk()?;
        let (next, rest) = rest.split_first_chunk()?;
        let (seen, _) = rest.split_first_chunk()?;
        let seq = Seq(u32::from_le_bytes(*seq));
        let ack = Ack {
            next: Seq(u32::from_le_bytes(*next)),
            seen: u64::from_le_bytes(*seen),
        };
        let kind = *kind;
        let body = Body {
            bytes: Arc::new(bytes),
            start: BODY_AT,
        };
        match kind {
            DATAGRAM => Some(Self::Datagram { seq, body }),
            DATA => Some(Self::Reliable(arq::Packet::Data { seq, ack, body })),
            ACK => Some(Self::Reliable(arq::Packet::Ack(ack))),
            _ => None,
        }
    }
}

impl fmt::Display for Packet {
    /// One line, like a capture.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagram { seq, body } => write!(f, "datagram {} [{body}]", seq.0),
            Self::Reliable(arq::Packet::Data { seq, ack, body }) => {
                write!(f, "data {} [{body}] {}", seq.0, Acked(ack))
            }
            Self::Reliable(arq::Packet::Ack(ack)) => write!(f, "{}", Acked(ack)),
        }
    }
}

struct Acked<'a>(&'a Ack);

impl fmt::Display for Acked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ack {}", self.0.next.0)?;
        if self.0.seen != 0 {
            write!(f, "+{:#b}", self.0.seen)?;
        }
        Ok(())
    }
}

impl Body {
    /// Room for a frame with `len` bytes of payload, to be filled and then [sealed](Body::seal).
    pub(crate) fn reserve(len: usize) -> Vec<u8> {
        vec![0; PAYLOAD_AT + len]
    }

    /// The payload of what [`Body::reserve`] made.
    pub(crate) fn payload_mut(reserved: &mut [u8]) -> &mut [u8] {
        &mut reserved[PAYLOAD_AT..]
    }

    pub(crate) fn seal(mut reserved: Vec<u8>, words: &[u32; HEAD_WORDS]) -> Self {
        reserved[0] = FRAME;
        for (to, word) in reserved[1..PAYLOAD_AT].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Self {
            bytes: Arc::new(reserved),
            start: 0,
        }
    }

    pub(crate) fn close(why: Goodbye) -> Self {
        let (code, refusal, seq) = match why {
            Goodbye::Disconnected => (0, 0, 0),
            Goodbye::Refused { seq, refusal } => (1, refusal as u8, seq),
            Goodbye::Broken => (2, 0, 0),
            Goodbye::Died => (3, 0, 0),
            Goodbye::Transport => (4, 0, 0),
        };
        let mut bytes = vec![CLOSE, code, refusal];
        bytes.extend(seq.to_le_bytes());
        Self {
            bytes: Arc::new(bytes),
            start: 0,
        }
    }

    pub(crate) fn content(&self) -> Option<Content> {
        let (&tag, rest) = self.bytes().split_first()?;
        match tag {
            FRAME => {
                let (head, _) = rest.split_first_chunk::<HEAD_LEN>()?;
                let mut words = [0; HEAD_WORDS];
                for (word, raw) in words.iter_mut().zip(head.as_chunks().0) {
                    *word = u32::from_le_bytes(*raw);
                }
                let body = self.clone();
                Some(Content::Frame(Frame { words, body }))
            }
            CLOSE => {
                let ([code, refusal], seq) = rest.split_first_chunk()?;
                let seq = u32::from_le_bytes(seq.try_into().ok()?);
                Some(Content::Close(match code {
                    0 => Goodbye::Disconnected,
                    1 => Goodbye::Refused {
                        seq,
                        refusal: Refusal::from_code(u32::from(*refusal))?,
                    },
                    2 => Goodbye::Broken,
                    3 => Goodbye::Died,
                    _ => Goodbye::Transport,
                }))
            }
            _ => None,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content() {
            Some(Content::Frame(frame)) => match Head::decode(&frame.words) {
                Ok(head) => write!(f, "{head:?}"),
                Err(error) => write!(f, "{error}"),
            },
            Some(Content::Close(why)) => write!(f, "close {why:?}"),
            None => f.write_str("garbage"),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Frame {
    pub(crate) fn payload(&self) -> &[u8] {
        &self.body.bytes()[PAYLOAD_AT..]
    }
}

fn crc(bytes: &[u8]) -> [u8; CRC_LEN] {
    // A 32-bit checksum in the low half.
    (crc_fast::checksum(Crc32Iscsi, bytes) as u32).to_le_bytes()
}

const CRC_LEN: usize = 4;
const BODY_AT: usize = CRC_LEN + 1 + 4 + 4 + 8;
const PAYLOAD_AT: usize = 1 + HEAD_LEN;
const NO_ACK: Ack = Ack {
    next: Seq(0),
    seen: 0,
};
const DATAGRAM: u8 = 1;
const DATA: u8 = 2;
const ACK: u8 = 3;
const FRAME: u8 = 1;
const CLOSE: u8 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::frame::Kind;

    use super::*;

    fn data(payload: &[u8]) -> Packet {
        let head = Head {
            len: payload.len() as u32,
            msg_len: payload.len() as u32,
            ..Head::bare(Kind::Send, 3)
        };
        let mut reserved = Body::reserve(payload.len());
        Body::payload_mut(&mut reserved).copy_from_slice(payload);
        Packet::Reliable(arq::Packet::Data {
            seq: Seq(9),
            ack: Ack {
                next: Seq(4),
                seen: 0b101,
            },
            body: Body::seal(reserved, &head.encode()),
        })
    }

    #[test]
    fn a_packet_survives_the_wire() {
        let packet = data(b"abcdefgh");
        let again = Packet::decode(packet.encode()).expect("a packet");
        assert_eq!(again.to_string(), "data 9 [Send seq 3 0+8/8] ack 4+0b101");
        let Packet::Reliable(arq::Packet::Data { body, .. }) = again else {
            panic!("{again}");
        };
        let Some(Content::Frame(frame)) = body.content() else {
            panic!("{body}");
        };
        assert_eq!(frame.payload(), b"abcdefgh");
    }

    #[test]
    fn every_goodbye_survives_the_wire() {
        for why in [
            Goodbye::Disconnected,
            Goodbye::Refused {
                seq: 0x0102_0304,
                refusal: Refusal::Protection,
            },
            Goodbye::Broken,
            Goodbye::Died,
            Goodbye::Transport,
        ] {
            let packet = Packet::Datagram {
                seq: Seq(1),
                body: Body::close(why),
            };
            let Some(Packet::Datagram { body, .. }) = Packet::decode(packet.encode()) else {
                panic!("{why:?}");
            };
            assert!(matches!(body.content(), Some(Content::Close(w)) if w == why));
        }
    }

    #[test]
    fn no_single_bit_can_change_unseen() {
        let bytes = data(b"payload").encode();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Packet::decode(changed).is_none(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_none(mut bytes: Vec<u8>, sealed: bool) {
            if sealed && bytes.len() >= CRC_LEN {
                let crc = crc(&bytes[CRC_LEN..]);
                bytes[..CRC_LEN].copy_from_slice(&crc);
            }
            if let Some(packet) = Packet::decode(bytes) {
                drop(packet.to_string());
            }
        }
    }
}
