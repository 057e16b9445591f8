//! Peer-to-peer connection: two offers that mirror each other become one connection.
//!
//! Both wait at their own door, and the one with the higher address lets the other come: it knocks
//! there, and waits. The lower calls; if nobody is at the other door yet, it waits for the knock and
//! calls again. So whoever comes second is heard by the first, and two that come at once make one
//! connection, not two. What is lost on the way, or finds no way, is said again until there is a
//! connection. A thread for each offer does this: whoever offers does not wait.
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

/// What has become of the higher's knocks.
#[derive(Default)]
struct Knock {
    /// Nobody has answered TCP yet.
    under_way: Option<Arc<Client>>,
    /// When to go on, or to knock again: the last may have been lost. `None` before the first.
    next: Option<Instant>,
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
            Some(place) if self.is_higher() => self.let_come(&place, Some(Knock::default())),
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
                return self.let_come(&place, None);
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
                    Ok(_) | Err(Error::NoMatch | Error::NotReachable) => {
                        knock.send_away(Error::NoMatch);
                    }
                    // He is for the next who offers the same here, and need not knock again.
                    Err(_) => place.put_back(knock),
                }
            }
            let until = match called {
                Err(Error::NoMatch) => None,
                // Where no way leads his knock does not come either.
                Err(Error::NotReachable) => Some(Instant::now() + AGAIN),
                called => return called,
            };
            knock = match self.receive(place, until) {
                Err(Error::Timeout) => None,
                received => Some(received?),
            };
        }
    }

    /// The higher: has the other call, if he is there.
    fn knock(&self, knock: &mut Knock) -> Result<(), Error> {
        let call = match knock.under_way.take() {
            Some(call) => Ok(call),
            None => self.begin_call(),
        };
        let is_heard = match &call {
            Ok(call) => call.knock(Some(Instant::now() + MOMENT)),
            Err(Error::NoMatch | Error::NotReachable) => true,
            // Later there may be descriptors again.
            Err(Error::Resource) if knock.next.is_some() => true,
            Err(error) => return Err(*error),
        };
        let pause = if is_heard { AGAIN } else { MOMENT };
        knock.under_way = call.ok().filter(|_| !is_heard);
        knock.next = Some(Instant::now() + pause);
        Ok(())
    }

    /// Takes the other's call; the higher, who has a knock, asks him to.
    fn let_come(
        &self,
        place: &WaitingPlace,
        mut knock: Option<Knock>,
    ) -> Result<Established<IwarpLink>, Error> {
        loop {
            if let Some(knock) = &mut knock
                && knock.next.is_none_or(|next| next <= Instant::now())
            {
                self.knock(knock)?;
            }
            let until = knock.as_ref().and_then(|knock| knock.next);
            let mut caller = match self.receive(place, until) {
                Err(Error::Timeout) => continue,
                received => received?,
            };
            let Some(theirs) = caller.attributes() else {
                continue;
            };
            if let Err(error) = caller.check(&self.ask.attributes) {
                caller.send_away(error);
                if *caller.from.ip() == *address::socket_address(self.ask.remote.host).ip() {
                    return Err(error);
                }
                // Anybody can say that he is the peer.
                continue;
            }
            let accepted = Caller::prepare(&self.agent)
                .and_then(|bell| caller.accept(&self.ask.attributes, &self.agent, bell));
            match accepted {
                // That one has gone; another may come, or has been told that there is no room and waits for a knock.
                Err(Error::Timeout) => {
                    if let Some(knock) = &mut knock {
                        knock.next = Some(Instant::now());
                    }
                }
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

    fn receive(&self, place: &WaitingPlace, until: Option<Instant>) -> Result<Caller, Error> {
        place.receive(until, || self.over.load(Ordering::Acquire))
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
/// How long a knock is looked after, while nobody can come, and how long it then goes on by itself.
const MOMENT: Duration = Duration::from_millis(200);
/// After this time a knock is repeated, and a call that found no way.
const AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
