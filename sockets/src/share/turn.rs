//! A turn at one side of a connection, among the threads of this process and, where several processes have the end, among those.
//!
//! What it asks of the kernel is behind [`Around`], so that models drive all of it.

use std::ops::Deref;

use sys::stream::{Corrupt, Kept};
use sys::turn::{self, Turns};

use crate::flow::{Flow, SEND};
use crate::kernel::Kernel;

/// A turn at one side of a connection's flow, among the threads of this process and, if it is shared, among processes.
pub struct Turn<'a> {
    turn: turn::Turn<'a, Flow>,
    side: usize,
    kept: Option<Kept>,
}

/// What the kernel knows of an end.
pub(super) trait Around {
    /// Whether a look was taken, and nobody else has the end: others that are counted were killed. Not while somebody is counted who is not there yet.
    fn finds_nobody(&self) -> bool;

    /// Whether the process with that number has ended, if a look was taken.
    fn finds_ended(&self, pid: u32) -> bool;

    /// Whether the process of a thread has the end, as far as it is known.
    fn shares(&self, thread: u32) -> Option<bool>;

    /// The TCP connection.
    fn tcp(&self) -> impl Kernel;
}

impl<'a> Turn<'a> {
    /// Among the threads of this process, for who has that one.
    #[inline]
    pub(super) fn of_thread(turn: turn::Turn<'a, Flow>, side: usize) -> Self {
        Self {
            turn,
            side,
            kept: None,
        }
    }

    /// Among processes, for who has one among the threads of this; `None` if there are no rings any more.
    ///
    /// # Errors
    /// If the peer writes to the word of turns, or a process that was stopped has it.
    pub(super) fn enter(
        turns: &'a Turns<Flow>,
        mut turn: turn::Turn<'a, Flow>,
        side: usize,
        around: &impl Around,
    ) -> Result<Option<Self>, Corrupt> {
        if is_alone(&turn, around) && !turn.nested() {
            drop(turn);
            unshare(turns);
            turn = match turns.take(side) {
                Some(turn) => turn,
                None => return Ok(None),
            };
        }
        let stream = turn.stream();
        let shares = |thread| around.shares(thread);
        let held = match side {
            SEND => stream.tx().enter_among(shares),
            _ => stream.rx().enter_among(shares),
        }?;
        let (orphaned, kept) = (held.orphaned(), held.keep());
        let turn = Self {
            turn,
            side,
            kept: Some(kept),
        };
        if orphaned {
            // Killed between its last act and the doorbell, perhaps. One too many does no harm.
            let _ = turn.turn.ring_for_another(&around.tcp(), side);
        }
        Ok(Some(turn))
    }

    /// Whether this thread was in a turn already: it is a signal handler.
    #[inline]
    pub fn nested(&self) -> bool {
        self.turn.nested()
    }
}

impl Deref for Turn<'_> {
    type Target = Flow;

    #[inline]
    fn deref(&self) -> &Flow {
        &self.turn
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.kept.is_some() {
            self.leave();
        }
    }
}

impl Turn<'_> {
    /// Ends the turn among processes.
    #[cold]
    fn leave(&mut self) {
        if let Some(kept) = self.kept.take() {
            match self.side {
                SEND => self.turn.stream().tx().leave(kept),
                _ => self.turn.stream().rx().leave(kept),
            }
        }
    }
}

/// Whether this process is the only one that has the end, as far as it can be told cheaply.
fn is_alone(flow: &Flow, around: &impl Around) -> bool {
    let holders = flow.stream().holders();
    let (count, leaving) = (holders.count(), holders.leaving());
    let nobody = around.finds_nobody();
    if nobody {
        holders.set_one(count);
    }
    if let Some(leaving) = leaving {
        if !nobody && !leaving.pid().is_some_and(|pid| around.finds_ended(pid)) {
            return false;
        }
        holders.have_ended(leaving);
    }
    holders.is_one()
}

/// The other process that had a shared end may be gone: then turns are among threads again.
#[cold]
pub(crate) fn unshare(turns: &Turns<Flow>) {
    let Some(_both) = turns.both() else {
        return;
    };
    if let Some(flow) = turns.take(SEND) {
        flow.stream().holders().unshare();
    }
}
