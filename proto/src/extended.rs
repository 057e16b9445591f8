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

mod decode;
mod encode;
mod layout;
#[cfg(test)]
mod tests;

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

/// Whether a frame that begins so is [`Frame::Data`], of which the payload need not be looked at.
#[must_use]
pub fn is_data(first: u8) -> bool {
    first == layout::DATA
}
