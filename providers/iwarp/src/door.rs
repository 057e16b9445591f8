//! Waiting for connection requests.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proto::mpa::{Handshake, Options};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, bind, getpeername, listen, recv, sockopt};
use sys::poll::{Interest, Poller};
use sys::time::expired;
use via::soft::{Ask, Incoming};
use via::{Error, NetAddress, Reliability, ViAttributes};

use crate::address;
use crate::agent::AgentShared;
use crate::dial::{Answer, options, step, write_out};
use crate::driver::{Config, tcp_socket_of};
use crate::link::{IwarpLink, Stream, now};
use crate::private::{self, Asked};
use crate::wire::Wire;

/// Waits for a request to `local`.
///
/// All waiters of the process at one port share its listening socket, for as long as one of them
/// waits. One of them looks after it for all; when that one has what it waits for, another goes on.
pub(crate) fn wait(
    local: &NetAddress,
    config: &Config,
    agent: &Arc<AgentShared>,
    deadline: Option<Instant>,
) -> Result<IwarpIncoming, Error> {
    let place = WaitingPlace::take(local, None, config)?;
    let request = place.receive(deadline, || false)?;
    Ok(IwarpIncoming {
        request: Some(request),
        agent: Arc::clone(agent),
    })
}

/// Somebody who asks.
pub(crate) struct Caller {
    tcp: OwnedFd,
    handshake: Handshake,
    /// `None` of a stranger, who tells no attributes.
    ask: Option<Ask>,
    is_peer: bool,
    from: SocketAddrV4,
}

struct Doors {
    doors: Mutex<HashMap<SocketAddrV4, Door>>,
    changed: Condvar,
}

static DOORS: LazyLock<Doors> = LazyLock::new(|| Doors {
    doors: Mutex::default(),
    changed: Condvar::new(),
});

/// A port that some threads wait at.
struct Door {
    /// `None` while one of the waiters has it.
    greeter: Option<Greeter>,
    /// The greeter's, to wake whoever has it.
    poller: Arc<Poller>,
    waiting: VecDeque<Waiter>,
    last: u64,
}

struct Waiter {
    number: u64,
    address: NetAddress,
    /// Waits for this peer, and for no client.
    peer: Option<NetAddress>,
    caller: Option<Caller>,
}

/// The listening socket, and who has come but not yet said what it wants.
struct Greeter {
    config: Config,
    listener: OwnedFd,
    poller: Arc<Poller>,
    silent: VecDeque<Silent>,
}

struct Silent {
    tcp: OwnedFd,
    handshake: Handshake,
    from: SocketAddrV4,
    until: Instant,
}

/// A waiter's place at a door.
pub(crate) struct WaitingPlace {
    at: SocketAddrV4,
    number: u64,
}

