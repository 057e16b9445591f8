//! Calls between offers that mirror each other, as they are made and answered.

use std::sync::Arc;
use std::time::Duration;

use proto::setup::{MESSAGE_MAX, Message};
use sys::net::{Conn, Received};
use sys::sync::Ordering;
use via::soft::{Agent, Established};
use via::{Error, NetAddress, ViAttributes};

use super::{Offer, Offers, Place, compare, mirrored};
use crate::agent::ShmDuties;
use crate::connect::{accept, address_from_wire, answer, dial, from_wire, say, to_wire};
use crate::name;

impl Offers {
    /// Calls where a mirror image would wait.
    pub(super) fn call(
        &self,
        agent: &Agent<ShmDuties>,
        offer: &Arc<Offer>,
        mirrored: &(NetAddress, NetAddress),
        patience: Duration,
    ) -> Result<(), Error> {
        let conn = dial(patience, |slot| name::offer(&mirrored.0, &mirrored.1, slot))?;
        say(&conn, &Message::PeerRequest(to_wire(&offer.ask)));
        let conn = Arc::new(conn);
        self.watch(
            agent,
            Place::Call(Arc::clone(offer), Arc::clone(&conn)),
            &conn,
        )
        .map(drop)
    }

    pub(super) fn greet(&self, agent: &Agent<ShmDuties>, pair: &(NetAddress, NetAddress)) {
        // Not all at once, if they are many: others want to be looked after too.
        for _ in 0..CALLS_A_TIME {
            let conn = {
                let table = self.table();
                let Some(point) = table.points.get(pair) else {
                    return;
                };
                point.listener.accept()
            };
            self.hang_up_on_silent(agent, pair);
            let Ok(Some(conn)) = conn else {
                return;
            };
            let conn = Arc::new(conn);
            let place = Place::Caller(*pair, Arc::clone(&conn));
            // Out of room for one more member: it is hung up.
            let Ok(id) = self.watch(agent, place, &conn) else {
                return;
            };
            // It has most likely said what it wants.
            self.attend_caller(agent, id, pair, &conn);
        }
    }

    /// Makes room for one more caller: the one that has been silent for longest goes.
    fn hang_up_on_silent(&self, agent: &Agent<ShmDuties>, pair: &(NetAddress, NetAddress)) {
        let mut table = self.table();
        let callers = table.members.iter().filter_map(|(&id, place)| match place {
            Place::Caller(to, conn) if to == pair => Some((id, Arc::clone(conn))),
            _ => None,
        });
        let callers: Vec<_> = callers.collect();
        if callers.len() >= SILENT_MAX
            && let Some((id, conn)) = callers.into_iter().min_by_key(|&(id, _)| id)
        {
            table.members.remove(&id);
            drop(table);
            let removed = agent.set().remove(&*conn);
            debug_assert!(removed.is_ok(), "added before");
        }
    }

    /// A caller speaks, or hangs up.
    pub(super) fn attend_caller(
        &self,
        agent: &Agent<ShmDuties>,
        id: u32,
        pair: &(NetAddress, NetAddress),
        conn: &Arc<Conn>,
    ) {
        let mut bytes = [0; MESSAGE_MAX];
        let len = match conn.recv(&mut bytes) {
            Ok(Received::Nothing) => return,
            Ok(Received::Packet { len, .. }) => len,
            _ => 0,
        };
        if !self.unwatch(agent, id, conn) {
            return;
        }
        let Ok(Message::PeerRequest(ask)) = Message::decode(&bytes[..len]) else {
            return;
        };
        let theirs = (
            address_from_wire(&ask.local),
            address_from_wire(&ask.remote),
        );
        let (Some(remote), true) = (
            from_wire(&ask.attributes),
            theirs == (Some(pair.1), Some(pair.0)),
        ) else {
            return;
        };
        let Some(offer) = self.oldest(pair) else {
            return say(conn, &Message::NoMatch);
        };
        // Both called at once: the lower address's call counts. It may be on its way still.
        if pair.0 < pair.1 && self.is_calling(&offer) {
            return;
        }
        self.take_up(agent, &offer, conn, &remote);
    }

    fn take_up(
        &self,
        agent: &Agent<ShmDuties>,
        offer: &Arc<Offer>,
        conn: &Arc<Conn>,
        remote: &ViAttributes,
    ) {
        let ours = &offer.ask.attributes;
        let outcome = match compare(ours, remote) {
            Err(error) => {
                say(conn, &Message::Mismatch(error as u8));
                Err(error)
            }
            Ok(()) => accept(Arc::clone(conn), ours).map(|link| Established {
                link,
                remote: *remote,
            }),
        };
        // The caller gave up while we answered: the offer stands.
        if !matches!(outcome, Err(Error::Timeout)) && offer.settle(outcome) {
            self.withdraw(agent, offer);
        }
    }

    /// Our call is answered, or hung up on.
    pub(super) fn attend_call(
        &self,
        agent: &Agent<ShmDuties>,
        id: u32,
        offer: &Arc<Offer>,
        conn: &Arc<Conn>,
    ) {
        let outcome = match answer(conn) {
            Ok(None) => return,
            Ok(Some(established)) => Ok(established),
            Err(Error::NoMatch) => {
                if self.unwatch(agent, id, conn) {
                    self.call_again(agent, offer);
                }
                return;
            }
            Err(error) => Err(error),
        };
        // Withdrawn meanwhile, it wants no outcome.
        if self.unwatch(agent, id, conn) && offer.settle(outcome) {
            self.withdraw(agent, offer);
        }
    }

    /// Nobody was there after all: the offer stands. It may have been somebody who left while his
    /// successor called us, and was hung up on because our call counts.
    fn call_again(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>) {
        let counts = offer.ask.local < offer.ask.remote;
        if counts
            && offer.is_open()
            && offer.calls.fetch_add(1, Ordering::Relaxed) < CALLS_AGAIN_MAX
        {
            // If nobody is there now either, whoever comes will call.
            let _nobody = self.call(agent, offer, &mirrored(&offer.ask), Duration::ZERO);
        }
    }

    fn is_calling(&self, offer: &Arc<Offer>) -> bool {
        self.table()
            .members
            .values()
            .any(|place| matches!(place, Place::Call(caller, _) if Arc::ptr_eq(caller, offer)))
    }
}

/// Calls that are taken before the agent looks at anything else.
const CALLS_A_TIME: usize = 64;
/// How often an offer's call is made again: who hangs up for ever is no peer.
const CALLS_AGAIN_MAX: u32 = 8;
/// Callers of a point that may have said nothing yet.
const SILENT_MAX: usize = 64;
