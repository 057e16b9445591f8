//! What most changes of a set come to, done at once: a connection of which the kernel need report nothing new is deleted, added again, or modified.
//!
//! `redis-benchmark` deletes and adds a connection twice for each request, and what that cost was a quarter of its time.

use std::os::fd::RawFd;

use super::super::member::{Member, What};
use super::super::{Change, EDGE, EXCLUSIVE, Event};
use super::Members;
use crate::conn::Path;

impl Members {
    /// The member with that descriptor, if it is a connection [without rings](Member::is_without_rings).
    #[inline]
    pub(in crate::epoll) fn without_rings(&mut self, fd: RawFd) -> Option<&mut Member> {
        let index = self.index_of(fd)?;
        self.get_mut(index)
            .filter(|member| member.is_without_rings())
    }

    /// Makes the change if it is such a one, and nobody sleeps on the set; false if it takes more, and nothing is done yet.
    #[inline]
    pub(in crate::epoll) fn change_at_once(&mut self, fd: RawFd, change: &Change) -> bool {
        if self.for_kernel || self.visiting {
            return false;
        }
        let Some(index) = self.index_of(fd) else {
            return false;
        };
        let Some(member) = self.list.get_mut(index as usize) else {
            return false;
        };
        match change {
            Change::Delete => !self.shared && !member.dormant && member.doze(false),
            Change::Add(event) | Change::Modify(event) => {
                let is_there = member.dormant == matches!(change, Change::Add(_));
                if !is_there || !member.changes_in_memory(event) {
                    return false;
                }
                member.modify(*event);
                member.dormant = false;
                self.heat(index);
                true
            }
        }
    }
}

impl Member {
    /// Whether it is a connection of which the kernel knows all, and has it as the program registered it.
    #[inline]
    fn is_without_rings(&self) -> bool {
        let What::Connection { conn, .. } = self.what else {
            return false;
        };
        self.captured.is_none()
            && !self.dormant
            && self.via == self.fd
            && conn.has_no_rings()
            && self.is_same()
    }

    /// Whether what the kernel reports of it may stay as it is, if the program is to have it so. As the last look found it: where it has left memory since, the next
    /// one finds that, and has the kernel [report](Member::follow) it, or whoever falls asleep arms it. An edge would have been reported by the change.
    #[inline]
    fn changes_in_memory(&self, event: &Event) -> bool {
        let What::Connection { conn, .. } = self.what else {
            return false;
        };
        let others = (event.events | self.events) & (EDGE | EXCLUSIVE) != 0;
        self.is_in_memory(event.events)
            && self.captured.is_some()
            && self.via == self.fd
            && !others
            && conn.path() == Path::Mapped
            && self.is_same()
    }
}
