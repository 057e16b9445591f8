//! Each change of a direction, and each call that changes none, is a row of its table.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use super::back::{SERVED, back_at};
use super::{BEFORE, Flow, ON_RING};
use crate::states::{Row, receiver, sender, visits};

/// What an end does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Send,
    Serve,
    Bell,
    Leave,
    Shutdown,
    Receive,
    Sleep,
    GoBack,
    Close,
}

/// The last that was seen of an end's directions.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Option<Seen>>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    sender: sender::State,
    receiver: receiver::State,
    /// What the end is doing, and whether that has changed the one and the other yet.
    act: Option<Act>,
    moved: [bool; 2],
}

impl Flow {
    /// Does `act`, and looks what becomes of the two directions.
    pub(crate) fn watched<R>(&self, act: Act, does: impl FnOnce(&Self) -> R) -> R {
        self.watch.begin(self, act);
        let result = does(self);
        self.watch.end(self);
        result
    }

    /// Where what this end sends stands.
    pub(crate) fn sender(&self) -> sender::State {
        use sender::State;
        let tx = self.stream.tx();
        match (tx.to_ring(), tx.to_tcp()) {
            (_, Some(at)) if at & SERVED != 0 && tx.drained() == Ok(false) => State::Serving,
            (_, Some(_)) => State::After,
            (Some(_), None) if tx.back_wanted() => State::Recalled,
            (Some(_), None) => State::Ring,
            (None, None) if tx.back_wanted() => State::Called,
            (None, None) if tx.consented() => State::Invited,
            (None, None) => State::Before,
        }
    }

    /// Where what this end receives stands.
    pub(crate) fn receiver(&self) -> receiver::State {
        use receiver::State;
        let rx = self.stream.rx();
        match rx.phase() {
            BEFORE if rx.to_ring().is_some() => State::Following,
            BEFORE => State::Before,
            ON_RING if back_at(rx).is_some() => State::Returning,
            ON_RING => State::Ring,
            _ => State::After,
        }
    }
}

impl Watch {
    /// What has changed since the end's last act the other end has done.
    fn begin(&self, flow: &Flow, act: Act) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = (flow.sender(), flow.receiver());
        let before = last.get_or_insert(Seen {
            sender: sender::State::Before,
            receiver: receiver::State::Before,
            act: None,
            moved: [false; 2],
        });
        if before.sender != sender {
            let step = (before.sender, sender::Event::Peer, sender);
            visits::made("sender", sender::ROWS, step);
        }
        if before.receiver != receiver {
            let step = (before.receiver, receiver::Event::Peer, receiver);
            visits::made("receiver", receiver::ROWS, step);
        }
        *last = Some(Seen {
            sender,
            receiver,
            act: Some(act),
            moved: [false; 2],
        });
    }

    /// The end has changed something, perhaps in the middle of an act.
    pub(super) fn look(&self, flow: &Flow) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = last.as_mut() else {
            return;
        };
        let Some(act) = seen.act else {
            return;
        };
        let (sender, receiver) = (flow.sender(), flow.receiver());
        if seen.sender != sender {
            seen.moved[0] = true;
            made("sender", sender::ROWS, seen.sender, act.sends(), sender);
            seen.sender = sender;
        }
        if seen.receiver != receiver {
            seen.moved[1] = true;
            made(
                "receiver",
                receiver::ROWS,
                seen.receiver,
                act.receives(),
                receiver,
            );
            seen.receiver = receiver;
        }
    }

    fn end(&self, flow: &Flow) {
        self.look(flow);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = last.as_mut() else {
            return;
        };
        let Some(act) = seen.act.take() else {
            return;
        };
        if !seen.moved[0] && act.sends().is_some() {
            made(
                "sender",
                sender::ROWS,
                seen.sender,
                act.sends(),
                seen.sender,
            );
        }
        if !seen.moved[1] && act.receives().is_some() {
            let receiver = seen.receiver;
            made(
                "receiver",
                receiver::ROWS,
                receiver,
                act.receives(),
                receiver,
            );
        }
    }
}

fn made<S: Copy + PartialEq + Debug, E: Copy + PartialEq + Debug>(
    table: &'static str,
    rows: &[Row<S, E>],
    from: S,
    on: Option<E>,
    to: S,
) {
    let on = on.unwrap_or_else(|| panic!("{table}: from {from:?} to {to:?} by nothing of its own"));
    visits::made(table, rows, (from, on, to));
}

impl Act {
    /// What it is to the direction that the end sends.
    fn sends(self) -> Option<sender::Event> {
        Some(match self {
            Self::Send => sender::Event::Send,
            Self::Serve => sender::Event::Serve,
            Self::Bell => sender::Event::Bell,
            Self::Leave | Self::GoBack => sender::Event::GoBack,
            Self::Shutdown => sender::Event::Shutdown,
            Self::Close => sender::Event::Close,
            Self::Receive | Self::Sleep => return None,
        })
    }

    /// What it is to the direction that the end receives.
    fn receives(self) -> Option<receiver::Event> {
        Some(match self {
            Self::Receive => receiver::Event::Receive,
            Self::Sleep => receiver::Event::Sleep,
            Self::GoBack => receiver::Event::GoBack,
            Self::Close => receiver::Event::Close,
            Self::Send | Self::Serve | Self::Bell | Self::Leave | Self::Shutdown => return None,
        })
    }
}
