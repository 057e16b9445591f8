//! The members that each wait looks at.
//!
//! A look at a connection reads half a dozen lines, which for some hundred connections are in no near cache. Of a member that had nothing to report,
//! and can have something only if its peer shows another count, it is enough to compare that count: one line, without a turn.
//! What changes otherwise (calls of this process, the way back) is found by the close looks in between, which every
//! wait makes before it sleeps, and each look of one that does not wait.

use sys::stream::{Shown, Watch};
use sys::sync::{Ordering, compiler_fence};

use super::super::Event;
use super::super::member::Member;
use super::Members;

/// A member that is looked at.
#[derive(Debug)]
pub(super) struct Hot {
    pub(super) index: u32,
    /// The number of the last look at it.
    looked: u32,
    /// Looks in vain, in a row.
    pub(super) fruitless: u32,
    /// It was roused with many others, and has had no news since.
    pub(super) on_trial: bool,
    /// It was told of at the last look.
    pub(super) told: bool,
    /// It stays among them while somebody sleeps.
    pub(super) stays: bool,
    /// As [`Member::noted`].
    noted: bool,
    /// It has come back because it was noted on the board, and has not been told of.
    fresh: bool,
    watch: Option<Watch>,
    /// What the peer showed when there was nothing to report, if only that can change it.
    quiet: Option<Shown>,
}

/// How a look at the hot members is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::epoll) enum Glance {
    /// For a wait.
    Eager,
    /// To pass the time: it costs nothing, and teaches nothing of who is not worth it.
    Idle,
    /// As `Eager`, with a close look at each.
    Close,
}

impl Hot {
    #[inline]
    fn is_quiet(&self) -> bool {
        match (&self.watch, self.quiet) {
            (Some(watch), Some(quiet)) => watch.shown() == quiet,
            _ => false,
        }
    }
}

impl Members {
    /// Has each wait look at a member, and the next one closely.
    #[inline]
    pub(in crate::epoll) fn heat(&mut self, index: u32) {
        let Some(member) = self.list.get_mut(index as usize) else {
            return;
        };
        if member.captured.is_none() {
            return;
        }
        match member.hot {
            Some(at) => {
                if let Some(hot) = self.hot.get_mut(at as usize) {
                    hot.quiet = None;
                    hot.told = false;
                }
            }
            None => {
                let noted = member.noted;
                member.hot = Some(self.hot.len() as u32);
                self.hot.push(Hot {
                    index,
                    looked: self.glances,
                    fruitless: 0,
                    on_trial: false,
                    told: false,
                    stays: false,
                    noted,
                    fresh: false,
                    watch: None,
                    quiet: None,
                });
            }
        }
    }

    /// As [`Members::heat`], for one that is noted on the board.
    #[inline]
    pub(super) fn heat_noted(&mut self, index: u32) {
        let count = self.hot.len();
        self.heat(index);
        match self.hot.get_mut(count) {
            Some(hot) => hot.fresh = true,
            // It is looked at anyway.
            None => {
                if let Some(member) = self.list.get(index as usize) {
                    member.stand_down();
                }
            }
        }
    }

    /// Looks no more at the member at that place of the list.
    pub(super) fn cool(&mut self, at: usize) {
        if at >= self.hot.len() {
            return;
        }
        // Each is dropped once, wherever a jump leaves this.
        let Some(last) = self.hot.pop() else {
            return;
        };
        compiler_fence(Ordering::SeqCst);
        let cooled = match self.hot.get_mut(at) {
            Some(place) => std::mem::replace(place, last),
            None => last,
        };
        compiler_fence(Ordering::SeqCst);
        if let Some(member) = self.list.get_mut(cooled.index as usize) {
            member.hot = None;
            member.cooled = self.waits;
        }
        if let Some(moved) = self.hot.get(at)
            && let Some(member) = self.list.get_mut(moved.index as usize)
        {
            member.hot = Some(at as u32);
        }
    }

    /// A wait begins.
    #[inline]
    pub(in crate::epoll) fn note_wait(&mut self) {
        self.waits = self.waits.wrapping_add(1);
    }

