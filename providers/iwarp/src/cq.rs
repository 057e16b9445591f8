//! Sleeping on a completion queue: on the sockets of all its VIs at once.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::poll::{Interest, Poller};
use sys::sync::{AtomicU32, Ordering};
use via::provider::ViId;
use via::soft::CqWaiter;

use crate::agent::AgentShared;

/// The sockets of a completion queue's VIs.
///
/// The set is a member of the agent's set, so that the agent serves them, except while an
/// application thread sleeps on the queue: then only that is woken.
pub(crate) struct CqBell {
    pub(crate) poller: Poller,
    sleepers: AtomicU32,
}

impl CqBell {
    /// The VIs that rang, waiting for the first until the timeout.
    pub(crate) fn rung(&self, timeout: Option<Duration>) -> Vec<ViId> {
        let mut events = Vec::new();
        if self.poller.wait(&mut events, timeout).is_err() {
            return Vec::new();
        }
        let vis = events.iter().map(|event| ViId(event.token as u32));
        vis.collect()
    }
}

pub(crate) struct IwarpCqWaiter {
    id: u32,
    bell: Arc<CqBell>,
    agent: Arc<AgentShared>,
}

impl IwarpCqWaiter {
    pub(crate) fn new(agent: &Arc<AgentShared>) -> io::Result<Self> {
        let bell = Arc::new(CqBell {
            poller: Poller::new()?,
            sleepers: AtomicU32::new(0),
        });
        let id = agent.next_token();
        agent.add_cq(id, &bell)?;
        Ok(Self {
            id,
            bell,
            agent: Arc::clone(agent),
        })
    }

    pub(crate) fn bell(&self) -> &Arc<CqBell> {
        &self.bell
    }

    fn leave_to_agent(&self, interest: Interest) {
        self.agent.leave_cq(self.id, &self.bell, interest);
    }
}

impl CqWaiter for IwarpCqWaiter {
    fn sleep(&self, deadline: Option<Instant>, rung: &mut Vec<ViId>) {
        if self.bell.sleepers.fetch_add(1, Ordering::AcqRel) == 0 {
            self.leave_to_agent(Interest::Hangup);
        }
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let vis = self.bell.rung(timeout);
        if self.bell.sleepers.fetch_sub(1, Ordering::AcqRel) == 1 {
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
        self.bell.poller.wake();
    }
}

impl Drop for IwarpCqWaiter {
    fn drop(&mut self) {
        self.agent.remove_cq(self.id, &self.bell);
    }
}
