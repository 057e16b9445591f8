//! What there is in a session at a time: which actor has what in which slot, and what is under way.

use std::collections::BTreeMap;

use crate::run::Done;
use crate::step::Step;

/// Slots that an actor uses, of those that it has.
pub const SLOTS: usize = 12;

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A connection's end: which, and 0 for the side that connected, 1 for the other.
    End {
        /// Of [`Model::connections`].
        connection: usize,
        /// 0 or 1.
        side: usize,
    },
    /// A listener, by its label, with connections that nobody has accepted yet.
    Listener(String),
    /// A set of epoll: which.
    Set(usize),
}

/// A connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Bytes that each side has sent.
    pub sent: [usize; 2],
    /// Bytes that each side has received.
    pub got: [usize; 2],
    /// A side has said that it sends no more, or has gone.
    pub ended: [bool; 2],
    /// A side has sent its urgent byte.
    pub urgent: [bool; 2],
}

impl Connection {
    /// Bytes that wait for a side.
    pub fn waiting(&self, side: usize) -> usize {
        let other = self.sent.get(1 - side).copied().unwrap_or(0);
        other.saturating_sub(self.got.get(side).copied().unwrap_or(0))
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The slots of each actor.
    pub actors: BTreeMap<String, Vec<Option<Held>>>,
    /// All connections that there have been.
    pub connections: Vec<Connection>,
    /// For each listener what has been connected and not accepted.
    pub queues: BTreeMap<String, Vec<usize>>,
    /// Sets of epoll that there have been.
    sets: usize,
    /// Descriptors under way to an actor.
    pub passed: BTreeMap<String, Vec<Option<Held>>>,
}

impl Model {
    /// With actors that have nothing.
    pub fn new(actors: &[&str]) -> Self {
        let actors = actors
            .iter()
            .map(|actor| ((*actor).to_owned(), vec![None; SLOTS]))
            .collect();
        Self {
            actors,
            ..Self::default()
        }
    }

    /// What a slot of an actor holds.
    pub fn held(&self, actor: &str, slot: usize) -> Option<&Held> {
        self.actors.get(actor)?.get(slot)?.as_ref()
    }

    /// Whether another actor has it, too.
    pub fn is_shared(&self, actor: &str, held: Option<&Held>) -> bool {
        let mut others = self.actors.iter().filter(|(name, _)| *name != actor);
        held.is_some() && others.any(|(_, slots)| slots.iter().any(|slot| slot.as_ref() == held))
    }

    /// Slots of an actor for which `is` holds.
    pub fn slots(&self, actor: &str, is: impl Fn(Option<&Held>) -> bool) -> Vec<usize> {
        let slots = self.actors.get(actor).map_or(&[][..], Vec::as_slice);
        let found = slots.iter().enumerate();
        found
            .filter(|(_, held)| is(held.as_ref()))
            .map(|(slot, _)| slot)
            .collect()
    }

