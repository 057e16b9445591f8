//! What users ask of an engine.

use thiserror::Error;

use super::body::{AtomicOperation, Remote};
use super::opcode::Opcode;
use crate::ddp::Stag;
use crate::mpa::Place;

/// A driver's name for something it posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkId(pub u64);

/// Something to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Comes back in its completion.
    pub id: WorkId,
    /// What to do.
    pub operation: Operation,
    /// Not before all earlier Reads and atomics have completed.
    pub fence: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A message for a receive of the peer's.
    Send {
        /// Where its octets are.
        from: Place,
        /// How many; at most 2^32 - 1.
        len: u64,
        /// Asks the peer to wake up for it.
        solicited: bool,
        /// Takes the right back that the peer has given to this.
        invalidate: Option<Stag>,
    },
    /// Octets into memory of the peer's.
    Write {
        /// Where they are.
        from: Place,
        /// How many; at most 2^32 - 1.
        len: u64,
        /// Where they go.
        to: Remote,
    },
    /// Octets from memory of the peer's.
    Read {
        /// Where they go.
        into: Place,
        /// How many; at most 2^32 - 1.
        len: u64,
        /// The name of that place on the wire. Only this Read's response is placed under it.
        sink: Remote,
        /// Where they are.
        source: Remote,
    },
    /// Eight octets for a receive of the peer's (RFC 7306).
    Immediate {
        /// These.
        data: [u8; 8],
        /// Asks the peer to wake up for it.
        solicited: bool,
    },
    /// Changes a number in memory of the peer's (RFC 7306).
    Atomic {
        /// How.
        operation: AtomicOperation,
        /// Which; its offset is a multiple of 8.
        target: Remote,
    },
}

impl Operation {
    pub(super) fn opcode(&self) -> Opcode {
        match self {
            Self::Send {
                solicited,
                invalidate,
                ..
            } => match (solicited, invalidate.is_some()) {
                (false, false) => Opcode::Send,
                (false, true) => Opcode::SendInvalidate,
                (true, false) => Opcode::SendSolicited,
                (true, true) => Opcode::SendSolicitedInvalidate,
            },
            Self::Write { .. } => Opcode::Write,
            Self::Read { .. } => Opcode::ReadRequest,
            Self::Immediate {
                solicited: false, ..
            } => Opcode::Immediate,
            Self::Immediate { .. } => Opcode::ImmediateSolicited,
            Self::Atomic { .. } => Opcode::AtomicRequest,
        }
    }

    /// Octets of payload that this end sends: what a read asks for comes from the other.
    #[must_use]
    pub fn sent_len(&self) -> u64 {
        match self {
            Self::Read { .. } => 0,
            operation => operation.payload_len(),
        }
    }

    /// Octets of payload, here or in the answer.
    pub(super) fn payload_len(&self) -> u64 {
        match self {
            Self::Send { len, .. } | Self::Write { len, .. } | Self::Read { len, .. } => *len,
            Self::Immediate { .. } | Self::Atomic { .. } => 8,
        }
    }

    /// Whether it is complete only when the peer has answered.
    pub(super) fn is_answered(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Atomic { .. })
    }
}

/// A buffer for one message of the peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receive {
    /// Comes back with the message.
    pub id: WorkId,
    /// Where the message goes.
    pub into: Place,
    /// Octets there.
    pub capacity: u32,
}

/// A work has ended; in the order of posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Which.
    pub id: WorkId,
    /// For an atomic the former number, else the octets sent or read.
    pub outcome: Result<u64, Flushed>,
}

/// The connection ended before it was done. What has become of it at the peer is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("flushed at the end of the connection")]
pub struct Flushed;

/// Why a work cannot be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PostError {
    /// A message is at most 2^32 - 1 octets.
    #[error("longer than 2^32 - 1 octets")]
    TooLong,
    /// An atomic's target is not a multiple of 8.
    #[error("misaligned")]
    Misaligned,
    /// RFC 7306 is not in use on this connection.
    #[error("not enabled on this connection")]
    NotEnabled,
    /// The connection is closing or closed.
    #[error("not connected")]
    NotConnected,
}
