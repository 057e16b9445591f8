//! Sending and receiving where there is nothing to wait for, and nothing about the connection that is to be looked at: most of both.

use std::io::{IoSlice, IoSliceMut};

use sys::sync::Ordering;

use super::{Flow, ON_RING};
use crate::kernel::Kernel;

impl Flow {
    /// As [`Flow::send`] of one piece outside signal handlers, if it is short and there is room for it; `None`, and nothing was sent, if that is to look closer.
    #[inline]
    pub(crate) fn send_short(&self, kernel: &impl Kernel, piece: &IoSlice<'_>) -> Option<usize> {
        let tx = self.stream.tx();
        if !self.sends_on_ring() {
            return None;
        }
        tx.foresee();
        if tx.finished() != 0 || self.has_ended() || self.stream.peer_deaf() {
            return None;
        }
        let (sent, bits) = tx.write_short(piece)?;
        if bits != 0 {
            self.attend(kernel, bits);
        }
        Some(sent)
    }

    /// As [`Flow::receive`] into one buffer, if there is something in the ring; `None`, and nothing was taken, if that is to look closer.
    #[inline]
    pub(crate) fn receive_short(&self, into: &mut IoSliceMut<'_>) -> Option<usize> {
        let rx = self.stream.rx();
        if rx.phase() != ON_RING {
            return None;
        }
        let head = rx.head();
        let n = rx.peek(head, into).ok().filter(|n| *n > 0)?;
        let (taken, wake) = rx.take(head, head.wrapping_add(n as u64));
        if wake {
            self.owes_bell.store(1, Ordering::Relaxed);
        }
        taken.then_some(n)
    }
}
