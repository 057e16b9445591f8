//! Members on TCP that the program has deleted, until somebody may wait.
//!
//! The kernel would go on reporting them, so it has to forget them before a wait. But who deletes a descriptor and adds it again in between, as
//! `redis-benchmark` does twice for each request, has made one `EPOLL_CTL_MOD` of two system calls.

use super::Members;

impl Members {
    /// Has the kernel forget a member later, which the program has just deleted; false if it must be now.
    pub(in crate::epoll) fn put_off(&mut self, index: u32) -> bool {
        let room = self.late.len() < LATE_MAX;
        let dozes = room
            && self
                .list
                .get_mut(index as usize)
                .is_some_and(|member| member.doze(true));
        if dozes {
            self.late.push(index);
        }
        dozes
    }

    /// The program has added it again.
    pub(super) fn is_late_no_more(&mut self, index: u32) {
        if let Some(at) = self.late.iter().rposition(|late| *late == index) {
            self.late.swap_remove(at);
        }
    }

    /// How many the kernel is still to forget.
    pub(in crate::epoll) fn late(&self) -> usize {
        self.late.len()
    }

    /// The kernel forgets what the program has deleted.
    pub(in crate::epoll) fn catch_up(&mut self) {
        while let Some(index) = self.late.pop() {
            if let Some(member) = self.list.get(index as usize)
                && member.is_late()
            {
                self.forget(index);
            }
        }
    }
}

/// Who deletes more before he waits, deletes for good.
pub(super) const LATE_MAX: usize = 16;
