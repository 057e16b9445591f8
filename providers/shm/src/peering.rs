//! Peer-to-peer connection: two offers that mirror each other become one connection.
//!
//! Whoever offers listens at a name made of both addresses, and calls at the mirrored name. Who
//! comes second finds the first. If both come at once, both calls get through; then the call from
//! the lower address counts, and the other waits for what comes of that.
//!
//! Where both addresses are the same there is one name only: who has it listens, and others call. Those of one NIC handle meet without it.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::net::{Conn, Listener};
use sys::poll::Interest;
use sys::sync::AtomicU32;
use via::soft::{Agent, Ask, Established, Member};
use via::{Error, NetAddress, ViAttributes};

use crate::agent::{OFFER, ShmDuties};
use crate::connect::BUSY_MAX;
use crate::link::ShmLink;
use crate::name;

mod calls;

/// The offers of one NIC handle that nobody has taken up yet.
#[derive(Default)]
pub(crate) struct Offers {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    points: HashMap<(NetAddress, NetAddress), Point>,
    /// What each member of the agent's poller is.
    members: HashMap<u32, Place>,
}

/// Offers with the same pair of addresses.
struct Point {
    listener: Listener,
    listener_token: u32,
    waiting: VecDeque<Arc<Offer>>,
    callers: VecDeque<Caller>,
}

/// Somebody who has called, and waits for an offer that is open.
struct Caller {
    conn: Arc<Conn>,
    attributes: ViAttributes,
}

#[derive(Clone)]
enum Place {
    /// The listener of a point.
    Listener((NetAddress, NetAddress)),
    /// Somebody called, and has not said what for.
    Caller((NetAddress, NetAddress), Arc<Conn>),
    /// Our own call for an offer.
    Call(Arc<Offer>, Arc<Conn>),
}

/// An offer of a connection.
pub(crate) struct Offer {
    ask: Ask,
    agent: std::sync::Weak<Agent<ShmDuties>>,
    state: Mutex<State>,
    /// How often it has been sought again.
    again: AtomicU32,
    changed: Condvar,
}

enum State {
    /// Whoever calls may have it.
    Open,
    /// Its own call counts, or a caller is being answered.
    Busy,
    Settled(Result<Box<Established<ShmLink>>, Error>),
    Over,
}

/// Makes an offer.
pub(crate) fn offer(agent: &Arc<Agent<ShmDuties>>, ask: &Ask) -> Result<Arc<Offer>, Error> {
    let offer = Offer::new(agent, ask);
    let sought = agent.duties().offers.seek(agent, &offer, BUSY_MAX);
    sought.inspect_err(|_| offer.cancel())?;
    Ok(offer)
}