impl WaitingPlace {
    /// At the door of `address`; for clients, or for one peer.
    pub(crate) fn take(
        address: &NetAddress,
        peer: Option<NetAddress>,
        config: &Config,
    ) -> Result<Self, Error> {
        let at = address::socket_address(address.host);
        let mut doors = DOORS.lock();
        let door = match doors.entry(at) {
            Entry::Occupied(door) => door.into_mut(),
            Entry::Vacant(place) => {
                let greeter = Greeter::new(at, config).map_err(|_| Error::Resource)?;
                place.insert(Door {
                    poller: Arc::clone(&greeter.poller),
                    greeter: Some(greeter),
                    waiting: VecDeque::new(),
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
        });
        Ok(Self {
            at,
            number: door.last,
        })
    }

    /// Waits for a caller; until the deadline, or until `is_over` and [a poke](Self::poke).
    pub(crate) fn receive(
        &self,
        deadline: Option<Instant>,
        is_over: impl Fn() -> bool,
    ) -> Result<Caller, Error> {
        let mut doors = DOORS.lock();
        loop {
            let door = doors.get_mut(&self.at).ok_or(Error::Resource)?;
            let mine = door.waiting.iter_mut().find(|w| w.number == self.number);
            if let Some(caller) = mine.and_then(|waiter| waiter.caller.take()) {
                return Ok(caller);
            }
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
                doors = DOORS
                    .changed
                    .wait_timeout(doors, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            };
            drop(doors);
            let mut callers = greeter.callers();
            if callers.is_empty() {
                greeter.sleep(deadline);
                callers = greeter.callers();
            }
            doors = DOORS.lock();
            if let Some(door) = doors.get_mut(&self.at) {
                callers.into_iter().for_each(|caller| door.lead(caller));
                door.greeter = Some(greeter);
            }
            DOORS.changed.notify_all();
        }
    }

    /// Has everyone at this door look again.
    pub(crate) fn poke(at: SocketAddrV4) {
        if let Some(door) = DOORS.lock().get(&at) {
            door.poller.wake();
        }
        DOORS.changed.notify_all();
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut doors = DOORS.lock();
        let Some(door) = doors.get_mut(&self.at) else {
            return;
        };
        let index = door.waiting.iter().position(|w| w.number == self.number);
        if let Some(caller) = index
            .and_then(|index| door.waiting.remove(index))
            .and_then(|waiter| waiter.caller)
        {
            // He came when we had just turned to go. Who he is led to may be the one who has the greeter, and sleep.
            door.lead(caller);
            door.poller.wake();
        }
        if door.waiting.is_empty() {
            doors.remove(&self.at);
        }
        DOORS.changed.notify_all();
    }
}

impl Door {
    /// Takes a caller to who has waited longest for him.
    fn lead(&mut self, mut caller: Caller) {
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
            None => caller.send_away(Error::NoMatch),
        }
    }
}

impl Caller {
    /// His VI; `None` of a stranger's.
    pub(crate) fn attributes(&self) -> Option<ViAttributes> {
        self.ask.as_ref().map(|ask| ask.attributes)
    }

    pub(crate) fn check(&self, ours: &ViAttributes) -> Result<(), Error> {
        let Some(ask) = &self.ask else {
            // A stranger takes whatever we have, if it is what iWARP is.
            return match ours.reliability {
                Reliability::Unreliable => Err(Error::InvalidReliabilityLevel),
                _ => Ok(()),
            };
        };
        private::fit(ours, &ask.attributes)
    }

    /// Says yes. [`Error::Timeout`] when the caller has given up.
    pub(crate) fn accept(
        mut self,
        attributes: &ViAttributes,
        agent: &Arc<AgentShared>,
    ) -> Result<IwarpLink, Error> {
        if has_left(&self.tcp) {
            return Err(Error::Timeout);
        }
        let is_ours = self.ask.is_some();
        let said = if is_ours {
            private::accept(attributes)
        } else {
            Vec::new()
        };
        let accepted = self.handshake.accept(&said);
        accepted.map_err(|_| Error::InvalidParameter)?;
        let answer = step(&self.tcp, &mut self.handshake);
        let written = self.handshake.output().is_empty();
        let Ok(Some(Answer::Yes { terms, .. })) = answer else {
            return Err(Error::Timeout);
        };
        if !written {
            return Err(Error::Timeout);
        }
        let stream = Stream::new(terms, is_ours, attributes);
        let wire = Wire::new(self.tcp).map_err(|_| Error::Resource)?;
        Ok(IwarpLink::new(Arc::new(wire), &stream, agent))
    }

    pub(crate) fn send_away(&mut self, why: Error) {
        let said = if self.ask.is_some() {
            private::refusal(why)
        } else {
            Vec::new()
        };
        // It fits, and was not answered before; a caller who is gone does not miss it.
        if self.handshake.reject(&said).is_ok() {
            write_out(&self.tcp, &mut self.handshake);
        }
    }
}

impl Greeter {
    fn new(at: SocketAddrV4, config: &Config) -> io::Result<Self> {
        let listener = tcp_socket_of(config)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        bind(&listener, &at)?;
        listen(&listener, BACKLOG)?;
        let poller = Arc::new(Poller::new()?);
        poller.add(&listener, LISTENER, Interest::Read)?;
        Ok(Self {
            config: *config,
            listener,
            poller,
            silent: VecDeque::new(),
        })
    }

