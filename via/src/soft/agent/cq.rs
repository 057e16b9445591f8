//! Sleeping on a completion queue: on the sockets of all its VIs at once.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::poll::{Interest, Poller};
use sys::sync::{AtomicU32, Ordering};

use super::{Agent, Duties, Member};
use crate::provider::ViId;
use crate::soft::device::CqWaiter;

/// The sockets of a completion queue's VIs.
///
/// The set is a member of the agent's set, so that the agent serves them, except while an
/// application thread sleeps on the queue: then only that is woken.
pub struct CqBell<D: Duties> {
    id: u32,
    set: Arc<Poller>,
    sleepers: AtomicU32,
    agent: Arc<Agent<D>>,
}

impl<D: Duties> CqBell<D> {
    /// A bell without VIs. Starts the agent's thread.
    ///
    /// # Errors
    /// No thread or descriptors can be had.
    pub fn new(agent: &Arc<Agent<D>>) -> io::Result<Self> {
        agent.start().map_err(io::Error::other)?;
        let set = Arc::new(Poller::new()?);
        let id = agent.next_id();
        agent.add_cq(id, &set)?;
        Ok(Self {
            id,
            set,
            sleepers: AtomicU32::new(0),
            agent: Arc::clone(agent),
        })
    }

    pub(super) fn set(&self) -> &Arc<Poller> {
        &self.set
    }

    fn leave_to_agent(&self, interest: Interest) {
        let token = Member::Cq(self.id).token();
        let modified = self.agent.set.modify(&self.set, token, interest);
        debug_assert!(modified.is_ok(), "a member since it was made");
    }
}

impl<D: Duties> CqWaiter for CqBell<D> {
    fn sleep(&self, deadline: Option<Instant>, rung: &mut Vec<ViId>) {
        if self.sleepers.fetch_add(1, Ordering::AcqRel) == 0 {
            self.leave_to_agent(Interest::Hangup);
        }
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let vis = self::rung(&self.set, timeout);
        if self.sleepers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.leave_to_agent(Interest::Read);
        }
        if let Some(service) = self.agent.service() {
            for &vi in &vis {
                self.agent.hear(vi, &*service);
            }
        }
        rung.extend(vis);
    }

    fn wake(&self) {
        self.set.wake();
    }
}

impl<D: Duties> Drop for CqBell<D> {
    fn drop(&mut self) {
        self.agent.remove_cq(self.id, &self.set);
    }
}

/// The VIs of a completion queue's set that rang, waiting for the first until the timeout.
pub(super) fn rung(set: &Poller, timeout: Option<Duration>) -> Vec<ViId> {
    let mut events = Vec::new();
    if set.wait(&mut events, timeout).is_err() {
        return Vec::new();
    }
    let vis = events.iter().map(|event| ViId(event.token as u32));
    vis.collect()
}
