//! Falling asleep on a set, and getting up.

use std::os::fd::RawFd;

use super::super::member::{Armed, Member, What};
use super::super::{EDGE, ONCE, places};
use super::Members;

impl Members {
    /// Whether a member needs no look until its doorbell rings, or it is noted on the board.
    pub(super) fn cools(&mut self, index: u32) -> bool {
        self.seek_leaf();
        let (instance, shared, spot) = (self.instance, self.shared, self.spot(index));
        let Some(member) = self.list.get_mut(index as usize) else {
            return true;
        };
        if matches!(member.what, What::Set(_)) {
            return false;
        }
        let armed = member.arm(index, instance, shared, spot);
        note_rang(member, &mut self.rang);
        match armed {
            Armed::Awake | Armed::Quiet { nap: true } => false,
            Armed::Quiet { nap: false } | Armed::Gone => true,
        }
    }

    /// Arms all hot members and lets them cool. `None` if one has news; else whether one may only nap. Who is `alone` in waiting for the set
    /// takes back what he has armed if he does not sleep after all: it would ring for nobody.
    pub(in crate::epoll) fn lie_down(&mut self, alone: bool) -> Option<bool> {
        self.seek_leaf();
        self.capture_sets();
        let (instance, shared) = (self.instance, self.shared);
        let mut nap = false;
        let mut at = 0;
        self.warm.clear();
        while let Some(index) = self.hot.get(at).map(|hot| hot.index) {
            let spot = self.spot(index);
            let Some(hot) = self.hot.get_mut(at) else {
                break;
            };
            let Some(member) = self.list.get_mut(hot.index as usize) else {
                break;
            };
            if matches!(member.what, What::Set(_)) {
                hot.stays = true;
                at += 1;
                continue;
            }
            let armed = member.arm(hot.index, instance, shared, spot);
            note_rang(member, &mut self.rang);
            match armed {
                Armed::Awake => {
                    if alone {
                        self.stay_up(at + 1);
                    }
                    return None;
                }
                Armed::Quiet { nap: short } => {
                    hot.stays = short;
                    nap |= short;
                    at += 1;
                }
                Armed::Gone => {
                    let index = hot.index;
                    self.remove(index);
                }
            }
        }
        let mut rest = self.lie_down_in_sets();
        if rest.is_some() && !self.sleep_on_board() {
            self.get_up();
            rest = None;
        }
        if rest.is_some() {
            self.cool_armed();
        } else if alone {
            self.stay_up(self.hot.len());
        }
        rest.map(|short| nap || short)
    }

    /// The first `count` of the hot members need not ring.
    fn stay_up(&mut self, count: usize) {
        if self.shared {
            return;
        }
        for hot in self.hot.iter().take(count) {
            if let Some(member) = self.list.get(hot.index as usize) {
                member.rouse();
            }
        }
    }

    /// All are armed, and those cool that can be waited for.
    fn cool_armed(&mut self) {
        let mut at = 0;
        while let Some(hot) = self.hot.get(at) {
            if hot.stays {
                at += 1;
                continue;
            }
            let (index, fruitless) = (hot.index, hot.fruitless);
            let told_in = self
                .list
                .get(index as usize)
                .filter(|member| !member.noted)
                .and_then(Member::told_in);
            if fruitless <= WARM
                && self.muster.is_within(WARM, told_in)
                && self.warm.len() < self.warm.capacity()
            {
                self.warm.push(index);
            }
            self.cool(at);
        }
    }

    /// Sleeping on this set is sleeping on the sets in it.
    pub(super) fn lie_down_in_sets(&mut self) -> Option<bool> {
        let mut nap = false;
        for (at, index) in self.sets.iter().enumerate() {
            let Some(member) = self.list.get(*index as usize) else {
                continue;
            };
            let What::Set(set) = member.what else {
                continue;
            };
            nap |= match member.captured.map(|_| member.arm_set(set)) {
                Some(Armed::Quiet { nap: short }) => short,
                Some(Armed::Awake | Armed::Gone) if member.news() != 0 => {
                    self.wake_sets(at);
                    return None;
                }
                // It has what this set does not wait for, or only the kernel knows what it has.
                _ => !set.lie_down_unaware(),
            };
        }
        Some(nap)
    }

    /// As [`Members::lie_down_in_sets`], of one who knows of no rings.
    pub(in crate::epoll) fn lie_down_in_sets_unaware(&self) {
        for index in &self.sets {
            if let Some(member) = self.list.get(*index as usize)
                && let What::Set(set) = member.what
            {
                set.lie_down_unaware();
            }
        }
    }

    /// Nobody sleeps on the first `count` sets in this one any more.
    pub(super) fn wake_sets(&self, count: usize) {
        for index in self.sets.iter().take(count) {
            if let Some(member) = self.list.get(*index as usize)
                && let What::Set(set) = member.what
            {
                set.get_up();
            }
        }
    }

    /// Nobody sleeps on the sets in this one any more.
    pub(in crate::epoll) fn get_up(&self) {
        self.wake_sets(self.sets.len());
    }

    /// While others sleep on the set, and who comes back from it may be long: they are to be woken by what comes next.
    pub(in crate::epoll) fn keep_watch(&mut self) {
        let (instance, shared) = (self.instance, self.shared);
        for hot in &mut self.hot {
            let Some(member) = self.list.get_mut(hot.index as usize) else {
                continue;
            };
            let armed = member.arm(hot.index, instance, shared, None);
            note_rang(member, &mut self.rang);
            if armed != Armed::Awake {
                continue;
            }
            let tells_again = member.events & (EDGE | ONCE) == 0;
            // News that came after the look, or that the program's buffer had no room for: nobody rings for it. What is told again until it is taken is told to
            // all, one after the other: who was told first may be long with it, or leave some of it, or wait for what another does.
            if !hot.told || tells_again {
                member.wake_sleeper(hot.index, instance);
            }
        }
    }

    /// Notes of which members other sets are still to be told, as far as there is room.
    #[cold]
    pub(in crate::epoll) fn note_missed(&mut self) {
        for member in &mut self.list {
            note_rang(member, &mut self.rang);
        }
    }

    /// As [`Members::settle`], of all that may have news.
    pub(in crate::epoll) fn settle_hot(&mut self) {
        for at in 0..self.hot.len() {
            if let Some(hot) = self.hot.get(at) {
                self.settle(hot.index);
            }
        }
    }

    /// After a change to a member while others sleep on the set: arms it, or wakes one of them.
    pub(in crate::epoll) fn settle(&mut self, index: u32) {
        let (instance, shared) = (self.instance, self.shared);
        if let Some(member) = self.list.get_mut(index as usize)
            && member.captured.is_some()
        {
            let armed = member.arm(index, instance, shared, None);
            note_rang(member, &mut self.rang);
            // Who may only nap on it is to know that he may.
            if matches!(armed, Armed::Awake | Armed::Quiet { nap: true }) {
                member.wake_sleeper(index, instance);
            }
        }
    }
}

/// Notes that other sets are to be told, if the connection is in any; where there is no room for that, it [stays to be noted](Members::note_missed).
#[inline]
fn note_rang(member: &mut Member, rang: &mut Vec<RawFd>) {
    if !member.rang {
        return;
    }
    let is_elsewhere = places::memberships(member.via) > 1 || member.has_duplicates();
    if is_elsewhere && rang.len() == rang.capacity() {
        return;
    }
    member.rang = false;
    if is_elsewhere {
        rang.push(member.via);
    }
}

/// Who had news within so many waits, and sleeps, is busy.
const WARM: u32 = 8;
