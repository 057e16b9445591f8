//! From the program to packets.

use std::sync::Arc;

use sys::errno::Errno;
use sys::lock::Guard;
use via::{Descriptor, Segment};

use super::Stream;
use super::inner::Inner;
use super::post::NO_SLOT;
use super::relay::BY_KERNEL;
use crate::packet::wait::Wait;

impl Stream {
    /// Sends bytes, all of them if `patient` says that it may wait. Returns how many.
    ///
    /// # Errors
    /// `EPIPE` after the end of this direction, `ECONNRESET` once when the connection broke, `EAGAIN` when it would wait and may not, `EINTR`.
    pub fn send<W: Into<Wait>>(
        self: &Arc<Self>,
        bytes: &[u8],
        patient: impl Fn() -> W,
    ) -> Result<usize, Errno> {
        self.send_more(bytes, false, patient)
    }

    /// As [`Stream::send`]; where the call has `begun` with other bytes it returns their number, and the next call is told of the error.
    pub(in crate::packet) fn send_more<W: Into<Wait>>(
        self: &Arc<Self>,
        bytes: &[u8],
        begun: bool,
        patient: impl Fn() -> W,
    ) -> Result<usize, Errno> {
        let given = self.give(bytes, begun, false, &|| match patient().into() {
            wait if begun => wait.for_the_rest(),
            wait => wait,
        });
        if let Err(errno) = given
            && !begun
        {
            self.told(errno);
        }
        self.refresh();
        given
    }

    #[inline(always)]
    pub(super) fn give(
        self: &Arc<Self>,
        bytes: &[u8],
        begun: bool,
        by_relay: bool,
        patient: &impl Fn() -> Wait,
    ) -> Result<usize, Errno> {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut inner = self.lock();
        if inner.is_relayed && !by_relay {
            return Err(BY_KERNEL);
        }
        if std::mem::take(&mut inner.is_left) {
            // The answer would be a reset.
            inner.error = Some(Errno::PIPE);
            self.show(&inner, false);
            return Ok(bytes.len());
        }
        inner.sends_on |= inner.ended;
        inner = self.acquainted(inner, patient)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        // What the program polls says the same; who may wait does when the buffer is full.
        if inner.talk.window() == 0 {
            self.take_in(&mut inner);
            if inner.talk.window() == 0 {
                patient().limit()?;
            }
        }
        while inner.combiner.fits(len) || inner.combiner.held() > 0 {
            if !inner.combiner.fits(len) {
                inner = self.flush(inner, patient)?;
            } else if let Some(slot) = inner.held_in {
                return self.hold(inner, slot, bytes, begun);
            } else {
                let (guard, slot) = self.buffer(inner, patient)?;
                inner = guard;
                // Another thread may have found one meanwhile.
                match inner.held_in {
                    Some(_) => inner.free.push(slot),
                    None => inner.held_in = Some(slot),
                }
            }
        }
        self.send_packets(inner, bytes, begun, patient)
    }

    #[inline(always)]
    fn send_packets<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        bytes: &[u8],
        begun: bool,
        patient: &impl Fn() -> Wait,
    ) -> Result<usize, Errno> {
        // The NIC has the program's memory until it has sent it: who may not wait for that sends a copy.
        let may_register = self.adapter.cache.is_some() && patient() == Wait::Ever;
        let mut sent = 0;
        while sent < bytes.len() {
            let begun = begun || sent > 0;
            let patient = &|| match patient() {
                wait if begun => wait.for_the_rest(),
                wait => wait,
            };
            inner = match self.window(inner, patient) {
                Ok(inner) => inner,
                Err(_) if sent > 0 => return Ok(sent),
                Err(errno) => return Err(errno),
            };
            let end = bytes.len().min(sent + inner.talk.mtu() as usize);
            let piece = bytes.get(sent..end).unwrap_or_default();
            let large = piece.len() > self.adapter.variant.copy_max as usize;
            let registers = large && may_register && inner.unsent == 0;
            if !registers && self.send_at_once(&mut inner, piece) {
                inner.tally.sent(piece.len(), !begun);
                sent = end;
                continue;
            }
            inner = match registers
                .then(|| self.send_registered(&mut inner, piece))
                .flatten()
            {
                Some(()) => inner,
                None => match self.send_copied(inner, piece, patient) {
                    Ok(inner) => inner,
                    Err(_) if sent > 0 => return Ok(sent),
                    Err(errno) => return Err(errno),
                },
            };
            inner.tally.sent(piece.len(), !begun);
            sent = end;
        }
        Ok(sent)
    }

    /// Sends bytes from where they are by a NIC that copies; it may have room in a moment. `false` if they have to be staged.
    #[inline(always)]
    fn send_at_once(&self, inner: &mut Inner, piece: &[u8]) -> bool {
        if !self.adapter.copies {
            return false;
        }
        for _ in 0..LOOKS_FOR_ROOM {
            let Some(packet) = inner.talk.take_window() else {
                return false;
            };
            if self.post_at_once(piece, packet) {
                inner.is_deferring = false;
                return true;
            }
            inner.talk.put_back(packet);
            std::hint::spin_loop();
        }
        false
    }

    fn send_copied<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        piece: &[u8],
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        loop {
            let (guard, slot) = self.buffer(inner, patient)?;
            inner = guard;
            let start = slot * self.stride;
            let written = self.outgoing.memory().write(start as usize, piece);
            if written.is_ok()
                && let Some(packet) = inner.talk.take_window()
            {
                let range = start..start + piece.len() as u32;
                let descriptor = Descriptor::send().segment(&self.outgoing, range);
                self.post(&mut inner, packet, descriptor, slot);
                return Ok(inner);
            }
            inner.free.push(slot);
            written.map_err(|_| Errno::NOBUFS)?;
            // While it waited for the buffer others have used up the window.
            inner = self.window(inner, patient)?;
        }
    }

    /// Sends bytes from where they are, and waits until the NIC has them; `None` where that is not possible.
    fn send_registered(&self, inner: &mut Inner, piece: &[u8]) -> Option<()> {
        let adapter = &self.adapter;
        let (addr, len) = (piece.as_ptr().addr() as u64, piece.len());
        let cache = adapter.cache.as_ref()?;
        let region = cache.find(&adapter.nic, &adapter.tag, addr, len as u64)?;
        let packet = inner.talk.take_window()?;
        let segment = Segment {
            addr,
            handle: region.handle(),
            len: len as u32,
        };
        let descriptor = Descriptor::send().raw_segment(segment);
        self.post(inner, packet, descriptor, NO_SLOT);
        self.reap(inner);
        while inner.unsent > 0 {
            std::thread::yield_now();
            self.reap(inner);
        }
        Some(())
    }
}

/// Looks for room in the NIC before a packet is staged: as long as the peer takes for one of the largest.
const LOOKS_FOR_ROOM: u32 = 128;
