//! What the two ends of an extended socket say to each other over their VI.
//!
//! One frame a message of the VI, little endian, in at most [`SLOT`] bytes:
//!
//! ```text
//!  0     1       2        4         6       8    12   16
//!  type  count   stream   control   zero    a    b    body
//! ```
//!
//! `stream` and `control` are receives that the sender of the frame has posted again since its last: the other end may send so many frames
//! more, of [`Frame::Data`] and of all others. A receiver takes the others off at once, so that bytes which nobody reads never hold up a message.
//! What is large does not travel in frames: it goes by RDMA write to where [`Frame::Posted`] says, and [`Frame::Placed`] follows it.

use thiserror::Error;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The version that [`Frame::Hello`] names.
pub const VERSION: u32 = 1;
/// Bytes of a receive that is posted for a frame.
pub const SLOT: usize = 16384;
/// Bytes before the body.
pub const HEAD: usize = 16;
/// Most bytes of a stream or of a message in one frame.
pub const PAYLOAD_MAX: usize = SLOT - HEAD;
/// Most places of one posted receive.
pub const PLACES_MAX: usize = 16;
/// Receives for each of the two kinds of frames that both ends begin with.
pub const CREDITS: u16 = 16;

/// Receives that are there again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grants {
    /// For [`Frame::Data`].
    pub stream: u16,
    /// For all others.
    pub control: u16,
}

/// A place in memory that the other end may write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// As its owner knows it.
    pub addr: u64,
    /// Of the region.
    pub handle: u32,
    /// Bytes.
    pub len: u32,
}

/// What peers may do with a region by RDMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Read it.
    pub read: bool,
    /// Write it.
    pub write: bool,
}

