//! From packets to the program.

use sys::errno::Errno;

use super::Stream;
use super::flow::{Inner, Taken};

impl Stream {
    /// Receives what there is, up to `into.len()` bytes, waiting for the first if `patient` says that it may. 0 is the end of the stream.
    ///
    /// # Errors
    /// `ECONNRESET` when the connection broke before the end, `EAGAIN` when it would wait and may not.
    pub fn recv(&self, into: &mut [u8], patient: impl Fn() -> bool) -> Result<usize, Errno> {
        let taken = self.take(into, patient);
        self.refresh();
        taken
    }

    #[inline]
    fn take(&self, into: &mut [u8], patient: impl Fn() -> bool) -> Result<usize, Errno> {
        let mut inner = self.lock();
        // Who receives has said what there was to say.
        self.settle(&mut inner);
        self.flush_now(&mut inner);
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let read = self.read(&mut inner, into);
            if read > 0 {
                return Ok(read);
            }
            if inner.ended {
                return Ok(0);
            }
            if inner.lost {
                return Err(Errno::CONNRESET);
            }
            if !patient() {
                return Err(Errno::AGAIN);
            }
            let (waited, taken) = self.wait(inner, into);
            inner = waited;
            if let Taken::Bytes(first) = taken {
                let rest = into.get_mut(first..).unwrap_or_default();
                return Ok(first + self.read(&mut inner, rest));
            }
            // The window may have opened for what could not leave before.
            self.flush_now(&mut inner);
        }
    }

    /// As [`Stream::recv`], and leaves the bytes where they are.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn peek(&self, into: &mut [u8], patient: impl Fn() -> bool) -> Result<usize, Errno> {
        let mut inner = self.lock();
        self.settle(&mut inner);
        self.flush_now(&mut inner);
        loop {
            while self.take_in(&mut inner) {}
            let mut seen = 0;
            for piece in &inner.arrived {
                let rest = into.get_mut(seen..).unwrap_or_default();
                let count = rest.len().min(piece.len as usize);
                let Some(place) = rest.get_mut(..count).filter(|place| !place.is_empty()) else {
                    break;
                };
                self.copy(piece.slot, piece.at, place)?;
                seen += count;
            }
            if seen > 0 || inner.ended || into.is_empty() {
                return Ok(seen);
            }
            if inner.lost {
                return Err(Errno::CONNRESET);
            }
            if !patient() {
                return Err(Errno::AGAIN);
            }
            inner = self.wait(inner, &mut []).0;
        }
    }

    #[inline]
    fn read(&self, inner: &mut Inner, into: &mut [u8]) -> usize {
        let mut read = 0;
        while read < into.len() {
            let rest = into.get_mut(read..).unwrap_or_default();
            let Some(piece) = inner.arrived.front_mut() else {
                // What comes meanwhile belongs to it too.
                match self.take_into(inner, rest) {
                    Taken::Nothing => break,
                    Taken::Packet => {}
                    Taken::Bytes(count) => read += count,
                }
                continue;
            };
            let count = rest.len().min(piece.len as usize);
            let (slot, at) = (piece.slot, piece.at);
            piece.at += count as u32;
            piece.len -= count as u32;
            let empty = piece.len == 0;
            if let Some(place) = rest.get_mut(..count)
                && self.copy(slot, at, place).is_err()
            {
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
    fn copy(&self, slot: u32, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        let start = slot as usize * self.stride as usize + at as usize;
        let copied = self.incoming.memory().read(start, into);
        copied.map_err(|_| Errno::CONNRESET)
    }
}
