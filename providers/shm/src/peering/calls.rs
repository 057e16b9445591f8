//! Calls between offers that mirror each other, as they are made and answered.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proto::setup::{MESSAGE_MAX, Message};
use sys::net::{Conn, Received};
use sys::sync::Ordering;
use via::soft::{Agent, Established};
use via::{Error, NetAddress};

use super::{Caller, Offer, Offers, Place, call_counts, compare, pair};
use crate::agent::ShmDuties;
use crate::connect::{BUSY_MAX, accept, address_from_wire, answer, dial, from_wire, say, to_wire};
use crate::link::ShmLink;
use crate::{export, name};

impl Offers {
    /// Calls the mirror image of `offer`, or has it wait for one.
    pub(super) fn seek(
        &self,
        agent: &Agent<ShmDuties>,
        offer: &Arc<Offer>,
        patience: Duration,
    ) -> Result<(), Error> {
        if offer.ask.local == offer.ask.remote {
            return self.seek_own_image(agent, offer);
        }
        let waiting = self.wait(agent, offer);
        match self.call(agent, offer, patience) {
            // Whoever comes now calls.
            Err(Error::NoMatch) => {
                self.let_come(agent, offer);
                waiting
            }
            called => called,
        }
    }

    /// The agent, too, which would find out in no other way that the name is to be had, has the patience of whoever makes an offer.
    fn seek_own_image(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>) -> Result<(), Error> {
        let end = Instant::now() + BUSY_MAX;
        loop {
            if self.join(agent, offer) || self.wait(agent, offer).is_ok() {
                return Ok(());
            }
            match self.call(agent, offer, Duration::ZERO) {
                // Who has the name has not begun to listen, or has just gone.
                Err(Error::NoMatch) if Instant::now() < end => thread::yield_now(),
                Err(Error::NoMatch) => return Err(Error::Resource),
                called => return called,
            }
        }
    }

    /// Connects it with the oldest offer of this NIC that is its mirror image, and open; `false` if there is none.
    fn join(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>) -> bool {
        let waiting = {
            let table = self.table();
            let point = table.points.get(&pair(&offer.ask));
            let claimed = point.and_then(|point| point.waiting.iter().find(|it| it.claim()));
            claimed.cloned()
        };
        let Some(waiting) = waiting else {
            return false;
        };
        let (ours, theirs) = (&waiting.ask.attributes, &offer.ask.attributes);
        let linked = compare(ours, theirs).and_then(|()| {
            let (link, export) = export::export(ours)?;
            let other = export::import(&export.blob, export.fds)?;
            let remote = *theirs;
            Ok((Established { link, remote }, other))
        });
        let (one, other) = match linked {
            Ok((one, other)) => (Ok(one), Ok(other)),
            Err(error) => (Err(error), Err(error)),
        };
        // Cancelled meanwhile, it is no mirror image any more.
        let is_joined = waiting.settle(one);
        if is_joined {
            self.withdraw(agent, &waiting);
            self.settle(agent, offer, other);
        }
        is_joined
    }

    /// Its own call has come to nothing: who has called has waited for that.
    fn let_come(&self, agent: &Agent<ShmDuties>, offer: &Offer) {
        if call_counts(&offer.ask) {
            offer.free();
            self.match_up(agent, &pair(&offer.ask));
        }
    }

