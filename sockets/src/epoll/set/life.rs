//! How a set begins, and what becomes of it when descriptors go and processes fork.

use std::os::fd::RawFd;

use sys::sync::Ordering;

use super::{NOBODY, Set};
use crate::epoll::member::What;
use crate::epoll::members::Members;

impl Set {
    /// A descriptor is about to be closed, which is the last of its connection or not; of a set, whose number is known no more, it need not be said. Whether what
    /// it stands for lives on here, as the kernel has it.
    pub(in crate::epoll) fn before_close(&self, fd: RawFd, last: bool) -> bool {
        let Some(mut members) = self.enter() else {
            return false;
        };
        members.orphans_lose(fd, last);
        let Some(index) = members.index_of(fd) else {
            return false;
        };
        let (instance, visiting) = (members.instance, members.visiting);
        let inherited = members.inherited && !visiting;
        if (members.get_mut(index)).is_some_and(|member| matches!(member.what, What::Set(_))) {
            members.settle_set(index);
        }
        let Some(member) = members.get_mut(index) else {
            return false;
        };
        if !last && !member.dormant && member.outlive(fd) {
            // As in the kernel, what is a member is not the descriptor.
            let is_kernels = member.captured.is_none() && !visiting;
            members.orphan(index);
            return is_kernels;
        }
        let is_captured = member.captured.is_some() || member.is_late();
        if is_captured && inherited && !member.dormant && member.may_be_others() {
            members.leave_to_others(index);
            return false;
        }
        if is_captured && !visiting {
            // Another process may have the connection too, and the kernel would go on reporting it.
            let _ = sys::epoll::delete(instance, fd);
        }
        members.lose(index);
        false
    }

    /// The kernel's instance is to have a member no more.
    pub(in crate::epoll) fn expel(&self, fd: RawFd) {
        if let Some(members) = self.enter()
            && members.index_of(fd).is_some()
            && !members.visiting
        {
            // A member that the program has deleted is gone there already.
            let _ = sys::epoll::delete(members.instance, fd);
        }
    }

    /// See [`lend`](crate::epoll::departure::lend).
    pub(in crate::epoll) fn lend(&self) {
        self.lent.store(1, Ordering::Relaxed);
    }

    /// Whether that was said.
    pub(in crate::epoll) fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Relaxed) != 0
    }

    /// Begins as the mirror of the instance behind `fd`.
    pub(in crate::epoll) fn open(&self, fd: RawFd) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.waiters.store(0, Ordering::Relaxed);
        self.waits.store(NOBODY, Ordering::Relaxed);
        self.lent.store(0, Ordering::Relaxed);
        self.for_kernel.store(0, Ordering::Relaxed);
        self.visiting.store(0, Ordering::Relaxed);
        // What is met beside a hog concerns this one too, as it does a new connection.
        self.memory.heed();
        self.socket.heed();
        if let Some(mut members) = self.enter() {
            members.clear();
            members.instance = fd;
        }
    }

    /// One of its descriptors goes; another is `other`.
    pub(in crate::epoll) fn moved(&self, from: RawFd, to: Option<RawFd>) {
        if let Some(mut members) = self.enter()
            && members.instance == from
            && let Some(to) = to
        {
            members.instance = to;
        }
    }

    /// Two processes have the instance now.
    pub(in crate::epoll) fn forked(&self, in_child: bool) {
        if in_child {
            self.waiters.store(0, Ordering::Relaxed);
        }
        if let Some(mut members) = self.enter() {
            // Again, for a fork of which nobody knew before.
            members.leave_board();
            members.shared = true;
            if in_child {
                self.visit(&mut members);
            }
        }
    }

    /// What the kernel has of it is another process's business, until this one uses it.
    pub(in crate::epoll) fn visit(&self, members: &mut Members) {
        members.visiting = true;
        members.inherited = true;
        self.visiting.store(1, Ordering::Relaxed);
    }

    /// Whether what it has is what this program has said of it, and not its parent's or what others know.
    #[inline]
    pub(in crate::epoll) fn is_the_programs(&self) -> bool {
        self.visiting.load(Ordering::Relaxed) == 0 && !self.is_for_kernel()
    }

    /// The program uses the set. It is its own from now on, if it was its parent's.
    #[inline]
    pub(in crate::epoll) fn begin_use(&self) {
        if self.visiting.load(Ordering::Relaxed) != 0 {
            self.settle_here();
        }
    }

    #[cold]
    fn settle_here(&self) {
        if let Some(mut members) = self.enter() {
            self.visiting.store(0, Ordering::Relaxed);
            members.settle_here();
        }
        self.keep_orphans();
    }
}
