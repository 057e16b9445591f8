//! What a connection has from those [before it](crate::lifetimes), and leaves to those after it.

use std::os::fd::BorrowedFd;

use sys::sync::Ordering;
use sys::tcp;

use super::{Conn, Way};
use crate::lifetimes::{self, Kind, Level};
use crate::stat;

impl Conn {
    /// From now on it leaves TCP when its kind mostly should.
    pub(super) fn learn(&self) {
        self.set_enough(Level::SOON.turns, Level::SOON.bytes);
        self.kind.store(UNASKED, Ordering::Relaxed);
    }

    /// It leaves TCP when the user says.
    pub(super) fn learn_nothing(&self) {
        self.kind.store(NONE, Ordering::Relaxed);
    }

    /// It has come so far that it matters of which kind it is: has that decide when it leaves TCP. Asked once.
    pub(super) fn heed_kind(&self, fd: BorrowedFd<'_>) {
        if self.kind.load(Ordering::Relaxed) != UNASKED {
            return;
        }
        let Ok((local, peer)) = tcp::addresses(fd) else {
            return;
        };
        stat::name(self.record, [local, peer]);
        let server = if self.is_opener() { peer } else { local };
        let kind = Kind::new(self.is_opener(), server.port());
        self.kind.store(kind.number(), Ordering::Relaxed);
        let Level { turns, bytes } = lifetimes::level(kind);
        self.set_enough(turns, bytes);
    }

    /// It ends. Those that ended before it mattered say nothing.
    pub(crate) fn note_lifetime(&self) {
        let kind = self.kind.swap(NONE, Ordering::Relaxed);
        if matches!(kind, NONE | UNASKED) {
            return;
        }
        let ((sent, sends), (received, receives)) = (self.counts(Way::Out), self.counts(Way::In));
        let turns = u32::try_from(2 * sends.min(receives)).unwrap_or(u32::MAX);
        lifetimes::note(
            Kind::from_number(kind),
            turns.max(self.turnarounds.load(Ordering::Relaxed)),
            sent.saturating_add(received),
        );
    }

    /// After so many turns or bytes it is to leave TCP.
    pub(super) fn set_enough(&self, turns: u32, bytes: u64) {
        self.enough.store(turns, Ordering::Relaxed);
        self.many.store(bytes, Ordering::Relaxed);
    }
}

/// In `Conn::kind`, beside the number of one.
const NONE: u32 = 0;
const UNASKED: u32 = u32::MAX;
