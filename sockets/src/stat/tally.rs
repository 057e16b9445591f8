//! What a connection over a VI says of itself: a socket of type `SOCK_VIA`, or an extended one.

use std::net::SocketAddr;

use sys::ledger::{Record, Spare};
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

use super::Nic;
use super::record::{EXTENDED, NO_NUMBER, PACKET, begin, change, end};
use crate::conn::Origin;

/// Its line, until it is dropped. Counts with plain stores: whoever calls has the lock of the connection's state.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    spare: Option<Spare>,
    /// Calls whose bytes are held back.
    held: u32,
    /// Calls, and their bytes, that took a part of what has come.
    took: (u32, usize),
}

/// Of which kind the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Packet,
    Extended,
}

impl Tally {
    /// Begins a line; a connection that there is no room for has none.
    pub(crate) fn begin(
        kind: Kind,
        nic: &str,
        origin: Origin,
        ends: Option<[SocketAddr; 2]>,
    ) -> Self {
        let spare = Spare::take();
        if let Some(record) = &spare {
            begin(record, NO_NUMBER, origin, ends);
            record.nic.store(Nic::new(nic).0, Ordering::Relaxed);
            let state = match kind {
                Kind::Packet => PACKET,
                Kind::Extended => EXTENDED,
            };
            change(record, state, 0);
        }
        Self {
            spare,
            ..Self::default()
        }
    }

    /// The program knows it by that descriptor.
    pub(crate) fn set_number(&self, fd: u32) {
        if let Some(record) = self.record() {
            record.fd.store(fd, Ordering::Relaxed);
        }
    }

    /// Bytes were sent; `first` where they are the first of a call, or of a message.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize, first: bool) {
        self.count(0, bytes, first.into());
    }

    /// The same for bytes that are held back: there are many such calls to a packet, and they are short.
    #[inline]
    pub(crate) fn held(&mut self, first: bool) {
        self.held += u32::from(first);
    }

    /// So many bytes that were held back have been sent: all of them.
    #[inline]
    pub(crate) fn released(&mut self, bytes: usize) {
        let calls = std::mem::take(&mut self.held);
        self.count(0, bytes, calls);
    }

    /// As [`Tally::sent`], for bytes that were received.
    #[inline]
    pub(crate) fn received(&self, bytes: usize, first: bool) {
        self.count(1, bytes, first.into());
    }

    /// The same, where `more` has come: there are many such calls to a packet, and they are told with the last.
    #[inline]
    pub(crate) fn took(&mut self, bytes: usize, first: bool, more: bool) {
        let (calls, before) = self.took;
        let now = (calls + u32::from(first), before + bytes);
        self.took = if more { now } else { (0, 0) };
        if !more {
            self.count(1, now.1, now.0);
        }
    }

    #[inline]
    fn count(&self, direction: usize, bytes: usize, calls: u32) {
        let Some(record) = &self.spare else {
            return;
        };
        add(record.bytes.get(direction), bytes as u64);
        add(record.calls.get(direction), calls.into());
    }

    /// In a forked child it is the parent's.
    fn record(&self) -> Option<&Record> {
        let spare = self.spare.as_ref().filter(|spare| spare.is_home());
        spare.map(|spare| &**spare)
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if let Some(record) = self.record() {
            end(record);
        }
    }
}

#[inline]
fn add(count: Option<&AtomicU64>, more: u64) {
    if let Some(count) = count {
        let before = count.load(Ordering::Relaxed);
        count.store(before.wrapping_add(more), Ordering::Relaxed);
    }
}
