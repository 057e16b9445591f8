//! What the kernel knows of the members, and how often it is asked.

use sys::time::coarse_ms;

use super::super::member::What;
use super::super::{Event, token};
use super::Members;
use crate::ready::Asking;

impl Members {
    /// The kernel may have something of a new one.
    pub(super) fn expect_of_kernel(&mut self) {
        self.kernel = Asking::NEW;
    }

    /// Whether this wait is to look at the kernel: as [`Asking`] says, and one that is not `patient` whenever there may be something.
    #[inline]
    pub(in crate::epoll) fn kernel_is_due(&mut self, patient: bool) -> bool {
        if std::mem::take(&mut self.kernel_filled) {
            return false;
        }
        let has_others = self.has_others();
        let is_asked = !patient && has_others;
        // Of connections that are not hot it has the doorbells.
        let may_have = has_others || self.captured as usize > self.hot.len();
        let is_due = self
            .kernel
            .is_due(|| (may_have && !is_asked).then(coarse_ms));
        is_asked || is_due
    }

    /// As [`Asking::looks`].
    #[inline]
    pub(in crate::epoll) fn looks_for_kernel(&self) -> u32 {
        self.kernel.looks()
    }

    /// As [`Asking::is_busy`].
    #[inline]
    pub(in crate::epoll) fn kernel_is_busy(&self) -> bool {
        self.kernel.is_busy()
    }

    /// The kernel has been looked at, and had `news` for the program, or the doorbell of a member.
    ///
    /// One that filled the program's buffer has had its turn: the next is the rings'.
    pub(in crate::epoll) fn kernel_had(&mut self, news: bool, bell: bool, filled: bool) {
        self.kernel.had(news, bell, coarse_ms());
        self.kernel_filled = filled;
    }

    /// Whether there may be members that only the kernel knows.
    pub(super) fn has_others(&self) -> bool {
        self.strays || (self.captured as usize) + self.free.len() < self.list.len()
    }

    /// Whether all that the kernel can report are tokens, and to nobody else.
    pub(in crate::epoll) fn has_only_tokens(&self) -> bool {
        !self.shared && !self.has_others()
    }

    /// Hears what the kernel has to report, of one that [has only tokens](Members::has_only_tokens). Whether there was something else, after all.
    pub(in crate::epoll) fn take_tokens(&mut self) -> bool {
        let mut others = 0;
        sys::epoll::take(self.instance, |events, data| {
            others += self.hear(&mut [Event { events, data }], 1);
        });
        // Closed by ways that we do not see.
        self.strays |= others > 0;
        others > 0
    }

    /// Sorts what the kernel reported into the program's events, which stay, and tokens, whose members become hot. Returns how many stay.
    pub(in crate::epoll) fn hear(&mut self, events: &mut [Event], count: usize) -> usize {
        let mut kept = 0;
        let instance = self.instance;
        for at in 0..count.min(events.len()) {
            let Some(event) = events.get(at).copied() else {
                break;
            };
            let Some(index) = token::member(event.data) else {
                if let Some(place) = events.get_mut(kept) {
                    *place = event;
                    kept += 1;
                }
                continue;
            };
            let Some(member) = self.list.get_mut(index as usize) else {
                continue;
            };
            if let Some(event) = member.pass_on(event.events)
                && let Some(place) = events.get_mut(kept)
            {
                *place = event;
                kept += 1;
            } else if member.hear(event.events, index, instance) {
                self.heat(index);
            }
        }
        kept
    }

    /// As [`Members::hear`], and what becomes hot by that is the first that is looked at, in the order in which the kernel says it.
    pub(in crate::epoll) fn hear_first(&mut self, events: &mut [Event], count: usize) -> usize {
        let before = self.hot.len();
        let kept = self.hear(events, count);
        if self.hot.len() > before {
            self.next = before;
        }
        kept
    }

    /// Who waited slept until the kernel reported these: it counts for the connections among them.
    pub(in crate::epoll) fn count_sleep(&self, events: &[Event], count: usize) {
        let indices = events
            .iter()
            .take(count)
            .filter_map(|event| token::member(event.data));
        for index in indices {
            if let Some(member) = self.list.get(index as usize) {
                member.count_sleep();
            }
        }
    }

    /// Makes those hot for which the kernel has something, without taking the program's own events from it.
    pub(in crate::epoll) fn ask_kernel(&mut self) {
        for at in 0..self.list.len() {
            let Some(member) = self.list.get_mut(at) else {
                break;
            };
            if let (Some(wake), What::Connection { .. }) = (member.captured, member.what) {
                let said = sys::epoll::shows(member.via, (wake & 0xffff) as u16);
                if said != 0 && member.dormant {
                    self.forget(at as u32);
                    continue;
                }
                if said != 0 && member.hear(u32::from(said), at as u32, self.instance) {
                    self.heat(at as u32);
                }
            }
        }
    }
}
