//! The members of one set, and which of them are hot.

use std::collections::TryReserveError;
use std::os::fd::RawFd;

use sys::errno::Errno;
use sys::quiet::Quiet;

use super::member::{Member, What};
use super::{EXCLUSIVE, Event, Instance, ONCE, places, token};
use crate::conn::Conn;
use crate::ready::{self, Asking};

use board::Board;
pub(super) use hot::Glance;
use hot::Hot;
use mend::Changing;
use patience::Patience;
use rouse::Muster;

mod at_once;
mod board;
mod hand;
mod hot;
mod kernel;
mod late;
mod mend;
mod nested;
mod orphans;
mod patience;
mod rouse;
mod sleep;

/// The members of one set. All calls are made under the set's lock.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// By index, which tokens hold; free places are [`What::Nothing`].
    list: Vec<Member>,
    free: Vec<u32>,
    /// By descriptor: index plus 1.
    by_fd: Vec<u32>,
    /// Looked at by each wait. Never needs to grow in one: it has room for all.
    hot: Vec<Hot>,
    /// How often they were looked at.
    glances: u32,
    /// How often they were waited for.
    waits: u32,
    /// Of those armed for a sleep, those that had news not long ago. It has room for [`WARM_MAX`].
    warm: Vec<u32>,
    muster: Muster,
    patience: Patience,
    board: Board,
    /// Of those that the program has deleted, which the kernel is still to forget. It has room for [`LATE_MAX`](late::LATE_MAX).
    late: Vec<u32>,
    /// Other sets.
    sets: Vec<u32>,
    /// How often something came to a member, for those who watch this set.
    came: u64,
    /// Where the next look begins, so that who fills the program's buffer does not fill it each time.
    next: usize,
    /// How often the kernel is looked at.
    kernel: Asking,
    /// It had as much as there was room for the last time.
    kernel_filled: bool,
    /// A look has had it report more.
    pub(super) kernel_is_told: bool,
    pub(super) instance: Instance,
    /// Other processes may wait on the kernel's instance too.
    pub(super) shared: bool,
    /// This is a child of `fork` that has not used the set: what the kernel has of it is its parent's business.
    pub(super) visiting: bool,
    /// It was its parent's when this process came to be, and may be still.
    pub(super) inherited: bool,
    /// They all stay with the kernel: see [`given`](super::given).
    pub(super) for_kernel: bool,
    /// How many are captured, how many are connections.
    pub(super) captured: u32,
    pub(super) connections: u32,
    /// The descriptor of the only connection.
    pub(super) only: Option<RawFd>,
    /// Members whose descriptor was closed, and that live on as a duplicate.
    orphans: u32,
    /// There may be members in the kernel's instance by numbers that are closed, of which nothing is known here.
    strays: bool,
    /// Connections whose doorbell was taken away, of which other sets are to be told once nobody has this one.
    pub(super) rang: Vec<RawFd>,
    /// The place of the list that is being written.
    changing: Changing,
}

