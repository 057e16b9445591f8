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
//!
//! What is large does not travel in frames: it goes by RDMA write to where [`Frame::Posted`] says. To one place it goes by one write, whose immediate
//! data are [`Grants`] and which takes the place of a frame, not of the stream; behind several comes [`Frame::Placed`].

use thiserror::Error;

mod decode;
mod encode;
mod layout;
#[cfg(test)]
mod tests;

/// The version that [`Frame::Hello`] names.
pub const VERSION: u32 = 2;
/// Bytes of a receive that is posted for a frame.
pub const SLOT: usize = HEAD + PAYLOAD_MAX;
/// Bytes before the body.
pub const HEAD: usize = 16;
/// Most bytes of a stream or of a message in one frame.
pub const PAYLOAD_MAX: usize = 32 << 10;
/// Most places of one posted receive.
pub const PLACES_MAX: usize = 16;
/// Most receives that one frame tells of.
pub const POSTED_MAX: usize = 64;
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

impl Grants {
    /// As immediate data.
    #[must_use]
    pub fn word(self) -> u32 {
        u32::from(self.stream) << 16 | u32::from(self.control)
    }

    /// Of immediate data.
    #[must_use]
    pub fn of_word(word: u32) -> Self {
        Self {
            stream: (word >> 16) as u16,
            control: word as u16,
        }
    }
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

/// A receive that has been posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Bytes that it takes.
    pub len: u32,
    /// Where they can be written to by RDMA, in this order; none if they are to come in frames.
    pub places: Vec<Place>,
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
    /// Receives have been posted, at least one, in this order.
    Posted(Vec<Posted>),
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

/// What the head of a frame with a payload says, which need not be looked at: it stays where it is, or goes where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// Of [`Frame::Data`].
    Data,
    /// Of [`Frame::Message`].
    Message {
        /// Bytes of the whole message.
        total: u32,
        /// Where this piece begins in it.
        offset: u32,
    },
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
