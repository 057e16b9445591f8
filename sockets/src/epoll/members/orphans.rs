//! Members whose descriptor is closed, while what is behind it lives on: a connection or set under another number of this process, or what nobody knows
//! here.

use std::os::fd::RawFd;

use super::super::member::{Member, What};
use super::super::places;
use super::Members;

impl Members {
    /// The descriptor of a set that is a member is about to be closed: from then on nothing can be changed of what the kernel reports of it. So one of which no
    /// more can be told than that it is ready is captured, whatever is in it, and one that reports once reports an edge.
    pub(in crate::epoll) fn settle_set(&mut self, index: u32) {
        self.capture(index);
        let (instance, may) = (self.instance, !self.for_kernel && !self.visiting);
        if let Some(member) = self.list.get_mut(index as usize)
            && may
            && member.settle_set(index, instance)
        {
            self.captured += 1;
            self.heat(index);
        }
    }

    /// The descriptor of a member is closed, while the member lives on as a duplicate.
    pub(in crate::epoll) fn orphan(&mut self, index: u32) {
        if let Some(member) = self.list.get(index as usize) {
            let (fd, via) = (member.fd, member.via);
            self.orphans += 1;
            places::note_member(via);
            self.disown(fd, index);
        }
    }

    /// The descriptor of a member is closed, which is the last of a connection here. The kernel goes on reporting what a number that we do not know, or another
    /// process, keeps open.
    pub(in crate::epoll) fn lose(&mut self, index: u32) {
        self.strays |= (self.list.get(index as usize)).is_some_and(Member::may_stray);
        self.remove(index);
    }

    /// The descriptor of a member is closed, of which the kernel goes on reporting a token: to those from whom this process has the set, for it is theirs, and
    /// here, where it means nothing any more. So no other member gets its place.
    pub(in crate::epoll) fn leave_to_others(&mut self, index: u32) {
        self.remove(index);
        self.free.retain(|free| *free != index);
    }

    /// The orphan that the kernel knows by this number, if the number is one of its connection, or of its set, again.
    pub(in crate::epoll) fn orphan_at(&self, fd: RawFd) -> Option<u32> {
        if self.orphans == 0 {
            return None;
        }
        let at = self
            .list
            .iter()
            .position(|member| member.fd == fd && member.is_orphan() && member.is_same());
        u32::try_from(at?).ok()
    }

    /// The first from that place on that could not be captured any more, and a descriptor of it.
    pub(in crate::epoll) fn find_orphan(&self, from: u32) -> Option<(u32, What, RawFd)> {
        if self.orphans == 0 {
            return None;
        }
        let mut list = (0..).zip(&self.list).skip(from as usize);
        list.find(|(_, member)| member.is_orphan() && member.captured.is_none())
            .map(|(index, member)| (index, member.what, member.via))
    }

    /// A descriptor by which orphans live on is about to be closed.
    pub(in crate::epoll) fn orphans_lose(&mut self, fd: RawFd, last: bool) {
        if self.orphans == 0 {
            return;
        }
        for index in 0..self.list.len() {
            let Some(member) = self.list.get_mut(index) else {
                break;
            };
            if member.via != fd || !member.is_orphan() {
                continue;
            }
            if !last && member.outlive(fd) {
                let has_come_home = !member.is_orphan();
                places::forget_member(fd);
                places::note_member(member.via);
                if has_come_home {
                    self.own(index as u32);
                }
            } else {
                self.remove(index as u32);
            }
        }
    }

    /// The only number of an orphan is the one by which the kernel knows it, again.
    fn own(&mut self, index: u32) {
        self.orphans -= 1;
        let Some(fd) = self.list.get(index as usize).map(|member| member.fd) else {
            return;
        };
        if let Some(old) = self.index_of(fd) {
            self.lose(old);
        }
        if let Some(entry) = self.by_fd.get_mut(fd.cast_unsigned() as usize) {
            *entry = index + 1;
        }
    }
}
