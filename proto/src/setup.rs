//! What the connection managers and agents of two NICs say to each other.
//!
//! One datagram a message, little endian, each beginning with magic, version and type:
//!
//! ```text
//!  0     4        5      6
//!  "sVI" version  type   body
//! ```
//!
//! A different version is an error of its own ([`SetupError::Version`]), so that two releases of
//! sovia that meet on one host refuse each other instead of misreading.

use thiserror::Error;

/// The version of this format and of the shared memory that it sets up.
pub const VERSION: u8 = 4;
/// Longest message, bytes.
pub const MESSAGE_MAX: usize = 128;
/// Longest discriminator, bytes.
pub const DISCRIMINATOR_MAX: usize = 16;

/// An address on the wire: host part, then length and bytes of the discriminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Host part.
    pub host: [u8; 6],
    /// Bytes of `discriminator` that count; never more than it has.
    pub discriminator_len: u8,
    /// The discriminator, zero padded.
    pub discriminator: [u8; DISCRIMINATOR_MAX],
}

/// What one end tells the other about its VI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// One bit of `VIP_RELIABILITY_LEVEL`; unknown values survive.
    pub reliability: u16,
    /// Accepts RDMA writes.
    pub enable_rdma_write: bool,
    /// Accepts RDMA reads.
    pub enable_rdma_read: bool,
    /// Largest transfer, bytes.
    pub max_transfer_size: u32,
    /// Quality of service.
    pub qos: u64,
}

/// A message of a connection manager or agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A client asks for a connection.
    Request(Ask),
    /// A peer asks for a connection.
    PeerRequest(Ask),
    /// Yes; the segment comes with it as a descriptor.
    Accept {
        /// The acceptor's VI.
        attributes: Attributes,
        /// Bytes of each direction's data area.
        data_len: u32,
    },
    /// No.
    Reject,
    /// Nobody waits for that address.
    NoMatch,
    /// The attributes of the two peers differ; both fail with this code of `VIP_RETURN`.
    Mismatch(u8),
    /// Asks to map the region with this handle.
    MapRequest {
        /// The region.
        handle: u32,
    },
    /// The region's memory comes with it as a descriptor; without one, it cannot be mapped.
    MapReply {
        /// The region.
        handle: u32,
        /// Which grant of the segment says whether it is still valid.
        slot: u32,
        /// What that grant says as long as it is.
        value: u32,
        /// The region's address at its owner.
        addr: u64,
        /// The region's length, bytes.
        len: u64,
        /// May be written.
        write: bool,
        /// May be read.
        read: bool,
    },
}

/// Who asks whom for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The asker's address.
    pub local: Address,
    /// The address asked for.
    pub remote: Address,
    /// The asker's VI.
    pub attributes: Attributes,
}

/// A peer sent a setup message that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SetupError {
    /// Not one of these messages.
    #[error("not a setup message")]
    Magic,
    /// Another version of sovia.
    #[error("setup version {0}, ours is {VERSION}")]
    Version(u8),
    /// No such type.
    #[error("unknown setup message {0}")]
    Type(u8),
    /// Too short, too long, or a length inside is out of range.
    #[error("setup message of a wrong length")]
    Length,
}

impl Message {
    /// Writes the message into `into` and returns the bytes written.
    #[must_use]
    pub fn encode<'b>(&self, into: &'b mut [u8; MESSAGE_MAX]) -> &'b [u8] {
        let mut out = Writer { into, len: 0 };
        out.put(MAGIC);
        out.put([VERSION]);
        match self {
            Self::Request(ask) => out.ask(TYPE_REQUEST, ask),
            Self::PeerRequest(ask) => out.ask(TYPE_PEER_REQUEST, ask),
            Self::Accept {
                attributes,
                data_len,
            } => {
                out.put([TYPE_ACCEPT]);
                out.attributes(attributes);
                out.put(data_len.to_le_bytes());
            }
            Self::Reject => out.put([TYPE_REJECT]),
            Self::NoMatch => out.put([TYPE_NO_MATCH]),
            Self::Mismatch(code) => out.put([TYPE_MISMATCH, *code]),
            Self::MapRequest { handle } => {
                out.put([TYPE_MAP_REQUEST]);
                out.put(handle.to_le_bytes());
            }
            Self::MapReply {
                handle,
                slot,
                value,
                addr,
                len,
                write,
                read,
            } => {
                out.put([TYPE_MAP_REPLY]);
                out.put(handle.to_le_bytes());
                out.put(slot.to_le_bytes());
                out.put(value.to_le_bytes());
                out.put(addr.to_le_bytes());
                out.put(len.to_le_bytes());
                out.put([u8::from(*write), u8::from(*read)]);
            }
        }
        let Writer { into, len } = out;
        &into[..len]
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`SetupError`]; nothing a peer sends is more than an error.
    pub fn decode(bytes: &[u8]) -> Result<Self, SetupError> {
        let mut input = Reader { rest: bytes };
        if input.take()? != MAGIC {
            return Err(SetupError::Magic);
        }
        let [version, kind] = input.take()?;
        if version != VERSION {
            return Err(SetupError::Version(version));
        }
        let message = match kind {
            TYPE_REQUEST => Self::Request(input.ask()?),
            TYPE_PEER_REQUEST => Self::PeerRequest(input.ask()?),
            TYPE_ACCEPT => Self::Accept {
                attributes: input.attributes()?,
                data_len: u32::from_le_bytes(input.take()?),
            },
            TYPE_REJECT => Self::Reject,
            TYPE_NO_MATCH => Self::NoMatch,
            TYPE_MISMATCH => Self::Mismatch(u8::from_le_bytes(input.take()?)),
            TYPE_MAP_REQUEST => Self::MapRequest {
                handle: u32::from_le_bytes(input.take()?),
            },
            TYPE_MAP_REPLY => Self::MapReply {
                handle: u32::from_le_bytes(input.take()?),
                slot: u32::from_le_bytes(input.take()?),
                value: u32::from_le_bytes(input.take()?),
                addr: u64::from_le_bytes(input.take()?),
                len: u64::from_le_bytes(input.take()?),
                write: input.flag()?,
                read: input.flag()?,
            },
            unknown => return Err(SetupError::Type(unknown)),
        };
        if input.rest.is_empty() {
            Ok(message)
        } else {
            Err(SetupError::Length)
        }
    }
}

