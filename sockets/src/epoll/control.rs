//! `epoll_ctl`.

use std::os::fd::RawFd;

use sys::errno::Errno;

use super::member::{Member, What};
use super::{Change, EXCLUSIVE, Event, FLAGS, Set, given, places};
use crate::table::newborn;
use crate::{left, table};

/// As `epoll_ctl`.
///
/// # Errors
/// As `epoll_ctl`.
pub fn control(instance: RawFd, fd: RawFd, change: Change) -> Result<(), Errno> {
    if newborn::is(fd) {
        if let Change::Add(event) = change
            && takes_newborn(instance, fd, event)
        {
            // First: a signal handler that comes in between may have it noted.
            newborn::joins(fd, instance, event.events, event.data);
            let added = sys::epoll::add(instance, fd, event.events, event.data);
            if added.is_err() {
                newborn::leaves(fd);
            }
            return added;
        }
        // From now on it is a connection as others are.
        let _ = table::known(fd);
    }
    newborn::await_growth();
    let Some(set) = super::known(instance) else {
        return control_unseen(instance, fd, change);
    };
    left::find_sets();
    set.begin_use();
    if set.change_at_once(instance, fd, &change) {
        return Ok(());
    }
    let result = match change {
        Change::Add(event) => set.add(instance, fd, event),
        Change::Modify(event) => set.modify(instance, fd, event),
        Change::Delete => set.delete(instance, fd),
    };
    set.tell_others();
    result
}

/// As [`control`] with [`Change::Modify`], of a connection without rings, in a set with nothing in memory: the kernel makes the change, nobody has to be told of
/// it. `None`, and nothing is done, if it takes more. `wrk` does this twice for each request.
#[inline]
pub fn modify_without_rings(instance: RawFd, fd: RawFd, event: Event) -> Option<Result<(), Errno>> {
    if newborn::any() {
        return None;
    }
    newborn::await_growth();
    let set = super::known(instance)?;
    left::find_sets();
    if set.has_captured() || !set.is_the_programs() {
        return None;
    }
    let mut members = set.enter_quietly()?;
    // What is as it was may be no call at all.
    let member = members.without_rings(fd).filter(|member| {
        event.events & FLAGS != 0 || (member.events, member.data) != (event.events, event.data)
    })?;
    let modified = sys::epoll::modify(instance, fd, event.events, event.data);
    if modified.is_ok() {
        member.modify(event);
    }
    if member.what.is_in_memory() {
        drop(members);
        set.has_got_rings(fd);
    }
    Some(modified)
}

/// Whether nothing is to be noted of a member that this is to be but what the program said.
#[inline]
fn takes_newborn(instance: RawFd, fd: RawFd, event: Event) -> bool {
    newborn::may_join(fd, event.events) && super::known(instance).is_some_and(Set::is_the_programs)
}

/// An instance that was made where we did not see it is mirrored from the first member on that it gets where we do.
#[cold]
fn control_unseen(instance: RawFd, fd: RawFd, change: Change) -> Result<(), Errno> {
    match change {
        Change::Modify(event) => sys::epoll::modify(instance, fd, event.events, event.data),
        Change::Delete => sys::epoll::delete(instance, fd),
        Change::Add(event) => {
            sys::epoll::add(instance, fd, event.events, event.data)?;
            if !places::first_seen(instance).is_some_and(|set| set.adopt(fd, event)) {
                places::keep_to_kernel(fd);
            }
            Ok(())
        }
    }
}

impl Set {
    /// See [`Members::change_at_once`](super::members::Members::change_at_once).
    #[inline]
    fn change_at_once(&self, instance: RawFd, fd: RawFd, change: &Change) -> bool {
        // Who waits for another set, in which this one is, looks at the members otherwise.
        self.has_captured()
            && places::memberships(instance) == 0
            && self.enter_quietly().is_some_and(|mut members| {
                !self.has_waiters() && members.change_at_once(fd, change)
            })
    }

