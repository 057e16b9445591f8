//! The members of a set while one thread has them.

use std::ops::{Deref, DerefMut};

use sys::board::Leaf;
use sys::sync::{Ordering, fence};
use sys::turn;

use super::Set;
use crate::epoll::members::Members;

/// How the caller sleeps.
pub(in crate::epoll) struct Nap {
    /// Not for long.
    pub(in crate::epoll) short: bool,
    leaf: Option<Leaf>,
}

impl Nap {
    /// He sleeps no more.
    pub(in crate::epoll) fn end(self) {
        if let Some(leaf) = self.leaf {
            leaf.wake();
        }
    }
}

/// The members, as long as it lives.
pub(in crate::epoll) struct Entered<'a> {
    pub(super) set: &'a Set,
    pub(super) members: turn::Guard<'a, Members>,
}

impl Entered<'_> {
    /// After a change: whether others sleep on the set, be it in the belief that there is nothing in memory. Who comes to that from now on sees what there is.
    pub(in crate::epoll) fn is_waited_for(&self) -> bool {
        self.set.publish(&self.members);
        self.set.has_waiters()
    }

    /// Arms all, and notes that the caller sleeps. `None` if there is news.
    pub(in crate::epoll) fn fall_asleep(&mut self) -> Option<Nap> {
        let alone = !self.set.has_waiters();
        let short = self.lie_down(alone)?;
        self.set.waiters.fetch_add(1, Ordering::SeqCst);
        let leaf = self.leaf();
        Some(Nap { short, leaf })
    }
}

impl Deref for Entered<'_> {
    type Target = Members;

    #[inline]
    fn deref(&self) -> &Members {
        &self.members
    }
}

impl DerefMut for Entered<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Members {
        &mut self.members
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.set.publish(&self.members);
    }
}

impl Set {
    #[inline]
    pub(super) fn publish(&self, members: &Members) {
        let now = Visible::of(members);
        let same = (self.captured.load(Ordering::Relaxed) == now.captured)
            & (self.connections.load(Ordering::Relaxed) == now.connections)
            & (self.only.load(Ordering::Relaxed) == now.only)
            & (self.has_sets.load(Ordering::Relaxed) == now.has_sets)
            & (self.has_rang.load(Ordering::Relaxed) == now.has_rang)
            & (self.late.load(Ordering::Relaxed) == now.late);
        if !same {
            self.show(&now);
        }
    }

    #[cold]
    fn show(&self, now: &Visible) {
        self.captured.store(now.captured, Ordering::Release);
        self.connections.store(now.connections, Ordering::Release);
        self.only.store(now.only, Ordering::Release);
        self.has_sets.store(now.has_sets, Ordering::Release);
        self.has_rang.store(now.has_rang, Ordering::Release);
        self.late.store(now.late, Ordering::Release);
        // See `Entered::is_waited_for`.
        fence(Ordering::SeqCst);
    }
}

/// What others look at without having the members.
struct Visible {
    captured: u32,
    connections: u32,
    only: u32,
    has_sets: u32,
    has_rang: u32,
    late: u32,
}

impl Visible {
    #[inline]
    fn of(members: &Members) -> Self {
        Self {
            captured: members.captured,
            connections: members.connections,
            only: members.only.map_or(0, |fd| fd.cast_unsigned() + 1),
            has_sets: members.sets_count(),
            has_rang: u32::from(!members.rang.is_empty()),
            late: members.late() as u32,
        }
    }
}
