//! Peer-to-peer connection: two offers that mirror each other become one connection.
//!
//! Both wait at their own door, and the one with the higher address lets the other come: it knocks
//! there, and waits. The lower calls; if nobody is at the other door yet, it waits for the knock and
//! calls again. So whoever comes second is heard by the first, and two that come at once make one
//! connection, not two. A thread for each offer does this: whoever offers does not wait.
//!
//! Where both addresses are the same, who comes first waits, and the others call.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::quiet;
use sys::sync::{AtomicBool, Ordering};
use via::soft::{Agent, Ask, Established, Pending};
use via::{Error, ViAttributes};

use crate::address;
use crate::departures::Departures;
use crate::dial::Client;
use crate::door::{Caller, WaitingPlace};
use crate::driver::Config;
use crate::link::IwarpLink;

/// A connection request under way.
pub(crate) enum Request {
    /// To a waiter.
    Client(Box<Client>),
    /// To a peer.
    Offer(Offer),
}

impl Pending for Request {
    type Link = IwarpLink;

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<IwarpLink>, Error>> {
        match self {
            Self::Client(client) => client.wait(deadline),
            Self::Offer(offer) => offer.wait(deadline),
        }
    }

    fn cancel(&self) {
        match self {
            Self::Client(client) => client.cancel(),
            Self::Offer(offer) => offer.0.cancel(),
        }
    }
}

/// An offer of a connection.
pub(crate) struct Offer(Arc<Shared>);

/// What an offer and its thread share.
struct Shared {
    ask: Ask,
    config: Config,
    agent: Arc<Agent<Departures>>,
    over: AtomicBool,
    /// The call under way, for one who gives up.
    call: Mutex<Option<Arc<Client>>>,
    outcome: Mutex<Outcome>,
    settled: Condvar,
}

enum Outcome {
    Open,
    Settled(Result<Box<Established<IwarpLink>>, Error>),
    Taken,
}