impl Members {
    /// A place for a member that is about to be added.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn reserve(&mut self, fd: RawFd) -> Result<u32, Errno> {
        let by_fd = usize::try_from(fd).map_err(|_| Errno::BADF)? + 1;
        let index = match self.free.last() {
            Some(index) => *index,
            None => u32::try_from(self.list.len()).map_err(|_| Errno::NOMEM)?,
        };
        if self.must_grow(by_fd) {
            self.grow(by_fd).map_err(|_| Errno::NOMEM)?;
        }
        if self.list.len() >= token::MEMBERS_MAX {
            return Err(Errno::NOMEM);
        }
        if by_fd > self.by_fd.len() {
            self.by_fd.resize(by_fd, 0);
        }
        Ok(index)
    }

    #[cold]
    fn grow(&mut self, by_fd: usize) -> Result<(), TryReserveError> {
        // A handler that left the C library's allocation by a jump would leave it locked.
        let _quiet = Quiet::begin();
        let all = self.list.len() + 1;
        if self.rang.capacity() == 0 {
            self.rang.try_reserve(RANG_MAX)?;
            self.warm.try_reserve(WARM_MAX)?;
            self.late.try_reserve(late::LATE_MAX)?;
        }
        self.by_fd
            .try_reserve(by_fd.saturating_sub(self.by_fd.len()))?;
        self.list.try_reserve(1)?;
        self.free.try_reserve(all - self.free.len())?;
        self.hot.try_reserve(all - self.hot.len())?;
        self.sets.try_reserve(1)?;
        Ok(())
    }

    /// Puts a member at the place that was [reserved](Members::reserve). What had its descriptor before is no member any more.
    pub(super) fn insert(&mut self, index: u32, member: Member) {
        if let Some(old) = self.index_of(member.fd) {
            self.lose(old);
        }
        let fd = member.fd;
        // First: one too many, after a jump, is looked for in vain.
        places::note_member(fd);
        self.captured += u32::from(member.captured.is_some());
        if member.is_connection() {
            self.note_connection(fd);
        }
        if matches!(member.what, What::Set(_)) {
            self.sets.push(index);
        }
        if self.free.last() == Some(&index) {
            self.free.pop();
        }
        self.changing.begin(index, fd);
        match self.list.get_mut(index as usize) {
            Some(place) => *place = member,
            None => self.list.push(member),
        }
        self.changing.end();
        if let Some(entry) = self.by_fd.get_mut(fd.cast_unsigned() as usize) {
            *entry = index + 1;
        }
        self.expect_of_kernel();
    }

    /// The member at an index from a token or a list.
    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Member> {
        self.list.get_mut(index as usize)
    }

    /// Where the member with that descriptor is.
    pub(super) fn index_of(&self, fd: RawFd) -> Option<u32> {
        self.by_fd
            .get(usize::try_from(fd).ok()?)
            .and_then(|entry| entry.checked_sub(1))
    }

    /// Where a member is that the program has deleted and the kernel still has.
    pub(super) fn dormant_at(&self, fd: RawFd) -> Option<u32> {
        self.index_of(fd).filter(|index| {
            self.list
                .get(*index as usize)
                .is_some_and(|member| member.dormant)
        })
    }

    /// Adds a dormant member again; false if that takes another registration.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn wakes(&mut self, index: u32, event: Event) -> Result<bool, Errno> {
        let instance = self.instance;
        let Some(member) = self.list.get_mut(index as usize) else {
            return Ok(false);
        };
        if event.events & EXCLUSIVE != 0 || !member.is_same() {
            return Ok(false);
        }
        let late = member.is_late();
        if !(late && self.capture_changed(index, event)) {
            let Some(member) = self.list.get_mut(index as usize) else {
                return Ok(false);
            };
            if late && sys::epoll::modify(instance, member.fd, event.events, event.data).is_err() {
                return Ok(false);
            }
            member.modify(event);
            member.widen(index, instance)?;
        }
        if let Some(member) = self.list.get_mut(index as usize) {
            member.dormant = false;
        }
        if late {
            self.is_late_no_more(index);
            self.capture_again(index);
            self.expect_of_kernel();
        }
        self.heat(index);
        Ok(true)
    }

    /// Removes a dormant member from the kernel's instance too.
    pub(super) fn forget(&mut self, index: u32) {
        if let Some(member) = self.list.get(index as usize) {
            // What is not there any more need not be removed.
            let _ = sys::epoll::delete(self.instance, member.fd);
        }
        self.remove(index);
    }

    /// Where the first member is, from `start` on, that is that connection: by `fd`, or, if it may be there by other numbers, closed ones among them, by any.
    pub(super) fn find(&self, start: u32, fd: RawFd, conn: &Conn, everywhere: bool) -> Option<u32> {
        let known = self.index_of(fd);
        if !everywhere && self.orphans == 0 {
            return known.filter(|index| *index >= start);
        }
        let members = (0u32..).zip(&self.list).skip(start as usize);
        let is_it = |index, member: &Member| {
            known == Some(index) || member.is(conn) || member.may_have_become(conn)
        };
        members
            .filter(|(index, member)| is_it(*index, member))
            .map(|(index, _)| index)
            .next()
    }

    /// Forgets a member. What the kernel has of it is the caller's business.
    pub(super) fn remove(&mut self, index: u32) {
        let Some(place) = self.list.get_mut(index as usize) else {
            return;
        };
        if matches!(place.what, What::Nothing) {
            return;
        }
        let (fd, hot) = (place.fd, place.hot);
        let (was_captured, was_connection) = (place.captured.is_some(), place.is_connection());
        let orphan = place.is_orphan().then_some(place.via);
        self.changing.begin(index, fd);
        if place.noted {
            place.stand_down();
        }
        // In place: with what the program does for a short connection, copies would be noticed.
        *place = Member::new(-1, What::Nothing, NO_EVENT);
        self.changing.end();
        if let Some(at) = hot {
            self.cool(at as usize);
        }
        self.captured -= u32::from(was_captured);
        if was_connection {
            self.forget_connection();
        }
        if let Some(via) = orphan {
            self.orphans -= 1;
            places::forget_member(via);
        }
        self.sets.retain(|other| *other != index);
        self.disown(fd, index);
        self.free.push(index);
    }

    fn disown(&mut self, fd: RawFd, index: u32) {
        if let Ok(at) = usize::try_from(fd)
            && let Some(entry) = self.by_fd.get_mut(at)
            && *entry == index + 1
        {
            *entry = 0;
            places::forget_member(fd);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        for index in 0..self.list.len() {
            self.remove(index as u32);
        }
        self.give_leaf_back();
        *self = Self::default();
    }

    /// Captures a member that has become one of ours.
    pub(super) fn capture(&mut self, index: u32) {
        let instance = self.instance;
        let Some(member) = self.list.get_mut(index as usize) else {
            return;
        };
        if self.for_kernel
            || self.visiting
            || member.captured.is_some()
            || member.is_orphan()
            || !member.what.is_in_memory()
            || member.is_back()
        {
            return;
        }
        if member.capture(index, instance).is_ok() {
            self.captured += 1;
            self.heat(index);
        }
    }

    /// Captures a member that has become one of ours, as the program now wants it; false, and nothing is done, if it is none. By one call: what the kernel reports
    /// between two, by the program's data, would be told again, and a thread of a pool that has asked to be told once has the connection while another has it.
    pub(super) fn capture_changed(&mut self, index: u32, event: Event) -> bool {
        let (instance, is_others) = (self.instance, self.for_kernel || self.visiting);
        let Some(member) = self.list.get_mut(index as usize) else {
            return false;
        };
        let before = Event {
            events: member.events,
            data: member.data,
        };
        if is_others
            || member.captured.is_some()
            || (event.events | before.events) & EXCLUSIVE != 0
            || !member.what.is_in_memory()
            || member.is_back()
            || !member.is_same()
        {
            return false;
        }
        member.modify(event);
        if member.capture(index, instance).is_err() {
            member.modify(before);
            return false;
        }
        // Not as of one that has got rings under the program's hands: a change is told of all that there is.
        member.forget_told();
        self.captured += 1;
        self.heat(index);
        true
    }

    /// Captures a member that has got rings while the kernel was told of a change, unless it reports once: whether it has is known of
    /// [ends](Member::awaits_end_once) alone, and until it is modified the kernel [reports](super::Set::upgraded) its doorbell.
    pub(super) fn capture_again(&mut self, index: u32) {
        match self.list.get(index as usize) {
            Some(member) if member.events & ONCE == 0 || member.awaits_end_once() => {
                let before = self.captured;
                self.capture(index);
                if self.captured != before
                    && let Some(member) = self.list.get_mut(index as usize)
                {
                    member.forget_told();
                }
            }
            Some(&Member {
                what: What::Connection { conn, .. },
                ..
            }) if conn.is_mapped() => ready::arm(conn),
            _ => {}
        }
    }

    /// Captures the other sets that have got members with rings since.
    pub(super) fn capture_sets(&mut self) {
        for at in 0..self.sets.len() {
            if let Some(index) = self.sets.get(at).copied() {
                self.capture(index);
            }
        }
    }

    /// A member may have become a connection since it was added.
    pub(super) fn classify(&mut self, index: u32) {
        if let Some(member) = self.list.get_mut(index as usize)
            && matches!(member.what, What::Other)
        {
            member.what = What::of(member.fd);
            if member.is_connection() {
                let fd = member.fd;
                self.note_connection(fd);
            }
        }
    }

    fn note_connection(&mut self, fd: RawFd) {
        self.connections += 1;
        self.foresee_board();
        self.only = (self.connections == 1).then_some(fd);
    }

    fn forget_connection(&mut self) {
        self.connections -= 1;
        let mut connections = self.list.iter().filter(|member| member.is_connection());
        self.only = (self.connections == 1)
            .then(|| connections.next().map(|member| member.fd))
            .flatten();
    }

    /// How many are other sets.
    #[inline]
    pub(super) fn sets_count(&self) -> u32 {
        self.sets.len() as u32
    }

    /// Makes cold members hot that have news, of the first `most`; whether there are any.
    pub(super) fn wake_cold(&mut self, most: usize) -> bool {
        let mut any = false;
        for index in 0..self.list.len().min(most) {
            let Some(member) = self.list.get(index) else {
                break;
            };
            if member.captured.is_some() && member.hot.is_none() && member.news() != 0 {
                self.heat(index as u32);
                any = true;
            }
        }
        any
    }
}

const NO_EVENT: Event = Event { events: 0, data: 0 };

/// After a sleep so many are looked at, beside those whose doorbell rang.
const WARM_MAX: usize = 256;

/// Of so many connections that are in several sets, and ring at once, the other sets are told at a time.
const RANG_MAX: usize = 64;