struct Writer<'b> {
    into: &'b mut [u8; MESSAGE_MAX],
    len: usize,
}

impl Writer<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.into[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
    }

    fn address(&mut self, address: &Address) {
        self.put(address.host);
        self.put([address.discriminator_len]);
        self.put(address.discriminator);
    }

    fn attributes(&mut self, attributes: &Attributes) {
        self.put(attributes.reliability.to_le_bytes());
        self.put([
            u8::from(attributes.enable_rdma_write),
            u8::from(attributes.enable_rdma_read),
        ]);
        self.put(attributes.max_transfer_size.to_le_bytes());
        self.put(attributes.qos.to_le_bytes());
    }

    fn ask(&mut self, kind: u8, ask: &Ask) {
        self.put([kind]);
        self.address(&ask.local);
        self.address(&ask.remote);
        self.attributes(&ask.attributes);
    }
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SetupError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(SetupError::Length)?;
        self.rest = rest;
        Ok(*head)
    }

    fn flag(&mut self) -> Result<bool, SetupError> {
        let [value] = self.take()?;
        Ok(value != 0)
    }

    fn address(&mut self) -> Result<Address, SetupError> {
        let host = self.take()?;
        let [discriminator_len] = self.take()?;
        let discriminator = self.take()?;
        if usize::from(discriminator_len) > DISCRIMINATOR_MAX {
            return Err(SetupError::Length);
        }
        Ok(Address {
            host,
            discriminator_len,
            discriminator,
        })
    }

    fn attributes(&mut self) -> Result<Attributes, SetupError> {
        Ok(Attributes {
            reliability: u16::from_le_bytes(self.take()?),
            enable_rdma_write: self.flag()?,
            enable_rdma_read: self.flag()?,
            max_transfer_size: u32::from_le_bytes(self.take()?),
            qos: u64::from_le_bytes(self.take()?),
        })
    }

    fn ask(&mut self) -> Result<Ask, SetupError> {
        Ok(Ask {
            local: self.address()?,
            remote: self.address()?,
            attributes: self.attributes()?,
        })
    }
}

const MAGIC: [u8; 4] = *b"sVI\0";
const TYPE_REQUEST: u8 = 1;
const TYPE_PEER_REQUEST: u8 = 2;
const TYPE_ACCEPT: u8 = 3;
const TYPE_REJECT: u8 = 4;
const TYPE_NO_MATCH: u8 = 5;
const TYPE_MISMATCH: u8 = 6;
const TYPE_MAP_REQUEST: u8 = 7;
const TYPE_MAP_REPLY: u8 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(last: u8) -> Address {
        Address {
            host: [2, 0, 0, 0, 0, last],
            discriminator_len: 3,
            discriminator: *b"abc\0\0\0\0\0\0\0\0\0\0\0\0\0",
        }
    }

    fn every_message() -> Vec<Message> {
        let attributes = Attributes {
            reliability: 2,
            enable_rdma_write: true,
            enable_rdma_read: false,
            max_transfer_size: 65536,
            qos: 9,
        };
        let ask = Ask {
            local: address(1),
            remote: address(2),
            attributes,
        };
        vec![
            Message::Request(ask),
            Message::PeerRequest(ask),
            Message::Accept {
                attributes,
                data_len: 1 << 19,
            },
            Message::Reject,
            Message::NoMatch,
            Message::Mismatch(7),
            Message::MapRequest { handle: 3 },
            Message::MapReply {
                handle: 3,
                slot: 1,
                value: 9,
                addr: 0x7000,
                len: 4096,
                write: true,
                read: false,
            },
        ]
    }

    #[test]
    fn messages_survive_the_wire_and_truncation_is_an_error() {
        for message in every_message() {
            let mut dirty = [0xa5; MESSAGE_MAX];
            let bytes = message.encode(&mut dirty);
            assert_eq!(Message::decode(bytes), Ok(message));
            for cut in 0..bytes.len() {
                assert!(Message::decode(&bytes[..cut]).is_err(), "{message:?} {cut}");
            }
            let longer = [bytes, &[0]].concat();
            assert_eq!(Message::decode(&longer), Err(SetupError::Length));
        }
    }

    #[test]
    fn another_version_is_told_apart() {
        let mut bytes = [0; MESSAGE_MAX];
        let mut reject = Message::Reject.encode(&mut bytes).to_vec();
        reject[4] = VERSION + 1;
        assert_eq!(
            Message::decode(&reject),
            Err(SetupError::Version(VERSION + 1))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(mut bytes: Vec<u8>, framed: bool) {
            if framed && bytes.len() >= 5 {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4] = VERSION;
            }
            if let Ok(message) = Message::decode(&bytes) {
                let mut again = [0; MESSAGE_MAX];
                prop_assert_eq!(Message::decode(message.encode(&mut again)), Ok(message));
            }
        }
    }
}