    /// Tells the hot members' news. Returns how many events there are now, `told` of which were there before.
    #[inline]
    pub(in crate::epoll) fn tell(
        &mut self,
        events: &mut [Event],
        told: usize,
        glance: Glance,
    ) -> usize {
        self.look_at_board();
        self.glances = self.glances.wrapping_add(1);
        let closely = glance == Glance::Close || self.glances.is_multiple_of(CLOSE_EACH);
        let (most, near) = (self.patience.most(), self.board.patience.most());
        let (before, count) = (told, self.hot.len());
        let mut met = 0;
        let mut told = told;
        let mut left = count;
        let mut at = self.next;
        while left > 0 && told < events.len() {
            left -= 1;
            if at >= self.hot.len() {
                at = 0;
            }
            // The peers have written to most of these lines: one after the other each would be waited for.
            if let Some(later) = self.hot.get(at + AHEAD) {
                match &later.watch {
                    Some(watch) => watch.foresee(),
                    None => self.foresee_at(at + AHEAD),
                }
            }
            let Some(hot) = self.hot.get_mut(at) else {
                break;
            };
            // The last one takes the place of one that is cooled, perhaps from where this look began. Told twice, its bytes would be there once.
            if std::mem::replace(&mut hot.looked, self.glances) == self.glances {
                at += 1;
                continue;
            }
            let patience = if hot.noted { near } else { most };
            if !closely && hot.is_quiet() {
                hot.fruitless = hot
                    .fruitless
                    .saturating_add(u32::from(glance != Glance::Idle));
                if hot.fruitless <= patience {
                    at += 1;
                    continue;
                }
            }
            let index = hot.index;
            if std::mem::take(&mut hot.told) && patience == 0 && glance == Glance::Eager {
                // The program has had its turn with it. What is there all the same arming finds.
                if self.rests(index) || self.cools(index) {
                    self.cool(at);
                    continue;
                }
            }
            let Some(hot) = self.hot.get_mut(at) else {
                break;
            };
            // First: what comes meanwhile must not be what it showed.
            let shown = hot.watch.as_ref().map(Watch::shown);
            let Some(member) = self.list.get_mut(index as usize) else {
                break;
            };
            let was_in_memory = member.is_in_memory(0);
            let news = member.tell();
            if was_in_memory && !member.is_in_memory(0) {
                self.kernel_is_told |= member.follow(index, self.instance);
            }
            if news != 0 {
                hot.fruitless = 0;
                hot.quiet = None;
                hot.told = true;
                // Would it have been found by looks that cost no more than its note?
                let fresh = std::mem::take(&mut hot.fresh);
                let looks = self.waits.wrapping_sub(member.cooled).saturating_add(near);
                met += usize::from(!fresh || self.board.patience.is_worth(looks, count));
                self.muster.told += u32::from(std::mem::take(&mut hot.on_trial));
                member.note_told(self.muster.sleeps);
                if let Some(event) = events.get_mut(told) {
                    *event = Event {
                        events: news,
                        data: member.data,
                    };
                    told += 1;
                }
                at += 1;
                continue;
            }
            hot.fruitless = hot
                .fruitless
                .saturating_add(u32::from(glance != Glance::Idle));
            if member.is_fired() {
                self.cool(at);
                continue;
            }
            let had = hot.watch.is_some();
            if !member.is_watched_by(hot.watch.as_ref()) {
                // Each is dropped once, wherever a jump leaves this: out of its place first.
                let before = hot.watch.take();
                compiler_fence(Ordering::SeqCst);
                drop(before);
                hot.watch = member.watch();
            }
            // One that has just been made may show more than what was looked at.
            hot.quiet = shown.filter(|_| had && hot.watch.is_some());
            if hot.fruitless > patience {
                hot.fruitless = 0;
                if self.cools(index) {
                    self.cool(at);
                    continue;
                }
            }
            at += 1;
        }
        self.next = at;
        let looks = count - left;
        if glance != Glance::Idle || count > MANY {
            self.patience.note(looks, told - before);
            if self.leaf().is_some() {
                self.board.patience.note(looks, met);
            }
        } else if met > 0 && self.leaf().is_some() {
            self.board.patience.note_in_passing(looks, met);
        }
        told
    }

