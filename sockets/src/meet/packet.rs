//! What comes in, and what is said.

use std::os::fd::BorrowedFd;

use proto::meet::{MESSAGE_MAX, MeetError, Message, Terms};
use sys::errno::Errno;
use sys::passed::Passed;
use sys::rendezvous::{Caller, FDS_MAX, Received};
use sys::stream::{self, Size};

use super::reason_of;
use crate::reason::Reason;

/// What came in, with its descriptors where they cannot be mistaken.
pub(super) struct Packet {
    pub(super) message: Result<Message, MeetError>,
    pub(super) witness: Option<Passed>,
    pub(super) memory: Option<Passed>,
    pub(super) board: Option<Passed>,
}

impl Packet {
    pub(super) fn take(
        caller: &Caller,
        bytes: &mut [u8; MESSAGE_MAX],
    ) -> Result<Option<Self>, Reason> {
        let (len, fds, whole) = match caller.recv(bytes).map_err(reason_of)? {
            Received::Nothing => return Ok(None),
            Received::Closed => return Err(Reason::PeerLeft),
            Received::Packet { len, fds, whole } => (len, fds, whole),
        };
        let [witness, second, third]: [Option<Passed>; FDS_MAX] = fds;
        let message = Message::decode(bytes.get(..len).unwrap_or_default());
        // A board goes behind what a message has anyway, and with a hello goes no memory.
        let (memory, board) = match message {
            Ok(Message::Hello(_)) => (third, second),
            _ => (second, third),
        };
        let packet = Self {
            message,
            witness,
            memory,
            board,
        };
        // What a later version adds is not ours to judge.
        let later = matches!(packet.message, Err(MeetError::Version(_)));
        if whole || later {
            Ok(Some(packet))
        } else {
            Err(Reason::Garbage)
        }
    }
}

/// What to make of the other end's reason: the same if it is about both ends.
pub(super) fn declined(reason: u16) -> Reason {
    match Reason::find(reason) {
        Some(reason @ (Reason::Version | Reason::Layout)) => reason,
        Some(Reason::GaveUp) => Reason::PeerGaveUp,
        _ => Reason::Declined,
    }
}

pub(super) fn say(caller: &Caller, message: &Message, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    caller.send(message.encode(&mut [0; MESSAGE_MAX]), fds)
}

/// How long the rings are that somebody would have, or has made; `None` if it is another layout.
pub(super) fn size_in(terms: &Terms) -> Option<Size> {
    Size::of_memory(terms.memory_len).filter(|_| terms.layout == stream::VERSION)
}

/// What both ends must agree on.
pub(super) fn terms(size: Size) -> Terms {
    Terms {
        layout: stream::VERSION,
        features: 0,
        memory_len: size.memory_len() as u64,
    }
}