impl Offer {
    fn new(agent: &Arc<Agent<ShmDuties>>, ask: &Ask) -> Arc<Self> {
        Arc::new(Self {
            ask: *ask,
            agent: Arc::downgrade(agent),
            // Before it calls, or else each side might settle on the other's call.
            state: Mutex::new(if call_counts(ask) {
                State::Busy
            } else {
                State::Open
            }),
            again: AtomicU32::new(0),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn wait(
        &self,
        deadline: Option<Instant>,
    ) -> Option<Result<Established<ShmLink>, Error>> {
        let mut state = self.state();
        loop {
            match std::mem::replace(&mut *state, State::Over) {
                State::Settled(outcome) => return Some(outcome.map(|established| *established)),
                State::Over => return Some(Err(Error::InvalidState)),
                open @ (State::Open | State::Busy) => *state = open,
            }
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return None;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    pub(crate) fn cancel(self: &Arc<Self>) {
        *self.state() = State::Over;
        self.changed.notify_all();
        if let Some(agent) = self.agent.upgrade() {
            agent.duties().offers.withdraw(&agent, self);
        }
    }

    /// Settles an offer that is open; `false` if it was not, and the connection goes.
    fn settle(&self, outcome: Result<Established<ShmLink>, Error>) -> bool {
        let mut state = self.state();
        let open = matches!(*state, State::Open | State::Busy);
        if open {
            *state = State::Settled(outcome.map(Box::new));
            self.changed.notify_all();
        }
        open
    }

    /// Takes it for a caller; `false` if he cannot have it, or not now.
    fn claim(&self) -> bool {
        let mut state = self.state();
        let open = matches!(*state, State::Open);
        if open {
            *state = State::Busy;
        }
        open
    }

    /// Lets callers have it.
    fn free(&self) {
        let mut state = self.state();
        if matches!(*state, State::Busy) {
            *state = State::Open;
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(*self.state(), State::Open | State::Busy)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offers {
    /// Something happened at member `id`.
    pub(crate) fn hear(&self, agent: &Agent<ShmDuties>, id: u32) {
        let place = self.table().members.get(&id).cloned();
        match place {
            Some(Place::Listener(pair)) => self.greet(agent, &pair),
            Some(Place::Caller(pair, conn)) => self.attend_caller(agent, id, &pair, &conn),
            Some(Place::Call(offer, conn)) => self.attend_call(agent, id, &offer, &conn),
            None => {}
        }
    }

    pub(crate) fn clear(&self) {
        *self.table() = Table::default();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `offer` where mirror images find it.
    fn wait(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>) -> Result<(), Error> {
        let pair = pair(&offer.ask);
        let is_own_image = pair.0 == pair.1;
        let mut table = self.table();
        if is_own_image || !table.points.contains_key(&pair) {
            let slots = if is_own_image { 1 } else { name::SLOTS };
            let listener = (0..slots)
                .find_map(|slot| Listener::bind(&name::offer(&pair.0, &pair.1, slot), 128).ok())
                .ok_or(Error::Resource)?;
            let token = agent.next_id();
            agent
                .set()
                .add(&listener, Member::Own(OFFER, token).token(), Interest::Read)
                .map_err(|_| Error::Resource)?;
            // The agent looks it up behind this lock.
            table.members.insert(token, Place::Listener(pair));
            let point = Point {
                listener,
                listener_token: token,
                waiting: VecDeque::new(),
                callers: VecDeque::new(),
            };
            table.points.insert(pair, point);
        }
        if let Some(point) = table.points.get_mut(&pair)
            && !point.waiting.iter().any(|other| Arc::ptr_eq(other, offer))
        {
            point.waiting.push_back(Arc::clone(offer));
        }
        // Settled or cancelled meanwhile, it has been withdrawn already.
        if offer.is_settled() {
            table.prune(agent, &pair);
        }
        Ok(())
    }

    fn watch(&self, agent: &Agent<ShmDuties>, place: Place, conn: &Conn) -> Result<u32, Error> {
        let token = agent.next_id();
        // Whoever finds it there finds it in the set, too.
        let mut table = self.table();
        agent
            .set()
            .add(conn, Member::Own(OFFER, token).token(), Interest::Read)
            .map_err(|_| Error::Resource)?;
        table.members.insert(token, place);
        Ok(token)
    }

    /// `false` if somebody else was first: whoever takes it from the members takes it out of the set.
    fn unwatch(&self, agent: &Agent<ShmDuties>, id: u32, conn: &Conn) -> bool {
        let is_ours = self.table().members.remove(&id).is_some();
        if is_ours {
            let removed = agent.set().remove(conn);
            debug_assert!(removed.is_ok(), "added before");
        }
        is_ours
    }

    /// Takes `offer` out, and its point with the last one.
    fn withdraw(&self, agent: &Agent<ShmDuties>, offer: &Arc<Offer>) {
        let pair = pair(&offer.ask);
        let mut table = self.table();
        let mut gone = Vec::new();
        table.members.retain(|_, place| match place {
            Place::Call(caller, conn) if Arc::ptr_eq(caller, offer) => {
                gone.push(Arc::clone(conn));
                false
            }
            _ => true,
        });
        if let Some(point) = table.points.get_mut(&pair) {
            point.waiting.retain(|other| !Arc::ptr_eq(other, offer));
        }
        table.prune(agent, &pair);
        drop(table);
        for conn in gone {
            // Its link, if it has one, lives on; the agent watches that as a VI's.
            let removed = agent.set().remove(&*conn);
            debug_assert!(removed.is_ok(), "added before");
        }
    }
}

impl Table {
    /// Takes the offers at a point out that are settled, and the point with the last one: its callers hear that nobody is there.
    fn prune(&mut self, agent: &Agent<ShmDuties>, pair: &(NetAddress, NetAddress)) {
        let Some(point) = self.points.get_mut(pair) else {
            return;
        };
        point.waiting.retain(|offer| !offer.is_settled());
        if point.waiting.is_empty()
            && let Some(point) = self.points.remove(pair)
        {
            self.members.remove(&point.listener_token);
            let removed = agent.set().remove(point.listener.as_fd());
            debug_assert!(removed.is_ok(), "added before");
        }
    }
}

fn compare(ours: &ViAttributes, theirs: &ViAttributes) -> Result<(), Error> {
    if ours.reliability != theirs.reliability {
        return Err(Error::InvalidReliabilityLevel);
    }
    if ours.max_transfer_size != theirs.max_transfer_size {
        return Err(Error::InvalidMtu);
    }
    if ours.qos != theirs.qos {
        return Err(Error::InvalidQos);
    }
    Ok(())
}

fn pair(ask: &Ask) -> (NetAddress, NetAddress) {
    (ask.local, ask.remote)
}

/// Of two calls made at once, whether ours is the one.
fn call_counts(ask: &Ask) -> bool {
    ask.local < ask.remote
}

#[cfg(test)]
mod tests;
