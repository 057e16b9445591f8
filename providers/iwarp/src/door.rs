//! Waiting for connection requests.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddrV4;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sys::fork::Own;
use sys::poll::Poller;
use sys::time::expired;
use via::soft::{Agent, Incoming};
use via::{Error, NetAddress, ViAttributes};

use crate::address;
use crate::departures::Departures;
use crate::driver::Config;
use crate::link::IwarpLink;

pub(crate) use caller::Caller;
use greeter::Greeter;
use rush::{LINGER, Rush};

mod caller;
mod greeter;
mod rush;

/// Waits for a request to `local`; until the deadline, or until `is_over` and [`look_again`].
///
/// All waiters of the process at one port share its listening socket, for as long as one of them
/// waits, and a moment longer where the last went with a caller: he may be about to wait for the next. One of them looks after it for all;
/// when that one has what it waits for, another goes on.
pub(crate) fn wait(
    local: &NetAddress,
    config: &Config,
    agent: &Arc<Agent<Departures>>,
    deadline: Option<Instant>,
    is_over: &dyn Fn() -> bool,
) -> Result<IwarpIncoming, Error> {
    let patience = Instant::now() + 2 * LINGER;
    let mut place = loop {
        match WaitingPlace::take(local, None, config) {
            Err(Error::Resource)
                if Instant::now() < patience && !expired(deadline) && !is_over() =>
            {
                // tidy: sleep because nothing tells when another process has closed a door that it kept open for a moment.
                thread::sleep(TRY_AGAIN);
            }
            place => break place?,
        }
    };
    place.agent = Some(Arc::clone(agent));
    let request = place.receive(deadline, is_over)?;
    Ok(IwarpIncoming {
        request: Some(request),
        agent: Arc::clone(agent),
    })
}

/// Closes the door at `at`, unless somebody waits there or may be about to; with `now` whether that may be or not.
pub(crate) fn close(at: SocketAddrV4, now: bool) {
    let mut doors = DOORS.get().lock();
    if let Some(door) = doors.get_mut(&at) {
        door.rush.go_on();
        if now {
            // Who waits here still is about to go, and takes the door along.
            door.rush.expect_nobody();
        }
        if door.waiting.is_empty() && !door.rush.is_open() {
            doors.remove(&at);
        }
    }
}

/// Has all who wait see whether it is over for them.
pub(crate) fn look_again() {
    let all = DOORS.get();
    for door in all.lock().values() {
        door.poller.wake();
    }
    all.changed.notify_all();
}

#[derive(Default)]
struct Doors {
    doors: Mutex<HashMap<SocketAddrV4, Door>>,
    changed: Condvar,
}

/// A child that was forked while somebody waited begins without waiters.
static DOORS: Own<Doors> = Own::new();

/// A port that some threads wait at.
struct Door {
    /// `None` while one of the waiters has it.
    greeter: Option<Greeter>,
    /// The greeter's, to wake whoever has it.
    poller: Arc<Poller>,
    waiting: VecDeque<Waiter>,
    rush: Rush,
    last: u64,
}

struct Waiter {
    number: u64,
    address: NetAddress,
    /// Waits for this peer, and for no client.
    peer: Option<NetAddress>,
    caller: Option<Caller>,
    has_had: bool,
}

/// A waiter's place at a door.
pub(crate) struct WaitingPlace {
    all: &'static Doors,
    at: SocketAddrV4,
    number: u64,
    /// Who closes a door that stays open for a moment.
    agent: Option<Arc<Agent<Departures>>>,
}

impl WaitingPlace {
    /// At the door of `address`; for clients, or for one peer.
    pub(crate) fn take(
        address: &NetAddress,
        peer: Option<NetAddress>,
        config: &Config,
    ) -> Result<Self, Error> {
        let all = DOORS.get();
        Self::take_of(all, &mut all.lock(), address, peer, config)
    }

    /// For one peer; `None` where somebody waits for the same one already.
    pub(crate) fn take_if_first(
        address: &NetAddress,
        peer: NetAddress,
        config: &Config,
    ) -> Result<Option<Self>, Error> {
        let all = DOORS.get();
        let mut doors = all.lock();
        let door = doors.get(&address::socket_address(address.host));
        let same = |waiter: &Waiter| waiter.address == *address && waiter.peer == Some(peer);
        if door.is_some_and(|door| door.waiting.iter().any(same)) {
            return Ok(None);
        }
        Self::take_of(all, &mut doors, address, Some(peer), config).map(Some)
    }