impl Offer {
    pub(crate) fn new(
        ask: &Ask,
        config: &Config,
        agent: &Arc<Agent<Departures>>,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            ask: *ask,
            config: *config,
            agent: Arc::clone(agent),
            over: AtomicBool::new(false),
            call: Mutex::default(),
            outcome: Mutex::new(Outcome::Open),
            settled: Condvar::new(),
        });
        let mut place = None;
        if ask.local != ask.remote {
            place = Some(shared.wait_at_door()?);
        }
        let offer = Arc::clone(&shared);
        quiet::spawn("iwarp-offer", Some(STACK), move || offer.run(place))
            .map_err(|_| Error::Resource)?;
        Ok(Self(shared))
    }

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<IwarpLink>, Error>> {
        let mut outcome = self.0.outcome();
        loop {
            match std::mem::replace(&mut *outcome, Outcome::Taken) {
                Outcome::Settled(settled) => return Some(settled.map(|it| *it)),
                Outcome::Taken => return Some(Err(Error::InvalidState)),
                Outcome::Open => *outcome = Outcome::Open,
            }
            let left = deadline.map_or(LONG, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return None;
            }
            outcome = self
                .0
                .settled
                .wait_timeout(outcome, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Shared {
    fn wait_at_door(&self) -> Result<WaitingPlace, Error> {
        let Ask { local, remote, .. } = &self.ask;
        WaitingPlace::take(local, Some(*remote), &self.config)
    }

    fn run(&self, place: Option<WaitingPlace>) {
        let outcome = match place {
            None => self.meet_own_image(),
            Some(place) if self.is_higher() => self.knock().and_then(|()| self.let_come(&place)),
            Some(place) => self.come(&place),
        };
        let mut slot = self.outcome();
        if matches!(*slot, Outcome::Open) {
            *slot = Outcome::Settled(outcome.map(Box::new));
        }
        drop(slot);
        self.settled.notify_all();
    }

    fn is_higher(&self) -> bool {
        self.ask.local > self.ask.remote
    }

    fn meet_own_image(&self) -> Result<Established<IwarpLink>, Error> {
        let Ask { local, remote, .. } = &self.ask;
        let mut tries = 0;
        loop {
            let place = WaitingPlace::take_if_first(local, *remote, &self.config);
            if let Ok(Some(place)) = place {
                return self.let_come(&place);
            }
            match (self.call(), place) {
                // Another process has the port, and waits for others there.
                (Err(Error::NoMatch), Err(error)) if tries == TRIES_MAX => return Err(error),
                // Whoever was there has met another, or has gone.
                (Err(Error::NoMatch), place) => tries += u32::from(place.is_err()),
                (called, _) => return called,
            }
        }
    }

    /// The lower: calls, and again when the other has knocked.
    fn come(&self, place: &WaitingPlace) -> Result<Established<IwarpLink>, Error> {
        let mut knock: Option<Caller> = None;
        loop {
            let called = self.call();
            if let Some(mut knock) = knock.take() {
                match called {
                    Ok(_) | Err(Error::NoMatch) => knock.send_away(Error::NoMatch),
                    // The other does not knock again: he is for the next who offers the same here.
                    Err(_) => place.put_back(knock),
                }
            }
            match called {
                Err(Error::NoMatch) => knock = Some(self.receive(place)?),
                called => return called,
            }
        }
    }

    /// The higher: has the other call, if he is there.
    fn knock(&self) -> Result<(), Error> {
        match self.begin_call() {
            Ok(knock) => knock.knock(Some(Instant::now() + KNOCK)),
            // It is not missed, if the other comes later.
            Err(Error::NoMatch | Error::NotReachable) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The higher: takes the other's call.
    fn let_come(&self, place: &WaitingPlace) -> Result<Established<IwarpLink>, Error> {
        loop {
            let mut caller = self.receive(place)?;
            let Some(theirs) = caller.attributes() else {
                continue;
            };
            if let Err(error) = caller.check(&self.ask.attributes) {
                caller.send_away(error);
                return Err(error);
            }
            match caller.accept(&self.ask.attributes, &self.agent) {
                // That one has gone; another may come, or has been told that there is no room and waits for a knock.
                Err(Error::Timeout) if self.is_higher() => self.knock()?,
                Err(Error::Timeout) => {}
                Err(error) => return Err(error),
                Ok(link) => {
                    let remote = ViAttributes {
                        ptag: None,
                        ..theirs
                    };
                    return Ok(Established { link, remote });
                }
            }
        }
    }

    fn receive(&self, place: &WaitingPlace) -> Result<Caller, Error> {
        place.receive(None, || self.over.load(Ordering::Acquire))
    }

    fn call(&self) -> Result<Established<IwarpLink>, Error> {
        let call = self.begin_call()?;
        let answer = call.wait(None).unwrap_or(Err(Error::Timeout));
        // From here on the socket is the link's: giving up the call would shut it down.
        *lock(&self.call) = None;
        answer
    }

    fn begin_call(&self) -> Result<Arc<Client>, Error> {
        let call = Arc::new(Client::new(&self.ask, true, &self.config, &self.agent)?);
        *lock(&self.call) = Some(Arc::clone(&call));
        if self.over.load(Ordering::Acquire) {
            return Err(Error::InvalidState);
        }
        Ok(call)
    }

    fn cancel(&self) {
        self.over.store(true, Ordering::Release);
        let mut outcome = self.outcome();
        // A link that was made goes with it.
        if !matches!(*outcome, Outcome::Taken) {
            *outcome = Outcome::Settled(Err(Error::InvalidState));
        }
        drop(outcome);
        self.settled.notify_all();
        if let Some(call) = lock(&self.call).take() {
            call.cancel();
        }
        WaitingPlace::poke(address::socket_address(self.ask.local.host));
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        lock(&self.outcome)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const STACK: usize = 128 * 1024;
const LONG: Duration = Duration::from_secs(3600);
/// How often somebody is looked for at a port where another process listens.
const TRIES_MAX: u32 = 64;
/// How long a knock may take; one that is not heard is not missed, if the other comes later.
const KNOCK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