/// A region that its owner tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advert {
    /// Its handle.
    pub handle: u32,
    /// What may be done with it.
    pub rights: Rights,
    /// What it is, in words of the two programs.
    pub tag: u64,
    /// Where it begins, as its owner knows it.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The first.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// Bytes of the stream.
    Data(&'a [u8]),
    /// The stream and the messages of this direction have ended.
    Fin,
    /// A piece of a message, for the oldest receive that is posted.
    Message {
        /// Bytes of the whole message.
        total: u32,
        /// Where this piece begins in it.
        offset: u32,
        /// The piece.
        piece: &'a [u8],
    },
    /// A receive has been posted.
    Posted {
        /// Bytes that it takes.
        len: u32,
        /// Where they can be written to by RDMA, in this order; none if they are to come in frames.
        places: Vec<Place>,
    },
    /// A message has been written to the places of the oldest receive that is posted.
    Placed {
        /// Its bytes.
        len: u32,
    },
    /// A region that may be reached by RDMA.
    Advertise(Advert),
    /// A region that is no more.
    Withdraw {
        /// Its handle.
        handle: u32,
    },
    /// Nothing but grants.
    Credit,
}

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// There is no such frame.
    #[error("no frame of type {0}")]
    Kind(u8),
    /// They are too many or too few for what they say they are.
    #[error("wrong length")]
    Length,
    /// A bit is set that must be zero.
    #[error("reserved bits are set")]
    Reserved,
    /// A piece lies outside its message.
    #[error("a piece outside its message")]
    Piece,
}

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(bytes: &'a [u8]) -> Result<(Grants, Self), FrameError> {
        let (head, body) = Head::read_from_prefix(bytes).map_err(|_| FrameError::Length)?;
        if head.zero != 0 {
            return Err(FrameError::Reserved);
        }
        let grants = Grants {
            stream: head.stream.get(),
            control: head.control.get(),
        };
        let (a, b) = (head.a.get(), head.b.get());
        let bare = |frame| {
            if body.is_empty() {
                Ok(frame)
            } else {
                Err(FrameError::Length)
            }
        };
        let frame = match head.kind {
            HELLO => bare(Self::Hello { version: a })?,
            DATA if body.is_empty() => return Err(FrameError::Length),
            DATA => Self::Data(body),
            FIN => bare(Self::Fin)?,
            MESSAGE => {
                let end = (b as usize).checked_add(body.len());
                // Only a message of no bytes has a piece of none.
                if end.is_none_or(|end| end > a as usize) || (body.is_empty() && a != 0) {
                    return Err(FrameError::Piece);
                }
                Self::Message {
                    total: a,
                    offset: b,
                    piece: body,
                }
            }
            POSTED => Self::Posted {
                len: a,
                places: places(a, head.count, body)?,
            },
            PLACED => bare(Self::Placed { len: a })?,
            ADVERTISE => {
                let body = AdvertBody::read_from_bytes(body).map_err(|_| FrameError::Length)?;
                if b & !(MAY_READ | MAY_WRITE) != 0 {
                    return Err(FrameError::Reserved);
                }
                Self::Advertise(Advert {
                    handle: a,
                    rights: Rights {
                        read: b & MAY_READ != 0,
                        write: b & MAY_WRITE != 0,
                    },
                    tag: body.tag.get(),
                    addr: body.addr.get(),
                    len: body.len.get(),
                })
            }
            WITHDRAW => bare(Self::Withdraw { handle: a })?,
            CREDIT => bare(Self::Credit)?,
            other => return Err(FrameError::Kind(other)),
        };
        Ok((grants, frame))
    }

    /// Writes it to the end of `into`, but for the payload of [`Frame::Data`] and [`Frame::Message`], which is to follow.
    pub fn encode(&self, grants: Grants, into: &mut Vec<u8>) {
        let (kind, a, b) = match self {
            Self::Hello { version } => (HELLO, *version, 0),
            Self::Data(_) => (DATA, 0, 0),
            Self::Fin => (FIN, 0, 0),
            Self::Message { total, offset, .. } => (MESSAGE, *total, *offset),
            Self::Posted { len, .. } => (POSTED, *len, 0),
            Self::Placed { len } => (PLACED, *len, 0),
            Self::Advertise(advert) => {
                let bit = |on, bit| if on { bit } else { 0 };
                let rights =
                    bit(advert.rights.read, MAY_READ) | bit(advert.rights.write, MAY_WRITE);
                (ADVERTISE, advert.handle, rights)
            }
            Self::Withdraw { handle } => (WITHDRAW, *handle, 0),
            Self::Credit => (CREDIT, 0, 0),
        };
        let count = match self {
            Self::Posted { places, .. } => places.len().min(PLACES_MAX) as u8,
            _ => 0,
        };
        let head = Head {
            kind,
            count,
            stream: U16::new(grants.stream),
            control: U16::new(grants.control),
            zero: U16::new(0),
            a: U32::new(a),
            b: U32::new(b),
        };
        into.extend(head.as_bytes());
        match self {
            Self::Posted { places, .. } => {
                for place in places.iter().take(PLACES_MAX) {
                    let body = PlaceBody {
                        addr: U64::new(place.addr),
                        handle: U32::new(place.handle),
                        len: U32::new(place.len),
                    };
                    into.extend(body.as_bytes());
                }
            }
            Self::Advertise(advert) => {
                let body = AdvertBody {
                    tag: U64::new(advert.tag),
                    addr: U64::new(advert.addr),
                    len: U64::new(advert.len),
                };
                into.extend(body.as_bytes());
            }
            _ => {}
        }
    }
}

/// Whether a frame that begins so is [`Frame::Data`], of which the payload need not be looked at.
#[must_use]
pub fn is_data(first: u8) -> bool {
    first == DATA
}

