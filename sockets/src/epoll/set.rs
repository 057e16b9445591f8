//! One instance of `epoll`, mirrored.

mod entered;
mod life;

use std::os::fd::RawFd;

use sys::sync::{AtomicU32, AtomicUsize, Ordering, fence};
use sys::turn::{Busy, Guard, Left, Sole, thread_id};
use sys::wait::{self, Limits, Monotonic, Spinner};

pub(super) use self::entered::Entered;
use super::members::Members;
use super::{ONCE, places};
use crate::conn::Conn;
use crate::ready::{Bed, IN, Rest};

/// The mirror of one instance. Places are never freed, and used again for another instance.
#[derive(Debug)]
pub struct Set {
    /// Descriptors of the instance; 0 if the place is free.
    pub(super) refs: AtomicU32,
    pub(super) generation: AtomicU32,
    /// Copies of what [`Members`] counts, to be read without the lock.
    captured: AtomicU32,
    connections: AtomicU32,
    /// The descriptor of the only connection plus 1, if there is just one.
    only: AtomicU32,
    /// Whether there are other sets among the members.
    has_sets: AtomicU32,
    /// Whether other sets are to be told of doorbells.
    has_rang: AtomicU32,
    /// Whether the kernel is still to forget members that the program has deleted.
    late: AtomicU32,
    /// A child is about to have it at a number that the program has named.
    lent: AtomicU32,
    /// Whether other processes have it who know nothing of what is in memory.
    pub(super) for_kernel: AtomicU32,
    /// As [`Members`] has it, to be read without the lock.
    visiting: AtomicU32,
    /// The only thread that ever waited; [`NOBODY`], or [`MANY`].
    waits: AtomicUsize,
    /// Threads asleep in the kernel's instance, or in one that it is in.
    waiters: AtomicU32,
    members: Sole<Members>,
    pub(super) memory: Spinner,
    pub(super) socket: Spinner,
}

impl Set {
    pub(super) fn new() -> Self {
        let cpus = wait::cpus();
        Self {
            refs: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            captured: AtomicU32::new(0),
            connections: AtomicU32::new(0),
            only: AtomicU32::new(0),
            has_sets: AtomicU32::new(0),
            has_rang: AtomicU32::new(0),
            late: AtomicU32::new(0),
            lent: AtomicU32::new(0),
            for_kernel: AtomicU32::new(0),
            visiting: AtomicU32::new(0),
            waits: AtomicUsize::new(NOBODY),
            waiters: AtomicU32::new(0),
            members: Sole::new(Members::default()),
            memory: Spinner::with_clock(crate::rules::limited(Limits::SET), cpus, Monotonic),
            socket: Spinner::with_clock(crate::rules::limited(Limits::SOCKET), cpus, Monotonic),
        }
    }

