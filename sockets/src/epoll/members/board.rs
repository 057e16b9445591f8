//! The set's part of the process's board, for sets with many members (decision 23).
//!
//! A member that is not looked at has its sender note on the board that it has something, and each wait looks there: a few lines for thousands of
//! members. Going to sleep is said there, too, so that who notes something from then on rings, and those that are armed so stay it.
//!
//! Only for a set that one thread waits for, by `epoll_wait`: who else may have to be woken, that thread being busy, is rung for as ever.

use std::ops::Range;

use sys::board::{self, Leaf};

use super::super::places;
use super::Members;
use super::patience::Patience;
use crate::ready::Spot;

/// What a set has of a board.
#[derive(Debug)]
pub(super) struct Board {
    leaf: Option<Leaf>,
    /// It has none, and gets none.
    barred: bool,
    /// With members that are noted there.
    pub(super) patience: Patience,
    /// Where the next look begins, so that one member's notes are not before all others' each time.
    next: u32,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            leaf: None,
            barred: false,
            patience: Patience::with_notes(),
            next: 0,
        }
    }
}

impl Members {
    /// There is one connection more. Peers are lent a board from now on, if this is a set for one: when its members are captured it is too late.
    pub(super) fn foresee_board(&mut self) {
        if self.connections == MANY && !self.board.barred && !self.shared {
            board::make();
        }
    }

    /// Before members are armed, by a thread that waits: has a leaf, if it can.
    #[inline]
    pub(super) fn seek_leaf(&mut self) {
        if self.board.leaf.is_none() && self.captured >= MANY && !self.board.barred {
            self.claim_leaf();
        }
    }

    #[cold]
    fn claim_leaf(&mut self) {
        let alone = !self.shared && places::memberships(self.instance) == 0;
        self.board.leaf = if alone { board::claim() } else { None };
        self.board.barred = self.board.leaf.is_none();
    }

    /// Where on the board a member is.
    #[inline]
    pub(super) fn spot(&self, index: u32) -> Option<Spot> {
        let leaf = self.board.leaf.as_ref()?;
        Some(Spot {
            board: leaf.board(),
            place: leaf.place(index)?,
            stands: self.board.patience.most() == 0,
        })
    }

    /// The leaf on which who is about to sleep says so, and has to say when he is awake.
    pub(in crate::epoll) fn leaf(&self) -> Option<Leaf> {
        self.board.leaf
    }

    /// Makes those hot that are noted on the board. Bounded, whatever peers write there: what is left is for the next look.
    #[inline]
    pub(super) fn look_at_board(&mut self) {
        let Some(leaf) = self.board.leaf else {
            return;
        };
        let groups = Leaf::groups(self.list.len());
        let before = self.hot.len();
        let first = self.board.next;
        // In two parts: a remainder for each group takes longer than the look at it.
        if !self.look_at_groups(leaf, first..groups) {
            self.look_at_groups(leaf, 0..first.min(groups));
        }
        self.foresee_from(before);
    }

    /// Whether these had so many that the next look is to go on behind them.
    #[inline]
    fn look_at_groups(&mut self, leaf: Leaf, groups: Range<u32>) -> bool {
        let mut taken = 0;
        for group in groups {
            leaf.take(group, |index| {
                taken += 1;
                self.heat_noted(index);
            });
            if taken > NOTES_MAX {
                self.board.next = group + 1;
                return true;
            }
        }
        false
    }

    /// Says on the board that the set's thread sleeps, if there is one; false if something was noted before that.
    pub(super) fn sleep_on_board(&mut self) -> bool {
        let Some(leaf) = self.board.leaf else {
            return true;
        };
        leaf.sleep();
        if leaf.is_quiet(self.list.len()) {
            return true;
        }
        leaf.wake();
        self.look_at_board();
        false
    }

    /// From now on members ring, for somebody else may have to be woken by them. All that may have been noted are looked at.
    pub(in crate::epoll) fn leave_board(&mut self) {
        self.board.barred = true;
        if let Some(leaf) = self.board.leaf {
            // First: who is told no more on the board must be rung for, whatever comes of the rest.
            leaf.leave();
            for index in 0..self.list.len() {
                if self.list.get(index).is_some_and(|member| member.noted) {
                    self.heat(index as u32);
                }
            }
            self.board.leaf = None;
        }
    }

    /// All members go.
    pub(super) fn give_leaf_back(&mut self) {
        if let Some(leaf) = self.board.leaf.take() {
            board::give_back(leaf);
        }
    }
}

/// With fewer connections a look at each costs less.
const MANY: u32 = 64;
/// Notes that each of a look's two parts takes, and as many more as a group may have.
const NOTES_MAX: u32 = 256;