    /// Calls where a mirror image would wait.
    fn call(
        &self,
        agent: &Agent<ShmDuties>,
        offer: &Arc<Offer>,
        patience: Duration,
    ) -> Result<(), Error> {
        let (there, here) = (&offer.ask.remote, &offer.ask.local);
        let conn = dial(patience, |slot| name::offer(there, here, slot))?;
        say(&conn, &Message::PeerRequest(to_wire(&offer.ask)));
        let conn = Arc::new(conn);
        let place = Place::Call(Arc::clone(offer), Arc::clone(&conn));
        let id = self.watch(agent, place, &conn)?;
        if offer.is_settled() {
            // The agent, or who cancelled it, may have looked for its calls before this was one.
            self.unwatch(agent, id, &conn);
        }
        Ok(())
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
        let (Some(attributes), true) = (
            from_wire(&ask.attributes),
            theirs == (Some(pair.1), Some(pair.0)),
        ) else {
            return;
        };
        if let Some(point) = self.table().points.get_mut(pair) {
            if point.callers.len() == CALLERS_MAX {
                point.callers.pop_front();
            }
            point.callers.push_back(Caller {
                conn: Arc::clone(conn),
                attributes,
            });
        }
        self.match_up(agent, pair);
    }

    /// Answers the callers of a point, as long as there are offers for them.
    fn match_up(&self, agent: &Agent<ShmDuties>, pair: &(NetAddress, NetAddress)) {
        while let Some((offer, caller)) = self.next_match(agent, pair) {
            self.take_up(agent, &offer, caller);
        }
    }

    /// The oldest offer that is open, claimed, and the caller who has waited for longest.
    fn next_match(
        &self,
        agent: &Agent<ShmDuties>,
        pair: &(NetAddress, NetAddress),
    ) -> Option<(Arc<Offer>, Caller)> {
        let mut table = self.table();
        table.prune(agent, pair);
        let point = table.points.get_mut(pair)?;
        if point.callers.is_empty() {
            return None;
        }
        let offer = point.waiting.iter().find(|offer| offer.claim())?;
        Some((Arc::clone(offer), point.callers.pop_front()?))
    }

    fn take_up(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>, caller: Caller) {
        let ours = &offer.ask.attributes;
        let Caller {
            conn,
            attributes: remote,
        } = caller;
        // He may have hung up while he waited; one who has asked says no more.
        if !matches!(conn.recv(&mut [0; MESSAGE_MAX]), Ok(Received::Nothing)) {
            return offer.free();
        }
        let outcome = match compare(ours, &remote) {
            Err(error) => {
                say(&conn, &Message::Mismatch(error as u8));
                Err(error)
            }
            Ok(()) => accept(&conn, ours).map(|link| Established { link, remote }),
        };
        match outcome {
            // The caller gave up while we answered: the offer stands.
            Err(Error::Timeout) => offer.free(),
            outcome => self.settle(agent, offer, outcome),
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
                    self.seek_again(agent, offer);
                }
                return;
            }
            Err(error) => Err(error),
        };
        // Withdrawn meanwhile, it wants no outcome.
        if self.unwatch(agent, id, conn) {
            self.settle(agent, offer, outcome);
        }
    }

    /// Whoever was called has gone, or others came first: the offer stands.
    fn seek_again(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>) {
        if offer.is_settled() {
            return;
        }
        let sought = if offer.again.fetch_add(1, Ordering::Relaxed) < AGAIN_MAX {
            self.seek(agent, offer, Duration::ZERO)
        } else if offer.ask.local == offer.ask.remote {
            Err(Error::NotReachable)
        } else {
            self.let_come(agent, offer);
            Ok(())
        };
        if let Err(error) = sought {
            self.settle(agent, offer, Err(error));
        }
    }

    fn settle(
        &self,
        agent: &Agent<ShmDuties>,
        offer: &Arc<Offer>,
        outcome: Result<Established<ShmLink>, Error>,
    ) {
        if offer.settle(outcome) {
            self.withdraw(agent, offer);
        }
    }
}

/// Calls that are taken before the agent looks at anything else.
const CALLS_A_TIME: usize = 64;
/// How often an offer is sought again: who hangs up for ever is no peer. Each time somebody else has been connected, or has gone.
const AGAIN_MAX: u32 = 1000;
/// Callers of a point that may have said nothing yet.
const SILENT_MAX: usize = 64;
/// Callers of a point that may wait for an offer; who is hung up on calls again.
const CALLERS_MAX: usize = 64;
