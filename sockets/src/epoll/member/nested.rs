//! A set that is a member of another.
//!
//! To the kernel an edge of such a member is that something has come to a member of its own, whether or not there was something already. So a set counts
//! what has come, once somebody asks for it, and who watches it compares that count with the one at which the program was last told.

use super::{Armed, Marks, Member, News, UNTOLD, What, with};
use crate::epoll::{EDGE, EXCLUSIVE, Instance, ONCE, Set};
use crate::ready::{self, ALWAYS, IN, READ, Rest, WRITE};

/// What has come to a member since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::epoll) struct Come {
    /// Something.
    pub(in crate::epoll) any: bool,
    /// What only the kernel knows is there; when it came is not to be told.
    pub(in crate::epoll) carried: bool,
}

impl Member {
    /// What there is to tell of a set that is ready.
    #[inline(never)]
    pub(super) fn news_of_set(&self, set: &Set) -> News {
        let events = READ & self.events;
        if !self.is_edge() {
            return News {
                events,
                ..News::default()
            };
        }
        let heard = self.said & IN != 0;
        let Some((count, carried)) = set.what_came(heard) else {
            return News::default();
        };
        let edge = count != self.told.input || (heard && carried);
        News {
            events: if edge { events } else { 0 },
            marks: Some(Marks {
                input: count,
                sent: 0,
                full_at: 0,
            }),
            ..News::default()
        }
    }

    /// As [`Member::arm`] for another set, which somebody who sleeps on this one then sleeps on too.
    pub(in crate::epoll) fn arm_set(&self, set: &Set) -> Armed {
        match set.lie_down(self.via) {
            Rest::Awake => Armed::Awake,
            Rest::Asleep(bed) => Armed::Quiet { nap: bed.nap },
        }
    }

    /// As [`Members::settle_set`](crate::epoll::members::Members::settle_set) says; whether it was captured by that.
    pub(in crate::epoll) fn settle_set(&mut self, index: u32, instance: Instance) -> bool {
        match self.captured {
            // Who was told once would hear of it again and again.
            Some(_) if self.events & ONCE != 0 => {
                let _ = self.register(IN | EDGE, index, instance, false);
                false
            }
            None if self.events & (EDGE | ONCE | EXCLUSIVE) == 0 => {
                self.capture(index, instance).is_ok()
            }
            _ => false,
        }
    }

    /// What has come for one who watches the set that this is a member of. `heard` says that the kernel has reported the set.
    pub(in crate::epoll) fn come(&mut self, heard: bool) -> Come {
        if self.fired {
            return Come::default();
        }
        match self.what {
            What::Connection { conn, generation } if conn.generation() == generation => {
                let interest = self.interest();
                let Some((look, marks)) =
                    with(self.via, |fd| ready::look_closely(conn, fd, interest))
                else {
                    return Come::default();
                };
                let input = marks.input ^ self.seen.input;
                let any = (interest & READ != 0 && input != 0)
                    || input & MARKS_OF_ENDS != 0
                    || (look.ready & interest & WRITE != 0 && marks.sent >= self.seen.full_at);
                if any {
                    self.seen = marks;
                }
                let said = self.said & look.ask & interest & !ALWAYS;
                Come {
                    any,
                    carried: said != 0 && sys::epoll::shows(self.via, said as u16) != 0,
                }
            }
            What::Set(set) => {
                let Some((count, carried)) = set.what_came(heard) else {
                    return Come::default();
                };
                let any = count != self.seen.input;
                self.seen = Marks {
                    input: count,
                    ..UNTOLD
                };
                Come { any, carried }
            }
            What::Other if heard => Come {
                any: false,
                carried: sys::epoll::shows(self.fd, self.interest() as u16) != 0,
            },
            _ => Come::default(),
        }
    }

    /// The program changes what it waits for. What is there already is an edge to whoever watches the set, unless this one was ready in it.
    pub(super) fn note_change(&mut self) {
        if self.seen != UNTOLD && self.news() == 0 {
            self.seen = UNTOLD;
        }
    }
}

/// In [`Marks::input`]: the bits of the ends.
const MARKS_OF_ENDS: u64 = 3 << 62;
