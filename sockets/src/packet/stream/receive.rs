//! From packets to the program.

use sys::errno::Errno;

use super::Stream;
use super::inner::{Inner, STASHED, Taken, URGENT};
use super::relay::BY_KERNEL;
use crate::packet::wait::Wait;

impl Stream {
    /// Receives what there is, up to `into.len()` bytes, waiting for the first as `patient` says. 0 is the end of the stream.
    ///
    /// # Errors
    /// `ECONNRESET`, once, when the connection broke before the end, `EAGAIN` when it would wait and may not, `EINTR`.
    pub fn recv<W: Into<Wait>>(
        &self,
        into: &mut [u8],
        patient: impl Fn() -> W,
    ) -> Result<usize, Errno> {
        self.recv_more(into, false, patient)
    }

    /// As [`Stream::recv`]; where the call has `begun` with other bytes it returns their number, and the next call is told of the error.
    pub(in crate::packet) fn recv_more<W: Into<Wait>>(
        &self,
        into: &mut [u8],
        begun: bool,
        patient: impl Fn() -> W,
    ) -> Result<usize, Errno> {
        let taken = self.take(into, begun, || patient().into());
        if let Err(errno) = taken
            && !begun
        {
            self.told(errno);
        }
        self.refresh();
        taken
    }

    #[inline(always)]
    fn take(
        &self,
        into: &mut [u8],
        begun: bool,
        patient: impl Fn() -> Wait,
    ) -> Result<usize, Errno> {
        let mut inner = self.lock();
        // Who receives has said what there was to say.
        self.settle(&mut inner);
        self.flush_now(&mut inner);
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if inner.is_relayed {
                return Err(BY_KERNEL);
            }
            let read = self.read(&mut inner, into);
            if read > 0 {
                inner.has_read(read);
                let more = !inner.arrived.is_empty();
                inner.tally.took(read, !begun, more);
                return Ok(read);
            }
            if inner.ended || inner.is_shut {
                return Ok(0);
            }
            if inner.lost {
                return inner.error.map_or(Ok(0), Err);
            }
            let limit = patient().limit()?;
            let (waited, taken) = self.wait(inner, into, limit);
            inner = waited;
            match taken {
                Taken::Bytes(first) => {
                    let rest = into.get_mut(first..).unwrap_or_default();
                    let read = first + self.read(&mut inner, rest);
                    inner.has_read(read);
                    let more = !inner.arrived.is_empty();
                    inner.tally.took(read, !begun, more);
                    return Ok(read);
                }
                Taken::Interrupted => return Err(Errno::INTR),
                Taken::Nothing | Taken::Packet => {}
            }
            // The window may have opened for what could not leave before.
            self.flush_now(&mut inner);
        }
    }

    /// As [`Stream::recv`], and leaves the bytes where they are. With `all` it waits until they fill `into`, or nothing more has room here.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn peek<W: Into<Wait>>(
        &self,
        into: &mut [u8],
        all: bool,
        patient: impl Fn() -> W,
    ) -> Result<usize, Errno> {
        let mut inner = self.lock();
        self.settle(&mut inner);
        self.flush_now(&mut inner);
        loop {
            if inner.is_relayed {
                return Err(BY_KERNEL);
            }
            while self.take_in(&mut inner) {}
            let seen = self.see(&inner, into)?;
            let no_more = !all || inner.lost || inner.is_full();
            let enough = seen == into.len() || (seen > 0 && no_more);
            if enough || inner.ended || inner.is_shut {
                inner.has_seen(seen);
                return Ok(seen);
            }
            if inner.lost {
                return inner.take_error().map_or(Ok(0), Err);
            }
            let limit = match patient().into().limit() {
                Ok(limit) => limit,
                Err(_) if seen > 0 => {
                    inner.has_seen(seen);
                    return Ok(seen);
                }
                Err(errno) => return Err(errno),
            };
            let (waited, taken) = self.wait(inner, &mut [], limit);
            inner = waited;
            if taken == Taken::Interrupted {
                inner.has_seen(seen);
                return if seen > 0 { Ok(seen) } else { Err(Errno::INTR) };
            }
        }
    }

    /// Copies what there is, and leaves it.
    pub(super) fn see(&self, inner: &Inner, into: &mut [u8]) -> Result<usize, Errno> {
        let mut before = inner.peek_offset.unwrap_or(0);
        let mut seen = 0;
        for (index, piece) in inner.arrived.iter().enumerate() {
            let skipped = before.min(piece.len as usize);
            before -= skipped;
            let rest = into.get_mut(seen..).unwrap_or_default();
            let count = rest.len().min(piece.len as usize - skipped);
            if rest.is_empty() || piece.slot == URGENT {
                break;
            }
            let place = rest.get_mut(..count).unwrap_or_default();
            let at = piece.at + skipped as u32;
            if !inner.stash.copy(index, at, place) {
                self.copy(piece.slot, at, place)?;
            }
            seen += count;
        }
        Ok(seen)
    }

    #[inline(always)]
    pub(super) fn read(&self, inner: &mut Inner, into: &mut [u8]) -> usize {
        let mut read = 0;
        while read < into.len() {
            let rest = into.get_mut(read..).unwrap_or_default();
            let Some(piece) = inner.arrived.front_mut() else {
                // What comes meanwhile belongs to it too.
                match self.take_into(inner, rest) {
                    Taken::Nothing | Taken::Interrupted => break,
                    Taken::Packet => {}
                    Taken::Bytes(count) => read += count,
                }
                continue;
            };
            let count = rest.len().min(piece.len as usize);
            let (slot, at) = (piece.slot, piece.at);
            if slot == URGENT {
                break;
            }
            piece.at += count as u32;
            piece.len -= count as u32;
            let empty = piece.len == 0;
            let place = rest.get_mut(..count).unwrap_or_default();
            if slot == STASHED {
                inner.unstash(at, place, empty);
                read += count;
                continue;
            }
            if self.copy(slot, at, place).is_err() {
                self.lose(inner);
                break;
            }
            read += count;
            if empty {
                inner.arrived.pop_front();
                self.give_back(inner, slot);
            }
        }
        read
    }

    #[inline]
    pub(super) fn copy(&self, slot: u32, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        let start = slot as usize * self.stride as usize + at as usize;
        let copied = self.incoming.memory().read(start, into);
        copied.map_err(|_| Errno::CONNRESET)
    }
}