    /// Who has come and said what it wants.
    fn callers(&mut self) -> Vec<Caller> {
        self.let_in();
        let mut callers = Vec::new();
        let mut still_silent = VecDeque::new();
        for mut silent in std::mem::take(&mut self.silent) {
            match step(&silent.tcp, &mut silent.handshake) {
                Ok(None) if Instant::now() < silent.until => still_silent.push_back(silent),
                Ok(Some(Answer::Asked(said))) => {
                    let removed = self.poller.remove(&silent.tcp);
                    debug_assert!(removed.is_ok(), "added before");
                    let (ask, is_peer) = match private::asked(&said) {
                        Some(Asked::Client(ask)) => (Some(ask), false),
                        Some(Asked::Peer(ask)) => (Some(ask), true),
                        Some(Asked::Stranger) => (None, false),
                        None => continue,
                    };
                    callers.push(Caller {
                        tcp: silent.tcp,
                        handshake: silent.handshake,
                        ask,
                        is_peer,
                        from: silent.from,
                    });
                }
                _ => {
                    let removed = self.poller.remove(&silent.tcp);
                    debug_assert!(removed.is_ok(), "added before");
                }
            }
        }
        self.silent = still_silent;
        callers
    }

    fn let_in(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let tcp = match accept_with(&self.listener, flags) {
                Ok(tcp) => tcp,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                // Out of descriptors is no fault of the waiter's: who is refused comes again.
                Err(_) => return,
            };
            let from = getpeername(&tcp).ok().flatten();
            let from = from.and_then(|peer| SocketAddrV4::try_from(peer).ok());
            let Some(from) = from else {
                continue;
            };
            if self.poller.add(&tcp, SILENT, Interest::Read).is_err() {
                continue;
            }
            if self.silent.len() == SILENT_MAX {
                // Closed, he leaves the set by himself.
                self.silent.pop_front();
            }
            let limits = Options {
                time_limit: PATIENCE,
                ..options(&self.config)
            };
            self.silent.push_back(Silent {
                tcp,
                handshake: Handshake::respond(limits, now()),
                from,
                until: Instant::now() + PATIENCE,
            });
        }
    }

    fn sleep(&self, deadline: Option<Instant>) {
        let patience = self.silent.iter().map(|silent| silent.until).min();
        let until = [deadline, patience].into_iter().flatten().min();
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        // That fails only if there is no such set; and then there is nothing to wait for.
        let _woken = self.poller.wait(&mut Vec::new(), timeout);
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
    agent: Arc<AgentShared>,
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
        let caller = self.request.take().ok_or(Error::InvalidParameter)?;
        caller.accept(attributes, &self.agent)
    }

    fn reject(&mut self) {
        if let Some(mut caller) = self.request.take() {
            caller.send_away(Error::Reject);
        }
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

/// Whether whoever asked has given up.
fn has_left(tcp: &OwnedFd) -> bool {
    let peeked = recv(tcp, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    !matches!(peeked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
}

// Whoever is ready, all are looked at.
const LISTENER: u64 = 0;
const SILENT: u64 = 1;
const BACKLOG: i32 = 128;
/// Who connects and says nothing is sent away after this time, or when there are too many of them.
const PATIENCE: Duration = Duration::from_secs(1);
const SILENT_MAX: usize = 64;
const LONG: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// It was led to who had turned to go while the other slept: nobody woke that one. Without the mend this test does not end.
    #[test]
    fn a_caller_of_one_who_goes_wakes_the_other() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let Ok(SocketAddr::V4(at)) = free else {
            panic!("no port");
        };
        let (config, address) = (Config::default(), address::of_stranger(at));
        let goes = WaitingPlace::take(&address, None, &config).expect("a place");
        let stays = WaitingPlace::take(&address, None, &config).expect("a place");
        let ask = Ask {
            local: address,
            remote: address,
            attributes: ViAttributes::default(),
        };
        thread::scope(|scope| {
            let waiting = scope.spawn(|| stays.receive(None, || false));
            let said = private::request(&ask, false);
            let handshake = Handshake::initiate(options(&config), &said, now()).expect("a request");
            let mut tcp = TcpStream::connect(at).expect("the door is open");
            tcp.write_all(handshake.output()).expect("sent");
            // Whoever looks after the door leads him to who has waited longest.
            while DOORS.lock()[&at].waiting[0].caller.is_none() {
                thread::yield_now();
            }
            drop(goes);
            assert!(waiting.join().expect("no panic").is_ok());
        });
    }
}
