//! What there is to choose from: the kinds of steps, and what an actor has.

use super::Chooser;
use crate::model::{Held, Model};
use crate::step::Step;

use What::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Send,
    Receive,
    Poll,
    Collect,
    Change,
    NewSet,
    Connect,
    Shut,
    Close,
    Duplicate,
    Over,
    Fork,
    Exec,
    Spawn,
    Exit,
    Kill,
    Pass,
    Set,
    Get,
    Ask,
    Urgent,
    Block,
}

impl Chooser {
    /// A connection to a listener that an idle actor has, and its acceptance.
    pub(super) fn connect(
        &mut self,
        model: &Model,
        actor: &str,
        idle: &[String],
    ) -> Option<Vec<Step>> {
        let mut listeners = Vec::new();
        for other in idle {
            for slot in model.slots(other, |held| matches!(held, Some(Held::Listener(_)))) {
                listeners.push((other.clone(), slot));
            }
        }
        if listeners.is_empty() || model.connections.len() >= CONNECTIONS {
            return None;
        }
        let (other, slot) = self.pick(&listeners);
        let Some(Held::Listener(label)) = model.held(&other, slot) else {
            return None;
        };
        let mine = self.free(model, actor)?;
        let theirs = model
            .slots(&other, |held| held.is_none())
            .into_iter()
            .find(|&free| other != actor || free != mine)?;
        Some(vec![
            Step::new(actor, &format!("connect {mine} {label}")),
            Step::new(&other, &format!("accept {theirs} {slot}")),
        ])
    }

    /// Whether nobody who waits has something that this actor has: who of two is woken is not determined.
    pub(super) fn is_alone(model: &Model, actor: &str, idle: &[String]) -> bool {
        let held = |actor: &str| model.actors.get(actor).into_iter().flatten().flatten();
        let mut busy = model.actors.keys().filter(|other| !idle.contains(other));
        busy.all(|other| held(other).all(|theirs| held(actor).all(|mine| mine != theirs)))
    }

    /// Something that may wait.
    pub(super) fn block(&mut self, model: &Model, actor: &str) -> Option<Vec<Step>> {
        let one = |words: String| Some(vec![Step::new(actor, &words)]);
        match self.random.u32(..5) {
            0 => {
                let set = self.set(model, actor)?;
                one(format!("epwait {set} -1"))
            }
            1 => {
                let slots = model.slots(actor, |held| matches!(held, Some(Held::End { .. })));
                let mut words = "poll -1".to_owned();
                for slot in slots {
                    words.push_str(&format!(" {slot}:2001"));
                }
                (words.len() > 8).then_some(())?;
                one(words)
            }
            2 => {
                let slots = model.slots(actor, |held| matches!(held, Some(Held::End { .. })));
                let mut words = "select -1".to_owned();
                for slot in slots {
                    words.push_str(&format!(" {slot}"));
                }
                (words.len() > 10).then_some(())?;
                one(words)
            }
            _ => {
                let (slot, ..) = self.end(model, actor)?;
                let count = self.pick(&[1, 10, 100, 3000]);
                let call = self.pick(&["recv", "read", "recvmsg", "splice"]);
                let flags = match call {
                    "read" | "splice" => "-",
                    _ => self.pick(&["-", "-", "w", "p"]),
                };
                one(format!("recv {slot} {count} {call} {flags}"))
            }
        }
    }

    pub(super) fn end(&mut self, model: &Model, actor: &str) -> Option<(usize, usize, usize)> {
        let slot = self.slot(model, actor, |held| matches!(held, Some(Held::End { .. })))?;
        match model.held(actor, slot)? {
            Held::End { connection, side } => Some((slot, *connection, *side)),
            _ => None,
        }
    }

    /// A set that no other process has: docs/limitations.md says that each keeps to itself what it waits for.
    pub(super) fn set(&mut self, model: &Model, actor: &str) -> Option<usize> {
        self.slot(model, actor, |held| {
            matches!(held, Some(Held::Set(_))) && !model.is_shared(actor, held)
        })
    }

    pub(super) fn slot(
        &mut self,
        model: &Model,
        actor: &str,
        is: impl Fn(Option<&Held>) -> bool,
    ) -> Option<usize> {
        let slots = model.slots(actor, is);
        (!slots.is_empty()).then(|| self.pick(&slots))
    }

    pub(super) fn free(&mut self, model: &Model, actor: &str) -> Option<usize> {
        model.slots(actor, |held| held.is_none()).first().copied()
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())].clone()
    }
}

/// What each session may have, and how often; the first few every session has.
pub(super) const ALL: [(What, u32); 22] = [
    (Send, 60),
    (Receive, 60),
    (Connect, 6),
    (Poll, 20),
    (Collect, 30),
    (Change, 14),
    (NewSet, 4),
    (Shut, 4),
    (Close, 6),
    (Duplicate, 5),
    (Over, 3),
    (Fork, 3),
    (Exec, 2),
    (Spawn, 2),
    (Exit, 2),
    (Kill, 2),
    (Pass, 4),
    (Set, 8),
    (Get, 8),
    (Ask, 8),
    (Urgent, 5),
    (Block, 10),
];
pub(super) const ALWAYS: usize = 3;
/// In a session.
const CONNECTIONS: usize = 6;
