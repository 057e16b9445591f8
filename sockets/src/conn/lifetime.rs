//! What a connection has from those [before it](crate::lifetimes), and leaves to those after it.

use std::os::fd::BorrowedFd;

use sys::sync::Ordering;
use sys::tcp;

use super::{Conn, Way};
use crate::lifetimes::{self, Kind, Level};
use crate::stat;
use crate::states::connection::Event;

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
        let asked = self.kind.compare_exchange(
            UNASKED,
            kind.number(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if asked.is_ok() {
            let Level { turns, bytes } = lifetimes::level(kind);
            self.set_enough(turns, bytes);
        }
    }

    /// Nobody came to the meeting. The other end may have learned something else, and come to it later: then this one is young again until the next level at which that
    /// may be. False if there is none.
    pub(super) fn comes_later(&self) -> bool {
        let (turns, bytes) = self.lived();
        let next = Level::ALL
            .into_iter()
            .find(|level| turns < level.turns && bytes < level.bytes);
        let Some(Level {
            turns: enough,
            bytes: many,
        }) = next.filter(|_| self.learns())
        else {
            return false;
        };
        self.turnarounds.store(turns, Ordering::Relaxed);
        self.set_enough(enough, many);
        self.go(Event::Miss, None)
    }

    /// Whether it is not the user who says when it leaves TCP.
    pub(super) fn learns(&self) -> bool {
        self.kind.load(Ordering::Relaxed) != NONE
    }

    /// It ends. Those that ended before it mattered say nothing, nor those that could not leave TCP.
    pub(crate) fn note_lifetime(&self) {
        let kind = self.kind.load(Ordering::Relaxed);
        if matches!(kind, NONE | UNASKED | UNTOLD) {
            return;
        }
        self.kind.store(UNTOLD, Ordering::Relaxed);
        if self.is_on_tcp() {
            return;
        }
        let (turns, bytes) = self.lived();
        lifetimes::note(Kind::from_number(kind), turns, bytes);
    }

    /// In the child of a fork: what its parent had exchanged by then says nothing of how long it lasts.
    pub(crate) fn forget_lifetime(&self) {
        if !matches!(self.kind.load(Ordering::Relaxed), NONE | UNASKED) {
            self.kind.store(UNTOLD, Ordering::Relaxed);
        }
    }

    /// Turns and bytes so far. Turns are not counted but where it is young; calls are.
    fn lived(&self) -> (u32, u64) {
        let ((sent, sends), (received, receives)) = (self.counts(Way::Out), self.counts(Way::In));
        let turns = u32::try_from(sends.min(receives).saturating_mul(2)).unwrap_or(u32::MAX);
        (
            turns.max(self.turnarounds.load(Ordering::Relaxed)),
            sent.saturating_add(received),
        )
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
/// It has learned, and does not teach.
const UNTOLD: u32 = u32::MAX - 1;
