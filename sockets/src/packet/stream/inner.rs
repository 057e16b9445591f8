//! What a stream's lock guards.

use std::collections::VecDeque;
use std::sync::Weak;

use proto::packet::{Combiner, Conversation, State, Wakeup};
use sys::errno::Errno;

use super::Stream;
use super::stash::Stash;
use crate::packet::show::Show;
use crate::stat::Tally;

pub(super) struct Inner {
    pub(super) talk: Conversation,
    pub(super) combiner: Combiner,
    /// DATA that has come, oldest first: the paper's `recvq`.
    pub(super) arrived: VecDeque<Piece>,
    /// What was taken out of its buffers because nobody read it: the bytes of the first of `arrived`, which have [`STASHED`] for a buffer.
    pub(super) stash: Stash,
    /// Where the next look begins (`SO_PEEK_OFF`).
    pub(super) peek_offset: Option<usize>,
    /// Buffers to send from, the last used on top.
    pub(super) free: Vec<u32>,
    /// The buffer in which small messages gather.
    pub(super) held_in: Option<u32>,
    /// Posted sends that have not been seen to be done.
    pub(super) unsent: u32,
    pub(super) wakeup: Wakeup,
    pub(super) peer: Option<Wakeup>,
    /// The peer's FIN has come.
    pub(super) ended: bool,
    /// The program has shut its receiving direction down.
    pub(super) is_shut: bool,
    /// The VI is no longer connected.
    pub(super) lost: bool,
    /// The program has sent something since the peer's end.
    pub(super) sends_on: bool,
    /// The peer is gone, after its end: what is sent to it is lost.
    pub(super) is_left: bool,
    /// The error that broke the connection, until the program has been told.
    pub(super) error: Option<Errno>,
    /// A packet could not be delivered, and no other will be.
    pub(super) is_refused: bool,
    /// A thread waits for the NIC to let go of a buffer.
    pub(super) is_draining: bool,
    /// The program was told that there is no room in the NIC, and polls: it is to be told when there is.
    pub(super) is_crowded: bool,
    /// A thread waits in the NIC.
    pub(super) is_awaited: bool,
    /// The program has closed it.
    pub(super) is_closing: bool,
    /// The program sends nothing more: a FIN follows what is held.
    pub(super) is_ending: bool,
    /// The timer knows of it.
    pub(super) is_timed: bool,
    /// Its bytes go through the stand-in, which others may have: no call of the program's moves any.
    pub(super) is_relayed: bool,
    /// Acknowledgements are due, and wait for the program's next call: its DATA takes them along.
    pub(super) is_deferring: bool,
    /// And since the timer last looked.
    pub(super) has_deferred: bool,
    /// The timer looks after them.
    pub(super) is_tended: bool,
    /// Threads that wait for another to take packets in.
    pub(super) waiters: u32,
    /// Where a program that polls is told what there is.
    pub(super) shown: Option<Show>,
    /// The NIC's notify function takes packets in.
    pub(super) is_noticed: bool,
    /// The stream itself.
    pub(super) me: Weak<Stream>,
    /// What others see of it.
    pub(super) tally: Tally,
}

/// What taking a packet in came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// There is none.
    Nothing,
    /// There is none, and a signal was handled.
    Interrupted,
    /// One came.
    Packet,
    /// DATA came, and so many bytes of it are where the program wants them.
    Bytes(usize),
}

/// Bytes in a receive buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) slot: u32,
    pub(super) at: u32,
    pub(super) len: u32,
}

impl Inner {
    pub(super) fn new(talk: Conversation, combiner: Combiner, wakeup: Wakeup, slots: u32) -> Self {
        Self {
            arrived: VecDeque::with_capacity(talk.settings().slots() as usize),
            stash: Stash::default(),
            peek_offset: None,
            talk,
            combiner,
            free: (0..slots).rev().collect(),
            held_in: None,
            unsent: 0,
            wakeup,
            peer: None,
            ended: false,
            is_shut: false,
            lost: false,
            sends_on: false,
            is_left: false,
            error: None,
            is_refused: false,
            is_draining: false,
            is_crowded: false,
            is_awaited: false,
            is_closing: false,
            is_ending: false,
            is_timed: false,
            is_relayed: false,
            is_deferring: false,
            has_deferred: false,
            is_tended: false,
            waiters: 0,
            shown: None,
            is_noticed: false,
            me: Weak::new(),
            tally: Tally::default(),
        }
    }

    /// Whether nothing more can come before the program has read something.
    pub(super) fn is_full(&self) -> bool {
        let posted = self.talk.settings().pre_posted();
        self.talk.is_full() || self.arrived.len() - self.stash.len() >= posted as usize
    }

    /// Bytes that have come and have not been read.
    pub(super) fn readable(&self) -> usize {
        self.arrived.iter().map(|piece| piece.len as usize).sum()
    }

    /// The program has read so much: a look that follows begins so much earlier.
    #[inline]
    pub(super) fn has_read(&mut self, bytes: usize) {
        if let Some(offset) = &mut self.peek_offset {
            *offset = offset.saturating_sub(bytes);
        }
    }

    /// The program has looked at so much.
    pub(super) fn has_seen(&mut self, bytes: usize) {
        if let Some(offset) = &mut self.peek_offset {
            *offset += bytes;
        }
    }

    /// Whether the program may send.
    pub(super) fn sends(&self) -> bool {
        !self.is_ending && self.talk.sends()
    }

    /// Whether everything has been said on both sides, or nothing more can be.
    pub(super) fn is_over(&self) -> bool {
        self.lost || self.talk.state() == State::Closed
    }

    /// The connection breaks: what the program is to be told, if it has not been yet.
    pub(super) fn note_break(&mut self) {
        if self.is_over() || self.is_refused {
            return;
        }
        // Whoever has said that it ends may be gone: over TCP that shows when one sends to it.
        self.is_left = self.ended && !self.sends_on;
        self.error = match (self.ended, self.sends_on) {
            (false, _) => Some(Errno::CONNRESET),
            (true, true) => Some(Errno::PIPE),
            (true, false) => None,
        };
    }

    /// The error that broke the connection, once.
    pub(super) fn take_error(&mut self) -> Option<Errno> {
        let error = self.error.take();
        if let (Some(_), Some(show)) = (error, &self.shown) {
            show.told();
        }
        error
    }
}

/// The buffer of a piece that is in none: an urgent byte, which is where the piece begins.
pub(super) const URGENT: u32 = u32::MAX - 1;
/// The buffer of a piece that is in none any more.
pub(super) const STASHED: u32 = u32::MAX;
