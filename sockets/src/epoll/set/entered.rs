//! The members of a set while one thread has them.

use std::ops::{Deref, DerefMut};

use sys::board::Leaf;
use sys::sync::Ordering;
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
        for (copy, now) in [
            (&self.captured, members.captured),
            (&self.connections, members.connections),
            (
                &self.only,
                members.only.map_or(0, |fd| fd.cast_unsigned() + 1),
            ),
            (&self.has_sets, members.sets_count()),
            (&self.has_rang, u32::from(!members.rang.is_empty())),
            (&self.late, members.late() as u32),
        ] {
            if copy.load(Ordering::Relaxed) != now {
                copy.store(now, Ordering::Release);
            }
        }
    }
}
