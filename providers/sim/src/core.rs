//! The lock around the state, and how threads wait, poll and help out.
//!
//! No call of the engine's service is made with the state locked, or from within a call on a link:
//! the engine holds the VI's lock then. Errands that come up there are left to the next thread that
//! waits in the fabric. While a thread polls instead, or time runs free, nobody might: then an agent
//! thread is started, which runs them. Gated time stands still until they are done.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use sys::quiet;

use crate::config::{FabricConfig, Time};
use crate::event::EndKey;
use crate::gate::{Polled, WaitNo};
use crate::medium::Medium;
use crate::state::State;

pub(crate) struct Core {
    pub(crate) config: FabricConfig,
    epoch: Instant,
    fork_generation: u32,
    state: Mutex<State>,
    /// Something may have become possible.
    changed: Condvar,
    /// The agent has something to do, or is to end.
    called: Condvar,
}

/// The thread that runs errands when nobody else can.
#[derive(Default)]
pub(crate) struct Agent {
    thread: Option<JoinHandle<()>>,
    /// Counts the threads that were stopped.
    generation: u64,
}

impl Core {
    pub(crate) fn new(config: FabricConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            epoch: Instant::now(),
            fork_generation: sys::fork::generation(),
            state: Mutex::new(State::new(Medium::new(config))),
            changed: Condvar::new(),
            called: Condvar::new(),
        })
    }

    /// The time that deadlines are measured in.
    pub(crate) fn now(&self) -> Instant {
        match self.config.time {
            Time::Gated { .. } => self.epoch + self.lock().medium.now,
            Time::Free => Instant::now(),
        }
    }

    /// Whether this is a copy in a forked child. Its lock may be held by a thread that is not here,
    /// so what is dropped there must not touch it.
    pub(crate) fn is_inherited(&self) -> bool {
        sys::fork::generation() != self.fork_generation
    }

    /// Changes the state.
    pub(crate) fn act<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        if state.gate.is_closed() {
            // Threads that sleep because nothing was to come have to look again.
            state.gate.wake();
        }
        self.spread(&mut state);
        if self.is_free() {
            self.call_agent(&mut state);
        }
        result
    }

    /// Looks for something at `end` without waiting, maybe under the lock of its VI.
    pub(crate) fn poll<R>(
        self: &Arc<Self>,
        end: EndKey,
        mut look: impl FnMut(&mut State) -> Option<R>,
    ) -> Option<R> {
        let mut state = self.lock();
        let what = Polled::End(end);
        let found = look(&mut state).or_else(|| self.step(&mut state, what, &mut look));
        self.spread(&mut state);
        if found.is_none() {
            self.call_agent(&mut state);
            let others = state.gate.has_votes() || state.errands.are_due();
            drop(state);
            if others {
                // Time waits for other threads; so may this one.
                thread::yield_now();
            }
        }
        found
    }

    /// Waits until `look` finds something. No VI may be locked.
    pub(crate) fn wait<R>(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State) -> Option<R>,
    ) -> Option<R> {
        let mut state = self.run_errands(self.lock());
        if self.is_over(&state, deadline) {
            let what = Polled::Other;
            let found = look(&mut state).or_else(|| self.step(&mut state, what, &mut look));
            drop(self.run_errands(state));
            return found;
        }
        let until = deadline.map(|deadline| deadline.saturating_duration_since(self.epoch));
        let wait = state.gate.enter(thread::current().id(), until);
        let (mut state, found) = self.wait_until(state, wait, deadline, &mut look);
        state.gate.exit(wait);
        self.spread(&mut state);
        found
    }

    /// Ends the agent thread, if there is one, after what it is at.
    pub(crate) fn stop_agent(&self) {
        let mut state = self.lock();
        state.agent.generation += 1;
        let thread = state.agent.thread.take();
        drop(state);
        self.called.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // Its panic, if any, has been printed; there is nothing to add.
            drop(thread.join());
        }
    }

    fn wait_until<'s, R>(
        self: &'s Arc<Self>,
        mut state: MutexGuard<'s, State>,
        wait: WaitNo,
        deadline: Option<Instant>,
        look: &mut impl FnMut(&mut State) -> Option<R>,
    ) -> (MutexGuard<'s, State>, Option<R>) {
        loop {
            if let Some(found) = look(&mut state) {
                return (state, Some(found));
            }
            if self.is_over(&state, deadline) {
                return (state, None);
            }
            if state.errands.are_idle() {
                state = self.run_errands(state);
                continue;
            }
            if self.is_free() {
                let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                state = match left {
                    Some(left) => {
                        let woken = self.changed.wait_timeout(state, left);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => self.sleep(state),
                };
                continue;
            }
            state.gate.settle(wait);
            let advanced = state.gate.is_closed() && !state.errands.are_due() && state.advance();
            self.spread(&mut state);
            if !advanced {
                state = self.sleep(state);
            }
        }
    }

    /// A fruitless look: lets time go on a little, if nobody else has anything to do.
    fn step<R>(
        &self,
        state: &mut State,
        what: Polled,
        look: &mut impl FnMut(&mut State) -> Option<R>,
    ) -> Option<R> {
        if self.is_free() || state.errands.are_due() {
            return None;
        }
        let (me, now) = (thread::current().id(), state.medium.now);
        state.gate.poll(me, what, now, self.config.poll_step);
        while state.gate.is_closed()
            && state.gate.has_votes()
            && !state.errands.are_due()
            && state.advance()
        {
            let found = look(state);
            if found.is_some() {
                state.gate.withdraw(me);
                return found;
            }
        }
        None
    }

    /// Lets happen what happens at once, and wakes those whom it concerns.
    fn spread(&self, state: &mut State) {
        if self.is_free() {
            while state.fire_next() {}
        }
        if state.gate.take_dirty() {
            self.changed.notify_all();
        }
    }

    fn run_errands<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        if !state.errands.are_idle() {
            return state;
        }
        state.errands.running = true;
        while let Some((key, errand)) = state.errand() {
            drop(state);
            // What there was to move has been moved, whoever looks after the VI from now on.
            let _attention = if errand.rung {
                errand.service.serve(errand.vi)
            } else {
                errand.service.tend(errand.vi)
            };
            let waiting = errand.waiting;
            drop(errand);
            state = self.lock();
            state.errand_done(key, waiting);
        }
        state.errands.running = false;
        state.gate.stir();
        self.spread(&mut state);
        state
    }

    /// Sees to it that errands are run although this thread cannot.
    fn call_agent(self: &Arc<Self>, state: &mut State) {
        if !state.errands.are_planned() {
            return;
        }
        if state.agent.thread.is_none() {
            let core = Arc::clone(self);
            let generation = state.agent.generation;
            let spawned = quiet::spawn("sim-agent", None, move || core.run_agent(generation));
            // Without a thread they wait for the next one that can.
            state.agent.thread = spawned.ok();
        }
        self.called.notify_one();
    }

    fn run_agent(&self, generation: u64) {
        let mut state = self.lock();
        while state.agent.generation == generation {
            let later = state.tend_due();
            if state.errands.are_idle() {
                state = self.run_errands(state);
            } else if let Some(due) = later {
                let left = due.saturating_duration_since(Instant::now());
                let woken = self.called.wait_timeout(state, left);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                let woken = self.called.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn is_over(&self, state: &State, deadline: Option<Instant>) -> bool {
        let now = match self.config.time {
            Time::Gated { .. } => self.epoch + state.medium.now,
            Time::Free => Instant::now(),
        };
        deadline.is_some_and(|deadline| deadline <= now)
    }

    fn is_free(&self) -> bool {
        self.config.time == Time::Free
    }

    fn sleep<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