    fn take_of(
        all: &'static Doors,
        doors: &mut HashMap<SocketAddrV4, Door>,
        address: &NetAddress,
        peer: Option<NetAddress>,
        config: &Config,
    ) -> Result<Self, Error> {
        let at = address::socket_address(address.host);
        let door = match doors.entry(at) {
            Entry::Occupied(door) => door.into_mut(),
            Entry::Vacant(place) => {
                let greeter = Greeter::new(at, config).map_err(|_| Error::Resource)?;
                place.insert(Door {
                    poller: Arc::clone(&greeter.poller),
                    greeter: Some(greeter),
                    waiting: VecDeque::new(),
                    rush: Rush::default(),
                    last: 0,
                })
            }
        };
        door.last += 1;
        door.waiting.push_back(Waiter {
            number: door.last,
            address: *address,
            peer,
            caller: None,
            has_had: false,
        });
        Ok(Self {
            all,
            at,
            number: door.last,
            agent: None,
        })
    }

    /// Waits for a caller; until the deadline, or until `is_over` and [a poke](Self::poke).
    pub(crate) fn receive(
        &self,
        deadline: Option<Instant>,
        is_over: impl Fn() -> bool,
    ) -> Result<Caller, Error> {
        let mut doors = self.all.lock();
        loop {
            let door = doors.get_mut(&self.at).ok_or(Error::Resource)?;
            door.rush.go_on();
            let mine = door.waiting.iter_mut().find(|w| w.number == self.number);
            if let Some(caller) = mine.and_then(|waiter| waiter.take(&mut door.rush)) {
                return Ok(caller);
            }
            let impatient = door.rush.until();
            if expired(deadline) {
                return Err(Error::Timeout);
            }
            if is_over() {
                return Err(Error::InvalidState);
            }
            let Some(mut greeter) = door.greeter.take() else {
                let left = deadline.map_or(LONG, |deadline| {
                    deadline.saturating_duration_since(Instant::now())
                });
                doors = self
                    .all
                    .changed
                    .wait_timeout(doors, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            };
            drop(doors);
            let mut callers = greeter.callers();
            if callers.is_empty() {
                greeter.sleep([deadline, impatient].into_iter().flatten().min());
                callers = greeter.callers();
            }
            doors = self.all.lock();
            if let Some(door) = doors.get_mut(&self.at) {
                callers.into_iter().for_each(|caller| door.lead(caller));
                door.greeter = Some(greeter);
            }
            self.all.changed.notify_all();
        }
    }

    /// Leaves a caller for the next who waits for the same, when this place goes.
    pub(crate) fn put_back(&self, caller: Caller) {
        let mut doors = self.all.lock();
        let Some(door) = doors.get_mut(&self.at) else {
            return;
        };
        let mine = door.waiting.iter_mut().find(|w| w.number == self.number);
        match mine {
            Some(waiter) if waiter.caller.is_none() => waiter.caller = Some(caller),
            _ => {
                door.lead(caller);
                door.poller.wake();
                self.all.changed.notify_all();
            }
        }
    }

    /// Has everyone at this door look again.
    pub(crate) fn poke(at: SocketAddrV4) {
        let all = DOORS.get();
        if let Some(door) = all.lock().get(&at) {
            door.poller.wake();
        }
        all.changed.notify_all();
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut doors = self.all.lock();
        let Some(door) = doors.get_mut(&self.at) else {
            return;
        };
        let index = door.waiting.iter().position(|w| w.number == self.number);
        let waiter = index.and_then(|index| door.waiting.remove(index));
        let mut lingers = None;
        if let Some(waiter) = waiter {
            if waiter.has_had && waiter.peer.is_none() && self.agent.is_some() {
                lingers = Some(door.rush.handle_gone(waiter.address));
            }
            if let Some(caller) = waiter.caller {
                // He came when we had just turned to go. Who he is led to may be the one who has the greeter, and sleep.
                door.lead(caller);
                door.poller.wake();
            }
        }
        // Its time may have come while this one waited.
        door.rush.go_on();
        if door.waiting.is_empty() && !door.rush.is_open() {
            doors.remove(&self.at);
        }
        self.all.changed.notify_all();
        drop(doors);
        if let (Some(until), Some(agent)) = (lingers, &self.agent)
            && !agent.duties().close_door(agent, self.at, until)
        {
            close(self.at, true);
        }
    }
}

impl Waiter {
    fn take(&mut self, rush: &mut Rush) -> Option<Caller> {
        let mut caller = self.caller.take();
        if caller.is_none() && self.peer.is_none() {
            caller = rush.take(&self.address);
        }
        self.has_had |= caller.is_some();
        caller
    }
}

impl Door {
    /// Takes a caller to who has waited longest for him.
    fn lead(&mut self, caller: Caller) {
        let free = |waiter: &&mut Waiter| waiter.caller.is_none();
        let waiter = match &caller.ask {
            Some(ask) => self.waiting.iter_mut().filter(free).find(|waiter| {
                let expected = caller.is_peer.then_some(ask.local);
                answers_to(&waiter.address, &ask.remote) && waiter.peer == expected
            }),
            None => {
                // A stranger knows no discriminators: whoever waits without one, else whoever waits.
                let named = |waiter: &Waiter| !waiter.address.discriminator.as_bytes().is_empty();
                self.waiting
                    .iter_mut()
                    .filter(free)
                    .filter(|waiter| waiter.peer.is_none())
                    .min_by_key(|waiter| (named(waiter), waiter.number))
            }
        };
        match waiter {
            Some(waiter) => waiter.caller = Some(caller),
            None => {
                if let Some(mut caller) = self.rush.keep(caller, &self.waiting) {
                    caller.send_away(Error::NoMatch);
                }
            }
        }
    }
}

impl Doors {
    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddrV4, Door>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that has arrived.
pub(crate) struct IwarpIncoming {
    /// `None` once answered.
    request: Option<Caller>,
    agent: Arc<Agent<Departures>>,
}

impl Incoming for IwarpIncoming {
    type Link = IwarpLink;