    fn add(&self, instance: RawFd, fd: RawFd, event: Event) -> Result<(), Errno> {
        if self.is_for_kernel() {
            given::keep_new(fd);
        }
        let mut members = self.enter().ok_or(Errno::NOMEM)?;
        if let Some(index) = members.dormant_at(fd) {
            if members.wakes(index, event)? {
                if members.is_waited_for() {
                    members.settle(index);
                }
                return Ok(());
            }
            members.forget(index);
        }
        let index = members.reserve(fd)?;
        let mut member = Member::new(fd, What::of(fd), event);
        if let What::Set(set) = member.what {
            // From now on the kernel shows whoever waits here what it has of that one.
            set.catch_up();
            set.leave_board();
        }
        if member.what.is_in_memory() && !members.for_kernel {
            member.add_captured(index, instance)?;
        } else {
            sys::epoll::add(instance, fd, event.events, event.data)?;
        }
        let what = member.what;
        members.insert(index, member);
        members.heat(index);
        // Who brought rings before it was inserted has not found it.
        members.capture_again(index);
        if members.is_waited_for() {
            if let What::Set(set) = what {
                self.have_sleep_on(set);
            }
            members.settle(index);
        }
        Ok(())
    }

    /// Mirrors what has been added to the kernel's instance already.
    pub(super) fn adopt(&self, fd: RawFd, event: Event) -> bool {
        if let Some(mut members) = self.enter()
            && let Ok(index) = members.reserve(fd)
        {
            members.insert(index, Member::new(fd, What::of(fd), event));
            members.capture(index);
            return true;
        }
        false
    }

    /// A member has got rings while the kernel was told of a change.
    #[cold]
    fn has_got_rings(&self, fd: RawFd) {
        if let Some(mut members) = self.enter()
            && let Some(index) = members.index_of(fd)
        {
            members.capture_again(index);
            if members.is_waited_for() {
                members.settle(index);
            }
        }
    }

    fn modify(&self, instance: RawFd, fd: RawFd, event: Event) -> Result<(), Errno> {
        let mut members = self.enter().ok_or(Errno::NOMEM)?;
        let Some(index) = members.index_of(fd).or_else(|| members.orphan_at(fd)) else {
            return sys::epoll::modify(instance, fd, event.events, event.data);
        };
        let is_others = members.shared || members.visiting || members.for_kernel;
        let Some(member) = members.get_mut(index).filter(|member| !member.dormant) else {
            return Err(Errno::NOENT);
        };
        if member.captured.is_none() || !member.is_same() {
            if !is_others && member.is_so_in_kernel(event) {
                return Ok(());
            }
            // One that became ours while it could not be captured.
            if !members.capture_changed(index, event) {
                sys::epoll::modify(instance, fd, event.events, event.data)?;
                if let Some(member) = members.get_mut(index) {
                    member.modify(event);
                }
                members.capture_again(index);
            }
        } else {
            if (event.events | member.events) & EXCLUSIVE != 0 {
                return Err(Errno::INVAL);
            }
            member.modify(event);
            member.widen(index, instance)?;
            members.heat(index);
        }
        if members.is_waited_for() {
            members.settle(index);
        }
        Ok(())
    }

    fn delete(&self, instance: RawFd, fd: RawFd) -> Result<(), Errno> {
        let mut members = self.enter().ok_or(Errno::NOMEM)?;
        if members.dormant_at(fd).is_some() {
            return Err(Errno::NOENT);
        }
        if let Some(index) = members.index_of(fd)
            && !members.shared
            && !members.for_kernel
        {
            let dozes = members
                .get_mut(index)
                .is_some_and(|member| member.doze(false));
            if dozes || (self.may_be_late(instance) && members.put_off(index)) {
                return Ok(());
            }
        }
        sys::epoll::delete(instance, fd)?;
        if let Some(index) = members.index_of(fd).or_else(|| members.orphan_at(fd)) {
            members.remove(index);
        }
        Ok(())
    }
}
