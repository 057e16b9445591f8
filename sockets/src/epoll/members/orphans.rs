//! Members whose descriptor is closed, while what is behind it lives on: a connection under another number of this process, or what nobody knows here.

use std::os::fd::RawFd;

use super::super::member::{Member, What};
use super::super::places;
use super::Members;

impl Members {
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

    /// The orphan that the kernel knows by this number, if the number is one of its connection again.
    pub(in crate::epoll) fn orphan_at(&self, fd: RawFd) -> Option<u32> {
        if self.orphans == 0 {
            return None;
        }
        let conn = crate::table::known(fd)?;
        let at = self
            .list
            .iter()
            .position(|member| member.fd == fd && member.via != fd && member.is(conn));
        u32::try_from(at?).ok()
    }

    /// The first from that place on that could not be captured any more, and a descriptor of it.
    pub(in crate::epoll) fn find_orphan(&self, from: u32) -> Option<(u32, What, RawFd)> {
        if self.orphans == 0 {
            return None;
        }
        let mut list = (0..).zip(&self.list).skip(from as usize);
        list.find(|(_, member)| member.via != member.fd && member.captured.is_none())
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
            if member.via != fd || member.fd == fd {
                continue;
            }
            places::forget_member(fd);
            if !last && member.outlive(fd) {
                places::note_member(member.via);
            } else {
                self.remove(index as u32);
            }
        }
    }
}
