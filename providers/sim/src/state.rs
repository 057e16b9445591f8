//! Everything on a fabric, and what each event does to it. Guarded by one lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Weak;
use std::thread::ThreadId;

use via::Reliability;
use via::provider::ViId;
use via::soft::Service;

use crate::adapter::{CqNo, NicNo};
use crate::config::Time;
use crate::conn::{Conn, End, News};
use crate::core::Agent;
use crate::errands::Errands;
use crate::event::{EndKey, Event, HostNo};
use crate::gate::Gate;
use crate::medium::Medium;
use crate::meet::Meetings;

pub(crate) struct State {
    pub(crate) medium: Medium,
    pub(crate) gate: Gate,
    pub(crate) conns: BTreeMap<u64, Conn>,
    pub(crate) nics: BTreeMap<NicNo, Nic>,
    pub(crate) cqs: BTreeMap<CqNo, Sleepers>,
    pub(crate) meetings: Meetings,
    pub(crate) errands: Errands,
    pub(crate) agent: Agent,
    /// The threads that take part beyond the first ones.
    parts: BTreeSet<u64>,
    conns_made: u64,
    made: u64,
}

/// An open NIC: its engine, once that has started.
#[derive(Default)]
pub(crate) struct Nic {
    pub(crate) service: Option<Weak<dyn Service>>,
}

/// Who sleeps on a completion queue.
#[derive(Default)]
pub(crate) struct Sleepers {
    pub(crate) asleep: usize,
    pub(crate) rung: Vec<ViId>,
    /// Counts the wake-ups by local threads.
    wakes: u64,
    /// How many each thread knows of: one that is about to sleep must not miss any.
    known: HashMap<ThreadId, u64>,
}

impl State {
    pub(crate) fn new(medium: Medium) -> Self {
        let threads = match medium.config.time {
            Time::Gated { threads } => threads,
            Time::Free => 0,
        };
        Self {
            medium,
            gate: Gate::new(threads),
            conns: BTreeMap::new(),
            nics: BTreeMap::new(),
            cqs: BTreeMap::new(),
            meetings: Meetings::default(),
            errands: Errands::default(),
            agent: Agent::default(),
            parts: BTreeSet::new(),
            conns_made: 0,
            made: 0,
        }
    }

    /// One more thread takes part.
    pub(crate) fn join(&mut self) -> u64 {
        let no = self.number();
        self.parts.insert(no);
        self.gate.join();
        no
    }

    pub(crate) fn leave(&mut self, part: u64) {
        self.parts.remove(&part);
        self.gate.leave();
    }

    pub(crate) fn takes_part(&self, part: u64) -> bool {
        self.parts.contains(&part)
    }

    /// A number that nothing else on the fabric has.
    pub(crate) fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(crate) fn connect(&mut self, hosts: [HostNo; 2], level: Reliability) -> u64 {
        self.conns_made += 1;
        let no = self.conns_made;
        self.conns
            .insert(no, Conn::new(no, hosts, level, &self.medium));
        no
    }

    pub(crate) fn end(&mut self, key: EndKey) -> Option<&mut End> {
        self.conns
            .get_mut(&key.conn)
            .map(|conn| &mut conn.ends[key.side])
    }

    /// Lets `act` change the connection of `key`, and tells whom it concerns.
    pub(crate) fn on_conn(
        &mut self,
        key: EndKey,
        act: impl FnOnce(&mut Conn, &mut Medium) -> News,
    ) {
        let Some(conn) = self.conns.get_mut(&key.conn) else {
            return;
        };
        let news = act(conn, &mut self.medium);
        for side in (0..2).filter(|&side| news.0[side]) {
            self.ring(EndKey { side, ..key });
        }
    }

    pub(crate) fn drop_link(&mut self, key: EndKey) {
        self.on_conn(key, |conn, medium| {
            conn.drop_link(key.side, medium);
            conn.ends[key.side].bell.rung += 1;
            News::default()
        });
        self.gate.stir();
        if self.meetings.withdraw(key.conn)
            && let Some(conn) = self.conns.get_mut(&key.conn)
        {
            conn.drop_link(1 - key.side, &mut self.medium);
        }
        if self.conns.get(&key.conn).is_some_and(Conn::is_over) {
            self.conns.remove(&key.conn);
        }
    }

    /// Something happened at `key`: wakes who sleeps, or sees to it that somebody looks.
    pub(crate) fn ring(&mut self, key: EndKey) {
        let Some(conn) = self.conns.get_mut(&key.conn) else {
            return;
        };
        let end = &mut conn.ends[key.side];
        end.bell.news = true;
        if end.bell.caller {
            end.bell.rung += 1;
            self.gate.stir();
            if end.bell.asleep > 0 {
                return;
            }
        }
        let Some((_, vi)) = end.owner.vi else {
            // Whoever it will belong to is told then.
            return;
        };
        let sleepers = end.owner.cq.and_then(|cq| self.cqs.get_mut(&cq));
        match sleepers {
            Some(sleepers) if end.bell.agent && sleepers.asleep > 0 => {
                if !sleepers.rung.contains(&vi) {
                    sleepers.rung.push(vi);
                }
                self.gate.stir();
            }
            _ if end.bell.agent => self.errands.add(key),
            // Its owner polls, or did until lately.
            _ => self.tend_later(key),
        }
    }

    /// Goes on to whatever comes next: an event, or a time that somebody waits for. `false` when
    /// nothing ever will. Only while the gate is closed.
    pub(crate) fn advance(&mut self) -> bool {
        match (self.medium.next_due(), self.gate.horizon()) {
            (None, None) => false,
            (Some(due), horizon) if horizon.is_none_or(|horizon| due <= horizon) => {
                self.fire_next()
            }
            (_, horizon) => {
                self.medium.now = self.medium.now.max(horizon.unwrap_or_default());
                self.gate.pass();
                true
            }
        }
    }

    /// Lets the next event happen now, whenever it is due.
    pub(crate) fn fire_next(&mut self) -> bool {
        let Some(event) = self.medium.next() else {
            return false;
        };
        self.gate.note();
        match event {
            Event::Arrives { to, bytes, copy } => self.on_conn(to, |conn, medium| {
                conn.handle_packet(to.side, bytes, copy, medium)
            }),
            Event::Spent { of } => self.on_conn(of, |conn, _| conn.handle_spent(of.side)),
            Event::Timer { of } => {
                self.on_conn(of, |conn, medium| conn.handle_timer(of.side, medium));
            }
            Event::Ended { to, why } => {
                self.on_conn(to, |conn, _| conn.handle_end(to.side, why));
            }
            Event::Tend { of } => self.tend(of),
            Event::Request(no) => self.request_arrives(no),
            Event::Offer(no) => self.offer_arrives(no),
            Event::Answer(no, answer) => self.answer_arrives(no, answer),
        }
        true
    }
}

impl Sleepers {
    pub(crate) fn wake(&mut self) {
        self.wakes += 1;
    }

    /// Whether `thread` has been woken since it last asked.
    pub(crate) fn is_woken(&mut self, thread: ThreadId) -> bool {
        if self.known.len() >= KNOWN_MAX {
            // Who is forgotten is woken once too often.
            self.known.clear();
        }
        self.known.insert(thread, self.wakes).unwrap_or(0) < self.wakes
    }
}

const KNOWN_MAX: usize = 256;
