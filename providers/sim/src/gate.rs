//! When virtual time may go on.

use std::collections::HashSet;
use std::thread::ThreadId;
use std::time::Duration;

use crate::event::EndKey;

/// Knows who waits, and so whether anybody could still do something at the present time.
///
/// A thread that waits first looks whether what it waits for is there, and then [settles]. Whatever
/// happens [stirs] everybody: they have to look and settle again before the gate closes. A thread
/// that polls the same thing in vain for the second time at the same time votes to go on a little;
/// votes last until the next stir.
///
/// [settles]: Gate::settle
/// [stirs]: Gate::stir
#[derive(Debug)]
pub(crate) struct Gate {
    /// Threads that take part.
    threads: usize,
    waiting: Vec<Waiting>,
    /// What has been polled in vain, by whom, at the time `polled_at`.
    polled: HashSet<(ThreadId, Polled)>,
    polled_at: Duration,
    votes: Vec<ThreadId>,
    /// How far the votes allow to go.
    votes_until: Duration,
    /// Votes in a row that led nowhere, capped.
    fruitless: u32,
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

/// What a thread polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Polled {
    End(EndKey),
    /// A completion queue, a listener or a request.
    Other,
}

/// A thread that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitNo(u64);

impl Gate {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            waiting: Vec::new(),
            polled: HashSet::new(),
            polled_at: Duration::ZERO,
            votes: Vec::new(),
            votes_until: Duration::ZERO,
            fruitless: 0,
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
        self.withdraw(thread);
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

    /// A thread has polled in vain. The second time it agrees to go on by `step`, or up to
    /// [`STEPS_MAX`] of them if nothing has happened for long; unless an earlier vote said less.
    pub(crate) fn poll(&mut self, thread: ThreadId, what: Polled, now: Duration, step: Duration) {
        if std::mem::replace(&mut self.polled_at, now) != now {
            self.polled.clear();
        }
        if self.polled.insert((thread, what)) {
            return;
        }
        if self.votes.is_empty() {
            self.votes_until = now + step * (1 << self.fruitless);
        }
        if !self.votes.contains(&thread) {
            self.votes.push(thread);
        }
    }

    /// A thread has something to do after all.
    pub(crate) fn withdraw(&mut self, thread: ThreadId) {
        self.votes.retain(|&voter| voter != thread);
    }

    /// The votes have been followed, and nothing has happened.
    pub(crate) fn pass(&mut self) {
        let fruitless = self.fruitless + 1;
        self.stir();
        self.fruitless = fruitless.min(STEPS_MAX.ilog2());
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
        self.fruitless = 0;
    }

    /// Something has happened that concerns nobody who sleeps.
    pub(crate) fn note(&mut self) {
        self.fruitless = 0;
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

/// Most steps that one fruitless poll is good for.
const STEPS_MAX: u32 = 16;

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
    fn the_second_poll_in_vain_goes_on_a_little() {
        let me = thread::current().id();
        let end = |side| Polled::End(EndKey { conn: 1, side });
        let mut gate = Gate::new(2);
        let sleeper = gate.enter(thread::spawn(|| ()).thread().id(), None);
        gate.settle(sleeper);
        for what in [end(0), end(1), Polled::Other] {
            gate.poll(me, what, us(0), us(1));
            assert!(!gate.is_closed(), "it looks at something else");
        }
        gate.poll(me, end(1), us(0), us(1));
        assert!(gate.is_closed());
        gate.poll(me, end(1), us(0), us(2));
        assert_eq!(gate.horizon(), Some(us(1)), "the first vote says how far");
        gate.withdraw(me);
        assert!(!gate.is_closed());

        for (now, far) in [(10, 1), (20, 2), (30, 4), (40, 8), (50, 16), (90, 16)] {
            gate.poll(me, end(1), us(now), us(1));
            gate.settle(sleeper);
            assert!(!gate.is_closed(), "time has gone on");
            gate.poll(me, end(1), us(now), us(1));
            assert_eq!(gate.horizon(), Some(us(now + far)));
            gate.pass();
        }
        gate.note();
        gate.poll(me, end(1), us(90), us(1));
        assert_eq!(gate.horizon(), Some(us(91)), "something happened");
    }

    #[test]
    fn who_votes_and_then_waits_counts_once() {
        let me = thread::current().id();
        let mut gate = Gate::new(2);
        gate.poll(me, Polled::Other, us(0), us(1));
        gate.poll(me, Polled::Other, us(0), us(1));
        let wait = gate.enter(me, None);
        gate.settle(wait);
        assert!(!gate.is_closed());
    }
}
