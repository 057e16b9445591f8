//! When virtual time may go on.

use std::thread::ThreadId;
use std::time::Duration;

/// Knows who waits, and so whether anybody could still do something at the present time.
///
/// A thread that waits first looks whether what it waits for is there, and then [settles]. Whatever
/// happens [stirs] everybody: they have to look and settle again before the gate closes. A
/// fruitless poll is a vote to go on a little; votes last until the next stir.
///
/// [settles]: Gate::settle
/// [stirs]: Gate::stir
#[derive(Debug)]
pub(crate) struct Gate {
    /// Threads that take part.
    threads: usize,
    waiting: Vec<Waiting>,
    votes: Vec<ThreadId>,
    /// How far the votes allow to go.
    votes_until: Duration,
    entered: u64,
    /// Sleepers have to be woken.
    dirty: bool,
}

#[derive(Debug)]
struct Waiting {
    no: u64,
    deadline: Option<Duration>,
    settled: bool,
}

/// A thread that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitNo(u64);

impl Gate {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            waiting: Vec::new(),
            votes: Vec::new(),
            votes_until: Duration::ZERO,
            entered: 0,
            dirty: false,
        }
    }

    pub(crate) fn join(&mut self) {
        self.threads += 1;
    }

    pub(crate) fn leave(&mut self) {
        self.threads = self.threads.saturating_sub(1);
        self.stir();
    }

    /// A thread begins to wait.
    pub(crate) fn enter(&mut self, thread: ThreadId, deadline: Option<Duration>) -> WaitNo {
        self.votes.retain(|&voter| voter != thread);
        self.entered += 1;
        self.waiting.push(Waiting {
            no: self.entered,
            deadline,
            settled: false,
        });
        WaitNo(self.entered)
    }

    /// It has looked, and found nothing.
    pub(crate) fn settle(&mut self, wait: WaitNo) {
        if let Some(waiting) = self.waiting.iter_mut().find(|w| w.no == wait.0) {
            waiting.settled = true;
        }
    }

    /// It waits no more.
    pub(crate) fn exit(&mut self, wait: WaitNo) {
        self.waiting.retain(|waiting| waiting.no != wait.0);
    }

    /// A thread has polled in vain and agrees to go on until `until`, unless an earlier vote has
    /// said less.
    pub(crate) fn vote(&mut self, thread: ThreadId, until: Duration) {
        if self.votes.is_empty() {
            self.votes_until = until;
        }
        if !self.votes.contains(&thread) {
            self.votes.push(thread);
        }
    }

    pub(crate) fn has_votes(&self) -> bool {
        !self.votes.is_empty()
    }

    /// Something has happened.
    pub(crate) fn stir(&mut self) {
        for waiting in &mut self.waiting {
            waiting.settled = false;
        }
        self.votes.clear();
        self.dirty = true;
    }

    /// Sleepers have to look at the queue of events again.
    pub(crate) fn wake(&mut self) {
        self.dirty = true;
    }

    pub(crate) fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty) && !self.waiting.is_empty()
    }

    /// Whether nobody can do anything at the present time.
    pub(crate) fn is_closed(&self) -> bool {
        let settled = self.waiting.iter().filter(|w| w.settled).count();
        self.waiting.len() == settled && settled + self.votes.len() >= self.threads
    }

    /// The latest time to which it may go on without anybody's having to look.
    pub(crate) fn horizon(&self) -> Option<Duration> {
        let deadlines = self.waiting.iter().filter_map(|waiting| waiting.deadline);
        let votes = (!self.votes.is_empty()).then_some(self.votes_until);
        deadlines.chain(votes).min()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn it_closes_when_all_have_looked() {
        let me = thread::current().id();
        let mut gate = Gate::new(2);
        let one = gate.enter(me, Some(us(9)));
        gate.settle(one);
        assert!(!gate.is_closed(), "the other computes");
        let two = gate.enter(me, Some(us(7)));
        assert!(!gate.is_closed(), "the other has not looked");
        gate.settle(two);
        assert!(gate.is_closed());
        assert_eq!(gate.horizon(), Some(us(7)));

        gate.stir();
        assert!(gate.take_dirty());
        gate.settle(two);
        assert!(!gate.is_closed(), "one has to look again");
        gate.settle(one);
        assert!(gate.is_closed());
        gate.exit(two);
        assert!(!gate.is_closed());
        gate.leave();
        gate.settle(one);
        assert!(gate.is_closed(), "only one takes part");
        assert_eq!(gate.horizon(), Some(us(9)));
    }

    #[test]
    fn a_poll_goes_on_a_little() {
        let me = thread::current().id();
        let mut gate = Gate::new(2);
        gate.vote(me, us(1));
        gate.vote(me, us(2));
        assert!(!gate.is_closed(), "one vote a thread");
        let sleeper = gate.enter(thread::spawn(|| ()).thread().id(), None);
        gate.settle(sleeper);
        assert!(gate.is_closed());
        assert_eq!(gate.horizon(), Some(us(1)), "the first vote says how far");
        gate.stir();
        gate.settle(sleeper);
        assert!(!gate.is_closed(), "the vote is used up");
    }

    #[test]
    fn who_votes_and_then_waits_counts_once() {
        let me = thread::current().id();
        let mut gate = Gate::new(2);
        gate.vote(me, us(1));
        let wait = gate.enter(me, None);
        gate.settle(wait);
        assert!(!gate.is_closed());
    }
}
