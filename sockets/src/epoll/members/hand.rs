//! Members of a set that another program is about to have, or has left.

use std::os::fd::RawFd;

use sys::errno::Errno;

use super::super::member::{Member, What};
use super::super::record::MemberRecord;
use super::super::{Instance, ONCE, token};
use super::{Members, NO_EVENT};

impl Members {
    /// Each as the next program is to know it.
    pub(in crate::epoll) fn records(&self) -> impl Iterator<Item = MemberRecord> {
        let list = (0..).zip(&self.list);
        list.filter_map(|(index, member)| member.record(index))
    }

    /// The first from that place on that is more than the kernel's, and a descriptor of it.
    pub(in crate::epoll) fn find_followed(&self, from: u32) -> Option<(u32, What, RawFd)> {
        let mut list = (0..).zip(&self.list).skip(from as usize);
        list.find_map(|(index, member)| match member.what {
            What::Connection { .. } | What::Set(_) => Some((index, member.what, member.via)),
            What::Other | What::Nothing => None,
        })
    }

    /// How often something came, for those who watch this set.
    pub(in crate::epoll) fn came(&self) -> u64 {
        self.came
    }

    /// As it was in the program before this one.
    pub(in crate::epoll) fn set_came(&mut self, came: u64) {
        self.came = came;
    }

    /// The kernel forgets all that the program has deleted.
    pub(in crate::epoll) fn forget_dormant(&mut self) {
        if self.visiting {
            return;
        }
        for index in 0..self.list.len() {
            if self.list.get(index).is_some_and(|member| member.dormant) {
                self.forget(index as u32);
            }
        }
    }

    /// This process, which came to the set by `fork`, begins to use it: what has got rings since is captured.
    pub(in crate::epoll) fn settle_here(&mut self) {
        self.visiting = false;
        for index in 0..self.list.len() {
            let once = self
                .list
                .get(index)
                .is_none_or(|member| member.events & ONCE != 0);
            if !once {
                self.capture(index as u32);
            }
        }
    }

    /// Has the kernel's instance, which is behind `instance`, report those that are captured and `chosen` as the program registered them.
    pub(in crate::epoll) fn give_back_to_kernel(
        &mut self,
        instance: Instance,
        chosen: impl Fn(&Member) -> bool,
    ) {
        for index in 0..self.list.len() {
            let Some(member) = self.list.get_mut(index) else {
                break;
            };
            if member.captured.is_none() || !chosen(member) || member.give_back(instance).is_err() {
                continue;
            }
            self.captured -= 1;
            if let Some(at) = member.hot {
                self.cool(at as usize);
            }
            self.expect_of_kernel();
        }
    }

    /// Has room for one at a place that is not behind the end; those before it are free. To be called with indices in order.
    ///
    /// # Errors
    /// `ENOMEM`, or a place that no member has.
    pub(in crate::epoll) fn skip_to(&mut self, index: u32, fd: RawFd) -> Result<(), Errno> {
        let index = index as usize;
        if index >= token::MEMBERS_MAX || index < self.list.len() {
            return Err(Errno::INVAL);
        }
        loop {
            self.reserve(fd)?;
            if self.list.len() == index {
                return Ok(());
            }
            self.free.push(self.list.len() as u32);
            self.list.push(Member::new(-1, What::Nothing, NO_EVENT));
        }
    }
}