    /// Takes in what a step came to.
    pub fn note(&mut self, done: &Done) {
        let step = &done.step;
        let actor = step.actor.as_str();
        let result = done.answer.split(' ').next().unwrap_or("").parse::<i64>();
        let amount = result
            .as_ref()
            .map_or(0, |&n| usize::try_from(n).unwrap_or(0));
        let succeeded = result.is_ok_and(|result| result >= 0);
        match step.verb() {
            "listen" if done.answer == "port" => {
                let label = format!("{actor}.{}", step.word(1));
                self.put(actor, step.word(1), Some(Held::Listener(label)));
            }
            "connect" if succeeded => {
                let connection = self.connections.len();
                self.connections.push(Connection::default());
                let queue = self.queues.entry(step.word(2).to_owned()).or_default();
                queue.push(connection);
                let side = 0;
                self.put(actor, step.word(1), Some(Held::End { connection, side }));
            }
            "accept" if succeeded => self.accepted(actor, step),
            "send" if !step.word(6).contains('o') => {
                if let Some((connection, side)) = self.end_of(actor, step.word(1)) {
                    self.count(connection, side, amount, |c| &mut c.sent);
                }
            }
            "send" => {
                if let Some((connection, side)) = self.end_of(actor, step.word(1))
                    && let Some(connection) = self.connections.get_mut(connection)
                    && let Some(urgent) = connection.urgent.get_mut(side)
                {
                    *urgent = true;
                }
            }
            "recv" if !step.word(4).contains(['p', 'o']) => {
                if let Some((connection, side)) = self.end_of(actor, step.word(1)) {
                    self.count(connection, side, amount, |c| &mut c.got);
                }
            }
            "shut" if succeeded && step.word(2) != "0" => {
                if let Some((connection, side)) = self.end_of(actor, step.word(1)) {
                    self.end(connection, side);
                }
            }
            "close" => self.put(actor, step.word(1), None),
            "dup" if succeeded => {
                let held = self.at(actor, step.word(1));
                self.put(actor, step.word(2), held);
            }
            "dup2" if succeeded => {
                let held = self.at(actor, step.word(1));
                self.put(actor, step.word(2), held);
            }
            "epcreate" if succeeded => {
                self.sets += 1;
                self.put(actor, step.word(1), Some(Held::Set(self.sets)));
            }
            "fork" | "spawn" if succeeded => {
                let slots = self.actors.get(actor).cloned().unwrap_or_default();
                self.actors.insert(step.word(1).to_owned(), slots);
            }
            "exit" | "_exit" | "kill" => self.gone(actor),
            "pass" if succeeded => {
                let held = self.at(actor, step.word(1));
                let queue = self.passed.entry(step.word(2).to_owned()).or_default();
                queue.push(held);
            }
            "take" if succeeded => {
                let queue = self.passed.entry(actor.to_owned()).or_default();
                if !queue.is_empty() {
                    let held = queue.remove(0);
                    self.put(actor, step.word(1), held);
                }
            }
            _ => {}
        }
    }

    fn accepted(&mut self, actor: &str, step: &Step) {
        let Some(Held::Listener(label)) = self.at(actor, step.word(2)) else {
            return;
        };
        let queue = self.queues.entry(label).or_default();
        if !queue.is_empty() {
            let (connection, side) = (queue.remove(0), 1);
            self.put(actor, step.word(1), Some(Held::End { connection, side }));
        }
    }

    fn at(&self, actor: &str, slot: &str) -> Option<Held> {
        self.held(actor, slot.parse().ok()?).cloned()
    }

    fn end_of(&self, actor: &str, slot: &str) -> Option<(usize, usize)> {
        match self.at(actor, slot)? {
            Held::End { connection, side } => Some((connection, side)),
            _ => None,
        }
    }

    fn put(&mut self, actor: &str, slot: &str, held: Option<Held>) {
        let place = self.actors.get_mut(actor).zip(slot.parse().ok());
        let before = place
            .and_then(|(slots, slot): (_, usize)| slots.get_mut(slot))
            .and_then(|place| std::mem::replace(place, held));
        if let Some(Held::End { connection, side }) = before {
            self.end_if_nobody_has(connection, side);
        }
    }

    fn gone(&mut self, actor: &str) {
        for held in self.actors.remove(actor).into_iter().flatten() {
            if let Some(Held::End { connection, side }) = held {
                self.end_if_nobody_has(connection, side);
            }
        }
    }

    fn end_if_nobody_has(&mut self, connection: usize, side: usize) {
        let end = Held::End { connection, side };
        let is = |held: &Option<Held>| held.as_ref() == Some(&end);
        let held = self.actors.values().flatten().any(is);
        if !held && !self.passed.values().flatten().any(is) {
            self.end(connection, side);
        }
    }

    fn end(&mut self, connection: usize, side: usize) {
        if let Some(connection) = self.connections.get_mut(connection)
            && let Some(ended) = connection.ended.get_mut(side)
        {
            *ended = true;
        }
    }

    fn count(
        &mut self,
        connection: usize,
        side: usize,
        amount: usize,
        which: impl Fn(&mut Connection) -> &mut [usize; 2],
    ) {
        if let Some(connection) = self.connections.get_mut(connection)
            && let Some(count) = which(connection).get_mut(side)
        {
            *count += amount;
        }
    }
}