    /// Whether nothing is to be done before that member is looked at no more.
    #[inline]
    fn rests(&self, index: u32) -> bool {
        self.leaf().is_some() && self.list.get(index as usize).is_some_and(Member::rests)
    }

    /// The hot member at that place of the list, where its next look is a close one.
    #[inline]
    fn unwatched(&self, at: usize) -> Option<&Member> {
        let hot = self.hot.get(at).filter(|hot| hot.watch.is_none())?;
        self.list.get(hot.index as usize)
    }

    #[inline]
    fn foresee_at(&self, at: usize) {
        let (soon, later) = (self.unwatched(at), self.unwatched(at + AHEAD));
        later.into_iter().for_each(Member::foresee);
        soon.into_iter().for_each(Member::foresee_elsewhere);
    }

    /// Asks for what looks at the members from there on will touch, which have just come back.
    #[inline]
    pub(super) fn foresee_from(&self, at: usize) {
        let fresh = at..self.hot.len().min(at + FORESEEN);
        for at in fresh.clone() {
            self.unwatched(at).into_iter().for_each(Member::foresee);
        }
        for at in fresh {
            self.unwatched(at)
                .into_iter()
                .for_each(Member::foresee_elsewhere);
        }
    }

    /// Whether a hot member has news.
    pub(in crate::epoll) fn have_news(&self) -> bool {
        self.hot.iter().any(|hot| {
            self.list
                .get(hot.index as usize)
                .is_some_and(|member| member.news() != 0)
        })
    }
}

/// How many members ahead of the one that is looked at.
const AHEAD: usize = 3;

/// So many are foreseen at once. With 4 a server of 10,000 connections that are used in turn is 3 % slower, with 16 no faster.
const FORESEEN: usize = 8;

/// To look at so many takes time that those wait for that have something.
const MANY: usize = 512;

/// One look in so many is a close one. Odd: looks that end because the program's buffer is full begin at the same few members again and again.
const CLOSE_EACH: u32 = 17;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::member::{Member, What};
    use super::super::super::token;
    use super::*;

    fn members(count: i32) -> Members {
        let mut members = Members::default();
        for fd in 800_000..800_000 + count {
            let index = members.reserve(fd).expect("memory");
            let mut member = Member::new(fd, What::Other, Event { events: 1, data: 0 });
            member.captured = Some(1);
            members.insert(index, member);
        }
        members
    }

    #[test]
    fn who_rings_first_is_looked_at_first() {
        let mut members = members(4);
        members.heat(0);
        // What is no news to them by itself.
        let mut events = [3, 1].map(|index| Event {
            events: 4,
            data: token::of(index),
        });
        assert_eq!(members.hear_first(&mut events, 2), 0);
        let hot: Vec<_> = members.hot.iter().map(|hot| hot.index).collect();
        assert_eq!((hot.as_slice(), members.next), ([0, 3, 1].as_slice(), 1));
        // Nothing new leaves the turn to who has it.
        members.next = 2;
        assert_eq!(members.hear_first(&mut events, 2), 0);
        assert_eq!(members.next, 2);
        members.clear();
    }

    proptest! {
        #[test]
        fn each_knows_where_it_is(steps in prop::collection::vec((0..3, 0..8u32), 0..60)) {
            let mut members = members(8);
            let mut expected = std::collections::BTreeSet::new();
            for (what, index) in steps {
                match what {
                    0 if members.list[index as usize].captured.is_some() => {
                        members.heat(index);
                        expected.insert(index);
                    }
                    1 => {
                        if let Some(at) = members.list[index as usize].hot {
                            members.cool(at as usize);
                            expected.remove(&index);
                        }
                    }
                    _ => {
                        members.remove(index);
                        expected.remove(&index);
                    }
                }
                let mut hot: Vec<_> = members.hot.iter().map(|hot| hot.index).collect();
                for (at, index) in hot.iter().enumerate() {
                    prop_assert_eq!(members.list[*index as usize].hot, Some(at as u32));
                }
                hot.sort_unstable();
                prop_assert!(hot.iter().eq(&expected));
            }
            members.clear();
        }
    }
}