    /// The members; `None` in a signal handler that came while its own thread had them.
    #[inline]
    pub(super) fn enter(&self) -> Option<Entered<'_>> {
        let members = self.members.enter()?;
        Some(Entered { set: self, members })
    }

    /// As [`Set::enter`], for what changes nothing that is [shown](Set::publish).
    #[inline]
    pub(super) fn enter_quietly(&self) -> Option<Guard<'_, Members>> {
        self.members.enter()
    }

    /// As [`Set::enter`], without waiting, and for longer than a call.
    pub(super) fn try_hold(&self) -> Result<Option<Entered<'_>>, Busy> {
        let members = self.members.try_hold()?;
        Ok(members.map(|members| Entered { set: self, members }))
    }

    /// If it is the members of this set that a jump leaves: they are mended.
    pub(super) fn end_left(&self, left: &Left) -> bool {
        let mended = self.members.mend(left, |members| {
            members.mend();
            self.publish(members);
        });
        mended.is_some()
    }

    /// Whether events of members are worked out from memory, so that the kernel's own are not the whole truth.
    #[inline]
    pub fn is_in_memory(&self) -> bool {
        // First: others that have something in memory since are ours from now on.
        (self.has_sets.load(Ordering::Relaxed) != 0 && self.finds_sets())
            || self.captured.load(Ordering::Acquire) != 0
    }

    /// Whether the kernel has a token for any member.
    #[inline]
    pub(super) fn has_captured(&self) -> bool {
        self.captured.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn finds_sets(&self) -> bool {
        if let Some(mut members) = self.enter() {
            members.capture_sets();
        }
        self.captured.load(Ordering::Acquire) != 0
    }

    /// A thread is about to ask the kernel what there is.
    #[inline]
    pub(super) fn begin_wait(&self) {
        self.begin_use();
        if self.waits.load(Ordering::Relaxed) != thread_id() {
            self.note_wait();
        }
        self.catch_up();
    }

    /// Under the lock, so that what another thread deletes is put off before it, or not at all.
    #[cold]
    fn note_wait(&self) {
        if let Some(mut members) = self.enter() {
            let now = match self.waits.load(Ordering::Relaxed) {
                NOBODY => thread_id(),
                _ => {
                    members.leave_board();
                    MANY
                }
            };
            self.waits.store(now, Ordering::Relaxed);
        }
    }

    /// Has the kernel forget what the program has deleted.
    #[inline]
    pub(crate) fn catch_up(&self) {
        if self.late.load(Ordering::Relaxed) != 0
            && let Some(mut members) = self.enter()
        {
            members.catch_up();
        }
    }

    /// Whether nobody but this thread, which does not do so now, looks at what the kernel has: what is deleted it may then go on having for a while.
    pub(super) fn may_be_late(&self, instance: RawFd) -> bool {
        self.waits.load(Ordering::Relaxed) == thread_id()
            && !self.has_waiters()
            && self.refs.load(Ordering::Relaxed) == 1
            && places::memberships(instance) == 0
    }

    /// Whether there are connections among the members.
    #[inline]
    pub(super) fn has_connections(&self) -> bool {
        self.connections.load(Ordering::Relaxed) != 0
    }

    /// The connection among the members, if there is just one.
    #[inline]
    pub(super) fn only_connection(&self) -> Option<&'static Conn> {
        let fd = self.only.load(Ordering::Relaxed).checked_sub(1)?;
        crate::table::known(fd.cast_signed())
    }

    /// Whether a wait on the set, whose descriptor is `fd`, would return at once.
    pub(crate) fn is_ready(&self, fd: RawFd) -> bool {
        self.begin_use();
        let Some(mut members) = self.enter() else {
            return true;
        };
        members.leave_board();
        // A doorbell may be under way of what memory shows already.
        if members.have_news() || members.wake_cold(super::FEW) {
            return true;
        }
        if !shows(fd) {
            return false;
        }
        // Whose doorbell is it, or is it a member that only the kernel knows?
        members.ask_kernel();
        if members.have_news() || members.lie_down(false).is_none() {
            return true;
        }
        members.get_up();
        if members.has_only_tokens() && !self.has_waiters() {
            return members.take_tokens() || members.have_news();
        }
        shows(fd)
    }

    /// See [`Members::what_came`]; `None` in a signal handler that came while its own thread was looking.
    pub(super) fn what_came(&self, heard: bool) -> Option<(u64, bool)> {
        let mut members = self.enter()?;
        members.leave_board();
        Some(members.what_came(heard))
    }

    /// Somebody is about to sleep on the set's descriptor.
    pub(crate) fn lie_down(&self, _fd: RawFd) -> Rest {
        let Some(mut members) = self.enter() else {
            return Rest::Awake;
        };
        members.leave_board();
        match members.lie_down(false) {
            None => Rest::Awake,
            Some(nap) => {
                self.waiters.fetch_add(1, Ordering::SeqCst);
                Rest::Asleep(Bed {
                    wake: IN,
                    nap,
                    full: false,
                    carried: false,
                    rang: false,
                    spares: false,
                    drained: false,
                    over: false,
                    noted: false,
                    moved: false,
                })
            }
        }
    }

    /// He sleeps no more.
    pub(crate) fn get_up(&self) {
        // One too few or too many, after a fork or a cancelled thread, costs a doorbell at most.
        let _ = self
            .waiters
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |waiters| {
                waiters.checked_sub(1)
            });
        if self.has_sets.load(Ordering::Relaxed) != 0
            && let Some(members) = self.enter()
        {
            members.get_up();
        }
    }

    /// Somebody is about to sleep who knows of no rings, and [gets up](Set::get_up) afterwards: whether there are none. To sleep on this set is to sleep on the
    /// sets in it.
    pub(crate) fn lie_down_unaware(&self) -> bool {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        if self.has_sets.load(Ordering::Relaxed) != 0
            && let Some(members) = self.enter()
        {
            members.lie_down_in_sets_unaware();
        }
        // Either who brings rings sees that somebody sleeps, or they are seen here: see `Entered::is_waited_for`.
        fence(Ordering::SeqCst);
        !self.is_in_memory()
    }

    /// Those who sleep on this set sleep on `other` from now on, which has come into it.
    pub(super) fn have_sleep_on(&self, other: &Self) {
        for _ in 0..self.waiters.load(Ordering::SeqCst) {
            other.lie_down_unaware();
        }
        other.settle_all();
    }

    /// Whatever has news, here or in the sets in this one, wakes who sleeps, or rings.
    fn settle_all(&self) {
        if let Some(mut members) = self.enter() {
            members.settle_hot();
        }
        let set_at = |at| self.enter()?.set_at(at);
        (0..).map_while(set_at).for_each(Self::settle_all);
    }

    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) != 0
    }

    /// A connection that may be a member has got rings.
    pub(super) fn upgraded(&self, fd: RawFd, conn: &Conn, everywhere: bool) {
        let Some(mut members) = self.enter() else {
            return;
        };
        let mut start = 0;
        while let Some(index) = members.find(start, fd, conn, everywhere) {
            start = index + 1;
            members.classify(index);
            let stays = members.get_mut(index).is_none_or(|member| {
                !member.is(conn) || member.events & ONCE != 0 && !member.awaits_end_once()
            });
            if stays {
                // Nobody knows whether it has reported. It will be captured when it is modified; until then the kernel reports its doorbell.
                crate::ready::arm(conn);
                continue;
            }
            members.capture(index);
            if members.is_waited_for() {
                members.settle(index);
            }
        }
    }

    /// Looks at members whose doorbell may be under way, `most` at most, and makes those hot that have news; whether there are none, and the kernel has not just
    /// been told to report more.
    #[cold]
    pub(super) fn is_cold(&self, most: usize) -> bool {
        self.enter().is_none_or(|mut members| {
            let is_told = std::mem::take(&mut members.kernel_is_told);
            !is_told && !members.wake_cold(most)
        })
    }

    /// The doorbell of a connection was taken away by another observer.
    pub(super) fn rang(&self, fd: RawFd, conn: &Conn, everywhere: bool) {
        let Some(mut members) = self.enter() else {
            return;
        };
        let mut start = 0;
        while let Some(index) = members.find(start, fd, conn, everywhere) {
            start = index + 1;
            members.heat(index);
            if self.has_waiters() {
                members.settle(index);
            }
        }
    }

    /// Whether a connection is a member that is not captured.
    pub(super) fn leaves_to_kernel(&self, fd: RawFd, conn: &Conn, everywhere: bool) -> bool {
        self.enter().is_some_and(|mut members| {
            let mut start = 0;
            while let Some(index) = members.find(start, fd, conn, everywhere) {
                start = index + 1;
                if members
                    .get_mut(index)
                    .is_some_and(|member| member.captured.is_none())
                {
                    return true;
                }
            }
            false
        })
    }

    /// What a connection sends goes elsewhere from now on.
    pub(super) fn sends_elsewhere(&self, fd: RawFd, conn: &Conn, everywhere: bool) {
        // What the kernel has of one that is another process's is that one's business.
        if let Some(mut members) = self.enter().filter(|members| !members.visiting) {
            let (mut start, instance) = (0, members.instance);
            while let Some(index) = members.find(start, fd, conn, everywhere) {
                start = index + 1;
                if let Some(member) = members.get_mut(index)
                    && member.expect_room(index, instance)
                {
                    members.kernel_is_told = true;
                }
            }
        }
        self.rang(fd, conn, everywhere);
    }

    /// What [`rang`](super::rang) is to be told when nobody has a set.
    #[inline]
    pub(crate) fn tell_others(&self) {
        if self.has_rang.load(Ordering::Relaxed) != 0 {
            self.tell_others_now();
        }
        if self.has_sets.load(Ordering::Relaxed) != 0 {
            self.tell_others_of_sets();
        }
    }

    /// What looks at this set have taken from the members of those in it.
    #[cold]
    fn tell_others_of_sets(&self) {
        let set_at = |at| self.enter()?.set_at(at);
        (0..).map_while(set_at).for_each(Self::tell_others);
    }

    #[cold]
    fn tell_others_now(&self) {
        let mut has_missed = false;
        while let Some(mut members) = self.enter() {
            if members.rang.is_empty() && std::mem::take(&mut has_missed) {
                members.note_missed();
            }
            has_missed |= members.rang.len() == members.rang.capacity();
            let Some(fd) = members.rang.pop() else {
                return;
            };
            drop(members);
            if let Some(conn) = crate::table::known(fd) {
                super::rang(fd, conn);
            }
        }
    }

    /// Whether it has several descriptors.
    pub(super) fn has_duplicates(&self) -> bool {
        self.refs.load(Ordering::Relaxed) > 1
    }

    /// Others may soon have to be woken by its members.
    pub(super) fn leave_board(&self) {
        if let Some(mut members) = self.enter() {
            members.leave_board();
        }
    }
}

fn shows(fd: RawFd) -> bool {
    sys::epoll::shows(fd, IN as u16) != 0
}

/// No thread has waited.
const NOBODY: usize = 0;
/// Several have. No thread's number, for those are even.
const MANY: usize = 1;
