//! Looking after ends that their owners do not look after.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use via::provider::ViId;
use via::soft::Service;

use crate::config::Time;
use crate::event::{EndKey, Event};
use crate::state::State;

/// Ends that nobody looks after and that have to be served, without any lock held.
#[derive(Default)]
pub(crate) struct Errands {
    queue: VecDeque<EndKey>,
    /// In free time: when to see whether there is one; oldest first.
    later: VecDeque<(Instant, EndKey)>,
    /// A thread is at it.
    pub(crate) running: bool,
}

/// What the engine is to be asked for.
pub(crate) struct Errand {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) vi: ViId,
    /// The agent was armed, and rung.
    pub(crate) rung: bool,
    pub(crate) waiting: usize,
}

impl State {
    /// A thread has stopped sleeping at `key`, perhaps for another reason than what waits there.
    pub(crate) fn awake(&mut self, key: EndKey) {
        let Some(end) = self.end(key) else {
            return;
        };
        end.bell.asleep = end.bell.asleep.saturating_sub(1);
        if end.bell.asleep == 0 && end.has_unseen() {
            self.tend_later(key);
        }
    }

    /// Has somebody see to it, some time later, if nobody has looked at `key` by then.
    pub(crate) fn tend_later(&mut self, key: EndKey) {
        let free = self.medium.config.time == Time::Free;
        let Some(end) = self.end(key).filter(|end| !end.bell.tended) else {
            return;
        };
        end.bell.tended = true;
        if free {
            let due = Instant::now() + TEND_AFTER_FREE;
            self.errands.later.push_back((due, key));
        } else {
            let due = self.medium.now + TEND_AFTER;
            self.medium.at(due, Event::Tend { of: key });
        }
    }

    pub(crate) fn tend(&mut self, key: EndKey) {
        if let Some(end) = self.end(key) {
            end.bell.tended = false;
            if end.bell.asleep == 0 && end.has_unseen() && end.owner.vi.is_some() {
                self.errands.add(key);
            }
        }
    }

    /// In free time: makes errands of what is due, and tells when more will be.
    pub(crate) fn tend_due(&mut self) -> Option<Instant> {
        while let Some(&(due, key)) = self.errands.later.front() {
            if due > Instant::now() {
                return Some(due);
            }
            self.errands.later.pop_front();
            self.tend(key);
        }
        None
    }

    /// The next errand, ready to be run without the lock.
    pub(crate) fn errand(&mut self) -> Option<(EndKey, Errand)> {
        while let Some(key) = self.errands.queue.pop_front() {
            let Some(conn) = self.conns.get(&key.conn) else {
                continue;
            };
            let end = &conn.ends[key.side];
            let Some((nic, vi)) = end.owner.vi else {
                continue;
            };
            let service = self.nics.get(&nic).and_then(|nic| nic.service.as_ref());
            if let Some(service) = service.and_then(Weak::upgrade) {
                let errand = Errand {
                    service,
                    vi,
                    rung: end.bell.agent,
                    waiting: end.inbox.len(),
                };
                return Some((key, errand));
            }
        }
        None
    }

    /// An errand has been run; another is due if it left something behind.
    pub(crate) fn errand_done(&mut self, key: EndKey, waiting: usize) {
        let unfinished = self.end(key).is_some_and(|end| {
            end.owner.vi.is_some() && end.is_ready() && end.inbox.len() < waiting
        });
        if unfinished {
            self.errands.add(key);
        }
    }
}

impl Errands {
    pub(crate) fn add(&mut self, key: EndKey) {
        if !self.queue.contains(&key) {
            self.queue.push_back(key);
        }
    }

    /// Whether virtual time must wait for some.
    pub(crate) fn are_due(&self) -> bool {
        self.running || !self.queue.is_empty()
    }

    /// Whether a thread should begin to run some.
    pub(crate) fn are_idle(&self) -> bool {
        !self.running && !self.queue.is_empty()
    }

    /// Whether there is something for an agent, now or later.
    pub(crate) fn are_planned(&self) -> bool {
        self.are_idle() || !self.later.is_empty()
    }
}

/// How long news may wait for an owner who polls before somebody sees whether he still does.
const TEND_AFTER: Duration = Duration::from_micros(20);
const TEND_AFTER_FREE: Duration = Duration::from_micros(200);
