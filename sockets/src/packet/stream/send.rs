//! From the program to packets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::packet::Verdict;
use sys::errno::Errno;
use sys::lock::Guard;
use via::{Descriptor, Done, Queue, Segment};

use super::Stream;
use super::flow::{Inner, NO_SLOT, Taken};
use super::relay::BY_KERNEL;
use crate::packet::keeper;
use crate::packet::variant::Waiting;
use crate::packet::wait::{Wait, left};

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

    #[inline]
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

    /// The timer of the combined messages; when it is to ask again.
    pub(in crate::packet) fn expire(&self) -> Option<Instant> {
        let mut inner = self.lock();
        if inner.lost || inner.is_refused {
            // The window stays closed, whoever asks.
            inner.is_timed = false;
            return None;
        }
        match inner.combiner.due() {
            Some(due) if due <= self.now() || inner.is_ending => {
                if inner.talk.window() == 0 {
                    while self.take_in(&mut inner) {}
                }
                self.flush_now(&mut inner);
                // A closed window is looked at again.
                let again = inner.combiner.due().map(|_| Instant::now() + RETRY);
                inner.is_timed = again.is_some();
                again
            }
            Some(due) => Some(self.begun + due),
            None => {
                inner.is_timed = false;
                None
            }
        }
    }

    fn may_send(inner: &Inner) -> Result<(), Errno> {
        if let Some(error) = inner.error {
            return Err(error);
        }
        if inner.lost || inner.is_refused || !inner.sends() {
            return Err(Errno::PIPE);
        }
        Ok(())
    }

    /// After a wait, which is never the relay's.
    fn still_ours(&self, inner: &Inner) -> Result<(), Errno> {
        if inner.is_relayed {
            // It may have met what this thread had of the NIC's.
            self.show(inner, false);
            return Err(BY_KERNEL);
        }
        Ok(())
    }

    /// Appends a small message, which fits, to what is held.
    fn hold(
        self: &Arc<Self>,
        mut inner: Guard<'_, Inner>,
        slot: u32,
        bytes: &[u8],
        begun: bool,
    ) -> Result<usize, Errno> {
        let start = slot as usize * self.stride as usize + inner.combiner.held() as usize;
        let written = self.outgoing.memory().write(start, bytes);
        written.map_err(|_| Errno::NOBUFS)?;
        // The first of those that wait together says until when; the clock is read for no other.
        let now = match inner.combiner.held() {
            0 => self.now(),
            _ => Duration::ZERO,
        };
        let verdict = inner.combiner.offer(bytes.len() as u32, now);
        debug_assert_eq!(verdict, Verdict::Append, "it fits");
        inner.tally.held(!begun);
        if !std::mem::replace(&mut inner.is_timed, true)
            && let Some(due) = inner.combiner.due()
        {
            drop(inner);
            keeper::flush_at(self.begun + due, self);
        }
        Ok(bytes.len())
    }

    /// Sends what is held, waiting for the window if it may.
    pub(super) fn flush<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        while inner.combiner.held() > 0 {
            inner = self.window(inner, patient)?;
            self.flush_now(&mut inner);
        }
        Ok(inner)
    }

    /// Sends what is held, which is one packet, if the window is open, and the FIN that follows, if one does.
    pub(super) fn flush_now(&self, inner: &mut Inner) {
        let held = inner.combiner.held();
        if let Some(slot) = inner.held_in.filter(|_| held > 0)
            && let Some(packet) = inner.talk.take_window()
        {
            let start = slot * self.stride;
            let descriptor = Descriptor::send().segment(&self.outgoing, start..start + held);
            self.post(inner, packet, descriptor, slot);
            inner.tally.released(held as usize);
            inner.held_in = None;
            inner.combiner.flushed();
        }
        if inner.is_ending && inner.combiner.held() == 0 && inner.talk.sends() {
            self.say_fin(inner);
        }
    }

    fn send_packets<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        bytes: &[u8],
        begun: bool,
        patient: &impl Fn() -> Wait,
    ) -> Result<usize, Errno> {
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
            let registers = large && self.adapter.cache.is_some();
            if !registers && self.send_at_once(&mut inner, piece) {
                inner.tally.sent(piece.len(), !begun);
                sent = end;
                continue;
            }
            inner = match large
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
    #[inline]
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

    /// A buffer to send from.
    fn buffer<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<(Guard<'a, Inner>, u32), Errno> {
        loop {
            self.reap(&mut inner);
            if let Some(slot) = inner.free.pop() {
                return Ok((inner, slot));
            }
            Self::may_send(&inner)?;
            let limit = match patient().limit() {
                Ok(limit) => limit,
                Err(errno) => {
                    self.watch_room(&mut inner);
                    return Err(errno);
                }
            };
            // The peer may wait for the same.
            self.settle(&mut inner);
            if inner.is_full() {
                self.stash(&mut inner);
            }
            let (drained, interrupted) = self.drain(inner, limit);
            inner = drained;
            if interrupted {
                return Err(Errno::INTR);
            }
            self.still_ours(&inner)?;
            self.take_in(&mut inner);
        }
    }

    /// Waits until the NIC lets go of a buffer, which is when the peer makes room there, a signal, which it tells, or the limit. One waits in the
    /// NIC, and the others for it.
    fn drain<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        limit: Option<Instant>,
    ) -> (Guard<'a, Inner>, bool) {
        if self.adapter.variant.waiting == Waiting::Polling {
            drop(inner);
            std::thread::yield_now();
            return (self.lock(), false);
        }
        if inner.is_draining {
            return self.wait_for_others(inner, limit);
        }
        inner.is_draining = true;
        drop(inner);
        let sent = self.vi.send_wait_or_signal(left(limit));
        let mut inner = self.lock();
        inner.is_draining = false;
        // Others may have seen all of them done meanwhile.
        if let Ok(Done::Completed(completion)) = sent {
            Self::note_sent(&mut inner, completion);
        }
        let interrupted = sent == Ok(Done::NotDone) && !self.was_rung(Queue::Send);
        if inner.waiters > 0 {
            self.moved.notify_all();
        }
        (inner, interrupted)
    }

    /// Waits for the peer's first packet, which says what it has room for.
    #[inline]
    pub(super) fn acquainted<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        loop {
            Self::may_send(&inner)?;
            if inner.peer.is_some() {
                return Ok(inner);
            }
            if self.take_in(&mut inner) {
                continue;
            }
            let limit = patient().limit()?;
            let (waited, taken) = self.wait(inner, &mut [], limit);
            inner = waited;
            if taken == Taken::Interrupted {
                return Err(Errno::INTR);
            }
            self.still_ours(&inner)?;
        }
    }

    /// Waits until a packet may be sent.
    #[inline]
    pub(super) fn window<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        loop {
            Self::may_send(&inner)?;
            if inner.talk.window() > 0 {
                return Ok(inner);
            }
            // The peer may wait for the same.
            self.settle(&mut inner);
            if inner.is_full() {
                self.stash(&mut inner);
            }
            if self.take_in(&mut inner) {
                continue;
            }
            let limit = patient().limit()?;
            let (waited, taken) = self.wait(inner, &mut [], limit);
            inner = waited;
            if taken == Taken::Interrupted {
                return Err(Errno::INTR);
            }
            self.still_ours(&inner)?;
        }
    }
}

/// How often a closed window is looked at for what a timer should send.
const RETRY: Duration = Duration::from_millis(10);
/// Looks for room in the NIC before a packet is staged: as long as the peer takes for one of the largest.
const LOOKS_FOR_ROOM: u32 = 128;
