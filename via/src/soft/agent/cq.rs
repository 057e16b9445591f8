//! Sleeping on a completion queue: on the sockets of all its VIs at once.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sys::poll::{Interest, Poller};

use super::{Agent, Duties, Member, lock};
use crate::provider::ViId;
use crate::soft::device::CqWaiter;

/// The sockets of a completion queue's VIs.
///
/// The set is a member of the agent's set, so that the agent serves them, except while an
/// application thread sleeps on the queue: then only that is woken.
pub struct CqBell<D: Duties> {
    id: u32,
    bed: Arc<Bed>,
    agent: Arc<Agent<D>>,
}

/// The set, and who sleeps on it.
pub(super) struct Bed {
    set: Arc<Poller>,
    sleepers: Mutex<Sleepers>,
}

#[derive(Default)]
struct Sleepers {
    count: u32,
    /// The agent came upon a wake-up that may be for a thread that is about to lie down.
    missed: bool,
}

impl<D: Duties> CqBell<D> {
    /// A bell without VIs. Starts the agent's thread.
    ///
    /// # Errors
    /// No thread or descriptors can be had.
    pub fn new(agent: &Arc<Agent<D>>) -> io::Result<Self> {
        agent.start().map_err(io::Error::other)?;
        let bed = Arc::new(Bed {
            set: Arc::new(Poller::new()?),
            sleepers: Mutex::default(),
        });
        let id = agent.next_id();
        agent.add_cq(id, &bed)?;
        Ok(Self {
            id,
            bed,
            agent: Arc::clone(agent),
        })
    }

    pub(super) fn set(&self) -> &Arc<Poller> {
        &self.bed.set
    }

    /// Counts one more sleeper; whether it is to look again at once instead.
    fn lie_down(&self) -> bool {
        let mut sleepers = lock(&self.bed.sleepers);
        sleepers.count += 1;
        if sleepers.count == 1 {
            self.leave_to_agent(Interest::Hangup);
        }
        std::mem::take(&mut sleepers.missed)
    }

    fn get_up(&self) {
        let mut sleepers = lock(&self.bed.sleepers);
        sleepers.count -= 1;
        if sleepers.count == 0 {
            self.leave_to_agent(Interest::Read);
        }
    }

    /// Called with the sleepers locked: whoever lies down as another gets up is not left to the agent.
    fn leave_to_agent(&self, interest: Interest) {
        let token = Member::Cq(self.id).token();
        let modified = self.agent.set.modify(&self.bed.set, token, interest);
        debug_assert!(modified.is_ok(), "a member since it was made");
    }
}

impl<D: Duties> CqWaiter for CqBell<D> {
    fn sleep(&self, deadline: Option<Instant>, rung: &mut Vec<ViId>) {
        let timeout = if self.lie_down() {
            Some(Duration::ZERO)
        } else {
            deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
        };
        let (vis, _) = self.bed.rung(timeout);
        self.get_up();
        if let Some(service) = self.agent.service() {
            for &vi in &vis {
                self.agent.hear(vi, &*service);
            }
        }
        rung.extend(vis);
    }

    fn wake(&self) {
        self.bed.set.wake();
    }
}

impl<D: Duties> Drop for CqBell<D> {
    fn drop(&mut self) {
        self.agent.remove_cq(self.id, self.set());
    }
}

impl Bed {
    pub(super) fn set(&self) -> &Arc<Poller> {
        &self.set
    }

    /// The VIs that rang, for the agent. A wake-up among them is not its own: it is passed on.
    pub(super) fn rung_for_agent(&self) -> Vec<ViId> {
        let (vis, was_woken) = self.rung(Some(Duration::ZERO));
        if was_woken {
            let mut sleepers = lock(&self.sleepers);
            if sleepers.count > 0 {
                self.set.wake();
            } else {
                sleepers.missed = true;
            }
        }
        vis
    }

    /// The VIs that rang, waiting for the first, or for a wake-up, until the timeout; whether one came.
    fn rung(&self, timeout: Option<Duration>) -> (Vec<ViId>, bool) {
        let mut events = Vec::new();
        let Ok(was_woken) = self.set.wait(&mut events, timeout) else {
            return (Vec::new(), false);
        };
        let vis = events.iter().map(|event| ViId(event.token as u32));
        (vis.collect(), was_woken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;
    use crate::soft::device::Service;

    /// Of an agent without VIs.
    #[derive(Default)]
    struct Idle;

    impl Duties for Idle {
        type Connection = ();

        const THREAD: &'static str = "idle-agent";

        fn join(&self, _: &Agent<Self>, _: ViId, (): &(), _: &Arc<Poller>) -> io::Result<()> {
            Ok(())
        }

        fn leave(&self, _: &Agent<Self>, _: ViId, (): &(), _: &Poller) {}

        fn hear(&self, _: ViId, (): &(), _: &dyn Service) {}

        fn rang(&self, _: &Agent<Self>, _: u16, _: u32, _: &dyn Service) {}
    }

    static OPEN: AtomicUsize = AtomicUsize::new(0);

    /// Without an engine its agent's thread leaves at the first wake-up: the tests do what it would.
    fn bell() -> CqBell<Idle> {
        let agent = Agent::new(&OPEN).expect("an agent");
        CqBell::new(&agent).expect("a bell")
    }

    #[test]
    fn a_wake_up_that_the_agent_takes_first_is_for_who_lies_down_next() {
        let bell = bell();
        bell.wake();
        assert!(bell.bed.rung_for_agent().is_empty());
        bell.sleep(None, &mut Vec::new());
    }

    #[test]
    fn a_wake_up_that_the_agent_takes_first_is_for_who_sleeps() {
        let bell = bell();
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| bell.sleep(None, &mut Vec::new()));
            while lock(&bell.bed.sleepers).count == 0 {
                thread::yield_now();
            }
            bell.wake();
            bell.bed.rung_for_agent();
            sleeper.join().expect("woken");
        });
    }
}