    fn remote(&self) -> (NetAddress, ViAttributes) {
        let caller = self.request.as_ref();
        let ask = caller.and_then(|caller| caller.ask.as_ref());
        match (ask, caller) {
            (Some(ask), _) => (ask.local, ask.attributes),
            (None, Some(caller)) => (address::of_stranger(caller.from), ViAttributes::default()),
            (None, None) => (
                address::of_stranger(SocketAddrV4::new([0; 4].into(), 0)),
                ViAttributes::default(),
            ),
        }
    }

    fn check(&self, ours: &ViAttributes) -> Result<(), Error> {
        self.request
            .as_ref()
            .map_or(Ok(()), |caller| caller.check(ours))
    }

    fn accept(&mut self, attributes: &ViAttributes) -> Result<IwarpLink, Error> {
        if self.request.is_none() {
            return Err(Error::InvalidParameter);
        }
        let bell = Caller::prepare(&self.agent)?;
        let caller = self.request.take().ok_or(Error::InvalidParameter)?;
        caller.accept(attributes, &self.agent, bell)
    }

    fn is_unanswered(&self) -> bool {
        self.request.is_some()
    }

    fn reject(&mut self) {
        if let Some(mut caller) = self.request.take() {
            caller.send_away(Error::Reject);
        }
    }

    fn abandon(&mut self) {
        self.request = None;
    }
}

impl Drop for IwarpIncoming {
    fn drop(&mut self) {
        self.reject();
    }
}

/// Whether `ours` is what `asked` names; a waiter at no address in particular answers to all of its port's.
fn answers_to(ours: &NetAddress, asked: &NetAddress) -> bool {
    let (here, there) = (
        address::socket_address(ours.host),
        address::socket_address(asked.host),
    );
    let same_host =
        ours.host == asked.host || (here.ip().is_unspecified() && here.port() == there.port());
    same_host && ours.discriminator == asked.discriminator
}

const LONG: Duration = Duration::from_secs(3600);
const TRY_AGAIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use proto::mpa::Handshake;
    use via::soft::Ask;

    use crate::dial::options;
    use crate::link::now;
    use crate::private;

    use super::*;

    fn door() -> (SocketAddrV4, Config, NetAddress) {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let Ok(SocketAddr::V4(at)) = free else {
            panic!("no port");
        };
        (at, Config::default(), address::of_stranger(at))
    }

    fn call(address: NetAddress) -> TcpStream {
        let ask = Ask {
            local: address,
            remote: address,
            attributes: ViAttributes::default(),
        };
        let said = private::request(&ask, false);
        let handshake = Handshake::initiate(options(&Config::default()), &said, now());
        let at = address::socket_address(address.host);
        let mut tcp = TcpStream::connect(at).expect("the door is open");
        tcp.write_all(handshake.expect("a request").output())
            .expect("sent");
        tcp
    }

    /// It was led to who had turned to go while the other slept: nobody woke that one. Without the mend this test does not end.
    #[test]
    fn a_caller_of_one_who_goes_wakes_the_other() {
        let (at, config, address) = door();
        let goes = WaitingPlace::take(&address, None, &config).expect("a place");
        let stays = WaitingPlace::take(&address, None, &config).expect("a place");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| stays.receive(None, || false));
            let _tcp = call(address);
            // Whoever looks after the door leads him to who has waited longest.
            while DOORS.get().lock()[&at].waiting[0].caller.is_none() {
                thread::yield_now();
            }
            drop(goes);
            assert!(waiting.join().expect("no panic").is_ok());
        });
    }

    #[test]
    fn who_comes_with_another_is_for_the_next_who_waits() {
        let (_, config, address) = door();
        let first = WaitingPlace::take(&address, None, &config).expect("a place");
        let second = WaitingPlace::take(&elsewhere(address), None, &config).expect("a place");
        let _callers = [call(address), call(address)];
        let soon = Some(Instant::now() + Duration::from_secs(10));
        assert!(first.receive(soon, || false).is_ok());
        drop(first);
        // The door is open all the time; he is not for whoever waits at another address.
        let next = WaitingPlace::take(&address, None, &config).expect("a place");
        assert!(next.receive(soon, || false).is_ok());
        drop(second);
    }

    fn elsewhere(address: NetAddress) -> NetAddress {
        NetAddress::new(address.host, b"elsewhere").expect("short")
    }
}
