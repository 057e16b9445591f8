//! What the sender has: the boards of its peers, each mapped once.

use std::fmt;
use std::os::fd::BorrowedFd;

use super::layout::{LEN, Pages};
use super::{Id, Place};
use crate::mem::{Mapping, memfd};
use crate::sync::{AtomicPtr, Ordering, mapped::AtomicU32};

/// A connection's share of the mapping of its peer's board.
pub struct Post(&'static Shared);

/// What the connections to one process have.
struct Shared {
    /// Where its board is mapped, as long as there are any.
    pages: AtomicPtr<Pages>,
    /// How many there are.
    count: AtomicU32,
}

impl Post {
    /// Notes that there is something at `place`; whether the doorbell must be rung as well.
    #[inline]
    pub fn note(&self, place: Place) -> bool {
        // Relaxed: it was stored before this one was made.
        let pages = self.0.pages.load(Ordering::Relaxed);
        // SAFETY: as long as this one is counted the mapping stays, which is as long as the pages; they consist of atomics.
        let leaf = unsafe { (*pages).leaves.get(place.leaf()) };
        leaf.is_none_or(|leaf| leaf.words().note(place.slot()))
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn is_of_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        // Release for what was done with the mapping; `Peers::admit` acquires. It is unmapped there, for this may be in a signal handler.
        self.0.count.fetch_sub(1, Ordering::Release);
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("count", &self.0.count.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// The boards of other processes. One that no connection has stays mapped until its place is needed.
pub(super) struct Peers {
    mapped: [Option<Mapped>; PEERS],
}

struct Mapped {
    board: Id,
    _mapping: Mapping,
}

impl Peers {
    pub(super) const NONE: Self = Self {
        mapped: [const { None }; PEERS],
    };

    /// See [`admit`](super::admit).
    pub(super) fn admit(&mut self, fd: BorrowedFd<'_>) -> Option<Post> {
        if memfd::sealed_size(fd).ok()? != LEN as u64 {
            return None;
        }
        // As long as it is mapped nobody else's has its number.
        let board = Id::of(fd)?;
        let known = |place: &Option<Mapped>| place.as_ref().is_some_and(|one| one.board == board);
        let at = match self.mapped.iter().position(known) {
            Some(at) => at,
            None => {
                let unused = |one: &Shared| one.count.load(Ordering::Acquire) == 0;
                let at = SHARED.iter().position(unused)?;
                let mapping = Mapping::shared(fd, LEN).ok()?;
                let pages = mapping.start().cast();
                SHARED.get(at)?.pages.store(pages, Ordering::Relaxed);
                *self.mapped.get_mut(at)? = Some(Mapped {
                    board,
                    _mapping: mapping,
                });
                at
            }
        };
        let shared = SHARED.get(at)?;
        shared.count.fetch_add(1, Ordering::Relaxed);
        Some(Post(shared))
    }
}

static SHARED: [Shared; PEERS] = [const {
    Shared {
        pages: AtomicPtr::new(std::ptr::null_mut()),
        count: AtomicU32::new(0),
    }
}; PEERS];

/// As many boards are mapped at a time.
const PEERS: usize = 64;
