//! Urgent data: a byte with a place in the stream, of which the program is told at once.
//!
//! What a receiver makes of it (SIGURG, the mark, SO_OOBINLINE) is the kernel's business: a pair of Unix sockets has it all, as TCP does. So a connection on
//! which some comes is relayed from then on ([`crate::packet::relay`]), as one of TCP's that has left it goes back.

use std::sync::Arc;

use sys::errno::Errno;
use via::Descriptor;

use super::Stream;
use super::inner::{Inner, Piece, URGENT};
use super::post::NO_SLOT;
use super::relay::BY_KERNEL;
use crate::packet::relay;
use crate::packet::wait::Wait;

impl Inner {
    /// The next byte, if it is an urgent one.
    pub(super) fn urgent(&self) -> Option<u8> {
        let piece = self.arrived.front()?;
        (piece.slot == URGENT).then_some(piece.at as u8)
    }

    /// Whether an urgent byte has come.
    pub(super) fn has_urgent(&self) -> bool {
        self.arrived.iter().any(|piece| piece.slot == URGENT)
    }
}

impl Stream {
    /// An urgent byte came.
    #[cold]
    pub(super) fn note_urgent(&self, inner: &mut Inner, byte: u8) {
        let relays = inner.me.upgrade().is_some_and(|me| relay::asked(&me));
        if relays {
            inner.arrived.push_back(Piece {
                slot: URGENT,
                at: byte.into(),
                len: 1,
            });
        } else {
            // Its program's calls know no such thing.
            inner.talk.reposted();
        }
        self.transmit(inner);
    }

    /// The next byte, an urgent one, has been taken.
    pub(super) fn pass_urgent(&self, inner: &mut Inner) {
        inner.arrived.pop_front();
        inner.talk.reposted();
        self.transmit(inner);
    }

    /// Whether it is to be relayed, for something that has come.
    pub(in crate::packet) fn wants_relay(&self) -> bool {
        let inner = self.lock();
        inner.talk.is_asked_to_move() || inner.has_urgent()
    }

    /// Whether urgent data have come, for which the stream is to be relayed, if it is not yet.
    pub fn has_urgent(&self) -> bool {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        inner.is_relayed || inner.has_urgent()
    }

    /// Sends an urgent byte behind all that has been sent.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub fn send_urgent<W: Into<Wait>>(
        self: &Arc<Self>,
        byte: u8,
        patient: impl Fn() -> W,
    ) -> Result<(), Errno> {
        let urged = self.urge(byte, false, &|| patient().into());
        if let Err(errno) = urged {
            self.told(errno);
        }
        self.refresh();
        urged
    }

    pub(super) fn urge(
        &self,
        byte: u8,
        by_relay: bool,
        patient: &impl Fn() -> Wait,
    ) -> Result<(), Errno> {
        let mut inner = self.lock();
        if inner.is_relayed && !by_relay {
            return Err(BY_KERNEL);
        }
        inner = self.acquainted(inner, patient)?;
        inner = self.flush(inner, patient)?;
        loop {
            inner = self.window(inner, patient)?;
            let Some(packet) = inner.talk.take_window_for(byte) else {
                continue;
            };
            if !self.post_at_once(&[], packet) {
                self.post(&mut inner, packet, Descriptor::send(), NO_SLOT);
            }
            return Ok(());
        }
    }
}
