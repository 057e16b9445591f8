//! Members that a signal handler has left in the middle of a change, by a jump.

use std::os::fd::RawFd;

use sys::sync::{Ordering, compiler_fence};

use super::super::ONCE;
use super::super::member::{Member, What};
use super::late::LATE_MAX;
use super::{Members, NO_EVENT};

/// Which place of the list is being written, so that it is not what it seems.
#[derive(Debug, Default)]
pub(super) struct Changing {
    /// The place plus 1; 0 for none.
    place: u32,
    /// The descriptor of what was there, or is to be.
    fd: RawFd,
}

impl Changing {
    #[inline]
    pub(super) fn begin(&mut self, index: u32, fd: RawFd) {
        self.fd = fd;
        compiler_fence(Ordering::SeqCst);
        self.place = index + 1;
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn end(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.place = 0;
        compiler_fence(Ordering::SeqCst);
    }

    fn take(&mut self) -> Option<(usize, RawFd)> {
        let index = std::mem::take(&mut self.place).checked_sub(1)?;
        Some((index as usize, self.fd))
    }
}

impl Members {
    /// Whether there is no room for one more, at `by_fd` by descriptor.
    pub(super) fn must_grow(&self, by_fd: usize) -> bool {
        let all = self.list.len() + 1;
        self.rang.capacity() == 0
            || by_fd > self.by_fd.capacity()
            || all > self.list.capacity()
            || all > self.free.capacity()
            || all > self.hot.capacity()
            || self.sets.len() == self.sets.capacity()
    }

    /// Makes out of the list all that follows from it. What was just being added or removed is a member no more.
    pub(in crate::epoll) fn mend(&mut self) {
        if let Some((index, fd)) = self.changing.take() {
            // Where it was not added, or is removed, this fails.
            let _ = sys::epoll::delete(self.instance, fd);
            if let Some(place) = self.list.get_mut(index) {
                *place = Member::new(-1, What::Nothing, NO_EVENT);
            }
        }
        self.hot.clear();
        self.warm.clear();
        self.sets.clear();
        self.free.clear();
        self.by_fd.fill(0);
        self.next = 0;
        (self.captured, self.connections, self.orphans) = (0, 0, 0);
        self.only = None;
        for index in 0..self.list.len() {
            self.mend_one(index as u32);
        }
        self.only = self.only.filter(|_| self.connections == 1);
        for index in 0..self.list.len() {
            self.resume_one(index as u32);
        }
        self.expect_of_kernel();
    }

    /// Notes a member where it is to be found. There is room, for it has been there.
    fn mend_one(&mut self, index: u32) {
        let Some(member) = self.list.get_mut(index as usize) else {
            return;
        };
        member.hot = None;
        member.unsure = true;
        if matches!(member.what, What::Nothing) {
            return self.free.push(index);
        }
        if member.captured.is_some() {
            self.captured += 1;
            // Whatever the kernel was told last.
            member.captured = Some(0);
        }
        if member.is_connection() {
            self.connections += 1;
            self.only = Some(member.fd);
        }
        if matches!(member.what, What::Set(_)) {
            self.sets.push(index);
        }
        if member.via != member.fd {
            self.orphans += 1;
        } else if let Ok(fd) = usize::try_from(member.fd)
            && let Some(entry) = self.by_fd.get_mut(fd)
        {
            *entry = index + 1;
        }
        if member.is_late() && !self.late.contains(&index) && self.late.len() < LATE_MAX {
            self.late.push(index);
        }
    }

    /// Looks at a member again, or captures it, whichever was left.
    fn resume_one(&mut self, index: u32) {
        let once = self
            .list
            .get(index as usize)
            .is_none_or(|member| member.captured.is_none() && member.events & ONCE != 0);
        if !once {
            self.capture(index);
            self.heat(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::Event;
    use super::*;

    const FIRST: RawFd = 810_000;

    fn others(members: &mut Members, fd: RawFd) {
        let index = members.reserve(fd).expect("memory");
        let mut member = Member::new(fd, What::Other, Event { events: 1, data: 0 });
        member.captured = Some(1);
        members.insert(index, member);
        members.heat(index);
    }

    proptest! {
        #[test]
        fn all_is_found_again_but_what_was_being_changed(
            steps in prop::collection::vec((any::<bool>(), 0..8), 1..40),
            left in prop::option::of(0..8),
        ) {
            let mut members = Members::default();
            for (adds, fd) in steps {
                match members.index_of(FIRST + fd) {
                    None if adds => others(&mut members, FIRST + fd),
                    Some(index) if !adds => members.remove(index),
                    _ => {}
                }
            }
            let mut expected: Vec<_> = (FIRST..FIRST + 8).filter(|fd| members.index_of(*fd).is_some()).collect();
            // In the middle of writing that one.
            if let Some(index) = left.and_then(|fd| members.index_of(FIRST + fd)) {
                let fd = members.list[index as usize].fd;
                members.changing.begin(index, fd);
                expected.retain(|other| *other != fd);
            }
            members.hot.truncate(1);
            members.free.clear();
            members.by_fd.fill(7);
            members.mend();
            let found = (FIRST..FIRST + 8).filter(|fd| members.index_of(*fd).is_some());
            prop_assert!(found.eq(expected.iter().copied()));
            prop_assert_eq!(members.captured as usize, expected.len());
            prop_assert_eq!(members.hot.len(), expected.len());
            prop_assert_eq!(members.free.len() + expected.len(), members.list.len());
            for (at, hot) in members.hot.iter().enumerate() {
                prop_assert_eq!(members.list[hot.index as usize].hot, Some(at as u32));
            }
            members.clear();
        }
    }
}
