//! Sets that other processes have, who know nothing of what is in memory here: their connections are on TCP, and the kernel has what the program registered.

use std::os::fd::RawFd;

use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use sys::turn::Busy;

use super::member::What;
use super::{Set, known, places};
use crate::reason::Reason;
use crate::table::newborn;
use crate::{handover, table};

/// A set is about to be passed to another process, as a descriptor in a message.
pub fn give(fd: RawFd) {
    // Who has forbidden itself system calls makes none but its own.
    if !table::is_retired()
        && let Some(set) = known(fd)
    {
        set.keep_to_kernel();
    }
}

/// All sets become what only the kernel knows.
pub fn give_all() {
    if !table::is_retired() {
        places::all().for_each(Set::keep_to_kernel);
    }
}

/// A descriptor has come in a message. If it is a set, other processes have it, too.
pub fn received(fd: RawFd) {
    if !table::is_retired() && sys::epoll::is_set(fd) {
        places::created(fd);
        give(fd);
    }
}

/// Whether a socket is in such a set, so that a connection that it becomes is to stay on TCP.
#[inline]
pub(crate) fn keeps(fd: RawFd) -> bool {
    ANY.load(Ordering::Relaxed) != 0
        && places::memberships(fd) != 0
        && places::all().any(|set| set.is_for_kernel() && set.may_have(fd))
}

impl Set {
    /// Has all its connections on TCP from now on.
    pub(super) fn keep_to_kernel(&self) {
        // Those that it watches are to be found.
        newborn::settle();
        if self.for_kernel.swap(1, Ordering::SeqCst) != 0 {
            return;
        }
        ANY.store(1, Ordering::SeqCst);
        self.begin_use();
        let mut next = 0;
        while let Some((index, what, via)) =
            self.enter().and_then(|members| members.find_followed(next))
        {
            // Without the members, for the way back may take its time.
            keep(what, via);
            next = index + 1;
        }
        if let Some(mut members) = self.enter() {
            members.for_kernel = true;
            members.leave_board();
            members.catch_up();
            members.forget_dormant();
            let instance = members.instance;
            members.give_back_to_kernel(instance, |_| true);
        }
    }

    /// Has those of its members on TCP of which the kernel would hear nothing by their number.
    pub(super) fn keep_orphans(&self) {
        let mut next = 0;
        while let Some((index, what, via)) =
            self.enter().and_then(|members| members.find_orphan(next))
        {
            keep(what, via);
            next = index + 1;
        }
    }

    /// Whether its connections are all on TCP.
    #[inline]
    pub(super) fn is_for_kernel(&self) -> bool {
        self.for_kernel.load(Ordering::Relaxed) != 0
    }

    /// Whether it may have that member. Not waited for: who has the members may be waiting for what the caller has.
    fn may_have(&self, fd: RawFd) -> bool {
        match self.try_hold() {
            Ok(members) => members.is_some_and(|members| members.index_of(fd).is_some()),
            Err(Busy) => true,
        }
    }
}

/// Before a descriptor becomes a member of such a set.
#[cold]
pub(super) fn keep_new(fd: RawFd) {
    keep(What::of(fd), fd);
}

fn keep(what: What, fd: RawFd) {
    match what {
        What::Connection { conn, generation } if conn.generation() == generation => {
            sys::socket::with_borrowed(fd, |fd| handover::go_back(conn, fd, Reason::Sets));
        }
        What::Set(set) => set.keep_to_kernel(),
        What::Connection { .. } | What::Other | What::Nothing => {}
    }
}

/// Whether there are such sets.
static ANY: AtomicU32 = AtomicU32::new(0);