/// As many as are said, with as many bytes.
fn places(len: u32, count: u8, body: &[u8]) -> Result<Vec<Place>, FrameError> {
    let count = usize::from(count);
    if count > PLACES_MAX || body.len() != count * size_of::<PlaceBody>() {
        return Err(FrameError::Length);
    }
    let read = |bytes| {
        let body = PlaceBody::read_from_bytes(bytes).map_err(|_| FrameError::Length)?;
        Ok(Place {
            addr: body.addr.get(),
            handle: body.handle.get(),
            len: body.len.get(),
        })
    };
    let chunks = body.chunks(size_of::<PlaceBody>());
    let places: Vec<Place> = chunks.map(read).collect::<Result<_, _>>()?;
    let room: u64 = places.iter().map(|place| u64::from(place.len)).sum();
    if count > 0 && room != u64::from(len) {
        return Err(FrameError::Length);
    }
    Ok(places)
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    kind: u8,
    count: u8,
    stream: U16,
    control: U16,
    zero: U16,
    a: U32,
    b: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PlaceBody {
    addr: U64,
    handle: U32,
    len: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AdvertBody {
    tag: U64,
    addr: U64,
    len: U64,
}

const HELLO: u8 = 1;
const DATA: u8 = 2;
const FIN: u8 = 3;
const MESSAGE: u8 = 4;
const POSTED: u8 = 5;
const PLACED: u8 = 6;
const ADVERTISE: u8 = 7;
const WITHDRAW: u8 = 8;
const CREDIT: u8 = 9;
const MAY_READ: u32 = 0x1;
const MAY_WRITE: u32 = 0x2;

const _: () = assert!(size_of::<Head>() == HEAD);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> Vec<Frame<'static>> {
        let place = Place {
            addr: 0x0102_0304_0506_0708,
            handle: 7,
            len: 9,
        };
        vec![
            Frame::Hello { version: VERSION },
            Frame::Fin,
            Frame::Posted {
                len: 18,
                places: vec![place, place],
            },
            Frame::Posted {
                len: 5,
                places: vec![],
            },
            Frame::Placed { len: 3 },
            Frame::Advertise(Advert {
                handle: 5,
                rights: Rights {
                    read: true,
                    write: false,
                },
                tag: 1,
                addr: 2,
                len: 3,
            }),
            Frame::Withdraw { handle: 5 },
            Frame::Credit,
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let grants = Grants {
            stream: 2,
            control: 0x0304,
        };
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.encode(grants, &mut bytes);
            assert_eq!(Frame::decode(&bytes), Ok((grants, frame)));
            bytes.push(0);
            assert_eq!(Frame::decode(&bytes), Err(FrameError::Length));
        }
    }

    #[test]
    fn a_payload_follows_its_head() {
        let data = Frame::Data(b"abc");
        let message = Frame::Message {
            total: 5,
            offset: 2,
            piece: b"abc",
        };
        for frame in [data, message] {
            let mut bytes = Vec::new();
            frame.encode(Grants::default(), &mut bytes);
            assert_eq!(bytes.len(), HEAD);
            bytes.extend(b"abc");
            assert_eq!(Frame::decode(&bytes), Ok((Grants::default(), frame)));
        }
    }

    #[test]
    fn a_piece_lies_in_its_message_and_places_add_up() {
        let mut bytes = Vec::new();
        let frame = Frame::Message {
            total: 2,
            offset: 1,
            piece: &[],
        };
        frame.encode(Grants::default(), &mut bytes);
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Piece));
        bytes.extend(b"ab");
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Piece));
        let mut bytes = Vec::new();
        let place = Place {
            addr: 1,
            handle: 1,
            len: 4,
        };
        let frame = Frame::Posted {
            len: 5,
            places: vec![place],
        };
        frame.encode(Grants::default(), &mut bytes);
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Length));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Frame::decode(&bytes);
        }

        #[test]
        fn what_is_read_is_written_again(kind in 1u8..10, mut rest in proptest::collection::vec(any::<u8>(), 15..80)) {
            rest[5] = 0;
            rest[6] = 0;
            rest.insert(0, kind);
            if let Ok((grants, frame)) = Frame::decode(&rest) {
                let mut bytes = Vec::new();
                frame.encode(grants, &mut bytes);
                if let Frame::Data(body) | Frame::Message { piece: body, .. } = &frame {
                    bytes.extend(*body);
                }
                prop_assert_eq!(Frame::decode(&bytes), Ok((grants, frame)));
            }
        }
    }
}
