//! Asking for a connection.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proto::mpa::{Handshake, MpaError, Options, Outcome, Piece, Revision, Terms};
use proto::rdmap::{self, Engine};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, connect, send, shutdown, sockopt};
use sys::sync::{AtomicBool, Ordering};
use via::soft::{Agent, Ask, Established, Pending};
use via::{Error, ViAttributes};

use crate::departures::Departures;
use crate::driver::{Config, tcp_socket_of};
use crate::link::{IwarpLink, now};
use crate::stream::Stream;
use crate::wire::{Wire, wait_for};
use crate::{address, private};

/// A connection request under way.
pub(crate) struct Client {
    dial: Mutex<Dial>,
    /// The socket of the moment, for one who gives up.
    tcp: Mutex<Arc<OwnedFd>>,
    cancelled: AtomicBool,
    attributes: ViAttributes,
    agent: Arc<Agent<Departures>>,
}

struct Dial {
    remote: SocketAddrV4,
    config: Config,
    tcp: Arc<OwnedFd>,
    handshake: Handshake,
    is_connected: bool,
}

/// What an attempt has come to.
pub(crate) enum Answer {
    Yes {
        terms: Terms,
        said: Vec<u8>,
    },
    No(Vec<u8>),
    /// Somebody asks, with these words.
    Asked {
        said: Vec<u8>,
        /// Whether he answers RDMA Reads.
        takes_reads: bool,
    },
}

impl Client {
    /// To a waiter, or to a peer who offers the same.
    pub(crate) fn new(
        ask: &Ask,
        is_peer: bool,
        config: &Config,
        agent: &Arc<Agent<Departures>>,
    ) -> Result<Self, Error> {
        let remote = address::socket_address(ask.remote.host);
        let said = private::request(ask, is_peer);
        let handshake =
            Handshake::initiate(options(config), &said, now()).map_err(|_| Error::Resource)?;
        let tcp = Arc::new(begin(remote, config)?);
        Ok(Self {
            dial: Mutex::new(Dial {
                remote,
                config: *config,
                tcp: Arc::clone(&tcp),
                handshake,
                is_connected: false,
            }),
            tcp: Mutex::new(tcp),
            cancelled: AtomicBool::new(false),
            attributes: ask.attributes,
            agent: Arc::clone(agent),
        })
    }

    /// Gets the request to the other's door, if there is one, and does not wait for an answer. Whether that is done with, or it was in vain.
    pub(crate) fn knock(&self, deadline: Option<Instant>) -> bool {
        let mut dial = self.dial.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(None) = dial.go_on() {
            let said = dial.is_connected && dial.handshake.output().is_empty();
            if said || self.cancelled.load(Ordering::Acquire) {
                break;
            }
            if sys::time::expired(deadline) {
                return false;
            }
            wait_for(&mut [PollFd::new(&dial.tcp, PollFlags::OUT)], deadline);
        }
        true
    }

    fn tcp(&self) -> std::sync::MutexGuard<'_, Arc<OwnedFd>> {
        self.tcp.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn establish(&self, dial: &Dial, answer: Answer) -> Result<Established<IwarpLink>, Error> {
        let (terms, said) = match answer {
            Answer::Yes { terms, said } => (terms, said),
            Answer::No(said) | Answer::Asked { said, .. } => return Err(private::refused(&said)),
        };
        let told = private::accepted(&said);
        let begun = || {
            let stream = Stream::new(terms, told.is_some(), &self.attributes)?;
            // The other holders only ever shut it down.
            let tcp = dial.tcp.try_clone().map_err(|_| Error::Resource)?;
            let wire = Wire::new(tcp).map_err(|_| Error::Resource)?;
            Ok((stream, wire))
        };
        // The peer has accepted already, and is told that it comes to nothing (RFC 6581 section 9.2).
        let (stream, wire) =
            begun().inspect_err(|_| terminate(&dial.tcp, &terms, MpaError::Local))?;
        Ok(Established {
            link: IwarpLink::new(Arc::new(wire), &stream, &self.agent),
            // A stranger is as we are.
            remote: told.unwrap_or(ViAttributes {
                ptag: None,
                ..self.attributes
            }),
        })
    }
}

impl Pending for Client {
    type Link = IwarpLink;

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<IwarpLink>, Error>> {
        let mut dial = self.dial.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let step = dial.go_on();
            if self.cancelled.load(Ordering::Acquire) {
                return Some(Err(Error::InvalidState));
            }
            match step {
                Ok(None) => {}
                Ok(Some(answer)) => return Some(self.establish(&dial, answer)),
                Err(error) => match dial.handshake.fallback(now()) {
                    Some(handshake) => {
                        let tcp = match begin(dial.remote, &dial.config) {
                            Ok(tcp) => Arc::new(tcp),
                            Err(error) => return Some(Err(error)),
                        };
                        *self.tcp() = Arc::clone(&tcp);
                        dial.tcp = tcp;
                        dial.handshake = handshake;
                        dial.is_connected = false;
                        continue;
                    }
                    None => return Some(Err(error)),
                },
            }
            if sys::time::expired(deadline) {
                return None;
            }
            let awaited = if dial.is_connected && dial.handshake.output().is_empty() {
                PollFlags::IN
            } else {
                PollFlags::OUT
            };
            wait_for(&mut [PollFd::new(&dial.tcp, awaited)], deadline);
        }
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        // Wakes whoever waits for it; one that is not connected yet is closed with us.
        let _unconnected = shutdown(&**self.tcp(), Shutdown::Both);
    }
}

impl Dial {
    fn go_on(&mut self) -> Result<Option<Answer>, Error> {
        if !self.is_connected {
            let mut fds = [PollFd::new(&self.tcp, PollFlags::OUT)];
            wait_for(&mut fds, Some(Instant::now()));
            if fds.iter().all(|fd| fd.revents().is_empty()) {
                return Ok(None);
            }
            match sockopt::socket_error(&self.tcp) {
                Ok(Ok(())) => self.is_connected = true,
                Ok(Err(errno)) | Err(errno) => return Err(unreachable(errno)),
            }
        }
        step(&self.tcp, &mut self.handshake)
    }
}

/// Carries a handshake on as far as the socket allows; its result, if there is one.
///
/// # Errors
/// When it failed: [`Error::NoMatch`] if the peer has gone without an answer, as one does whose waiter has just left, [`Error::Reject`] if it
/// does not speak MPA, or not as we do.
pub(crate) fn step(tcp: &OwnedFd, handshake: &mut Handshake) -> Result<Option<Answer>, Error> {
    handshake.handle_timeout(now());
    loop {
        write_out(tcp, handshake);
        match handshake.poll_outcome() {
            Some(Outcome::Established {
                terms,
                private_data: said,
                ..
            }) => return Ok(Some(Answer::Yes { terms, said })),
            Some(Outcome::Rejected { private_data, .. }) => {
                return Ok(Some(Answer::No(private_data)));
            }
            Some(Outcome::Requested {
                private_data: said,
                enhanced,
            }) => {
                let takes_reads = enhanced.is_none_or(|enhanced| enhanced.ird > 0);
                return Ok(Some(Answer::Asked { said, takes_reads }));
            }
            Some(Outcome::Failed { error, tell }) => {
                if let Some(terms) = tell {
                    terminate(tcp, &terms, error);
                }
                return Err(if handshake.was_closed_unanswered() {
                    Error::NoMatch
                } else {
                    Error::Reject
                });
            }
            None => {}
        }
        let mut room = [0; 1024];
        let wanted = room.get_mut(..handshake.wants()).unwrap_or_default();
        if wanted.is_empty() {
            return Ok(None);
        }
        match rustix::io::read(tcp, wanted) {
            Ok(0) => handshake.handle_end(),
            Ok(n) => drop(handshake.handle_octets(room.get(..n).unwrap_or_default())),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(_) => handshake.handle_end(),
        }
    }
}

/// Writes what the handshake has to say; a peer that is gone shows when it is read from.
pub(crate) fn write_out(tcp: &OwnedFd, handshake: &mut Handshake) {
    while !handshake.output().is_empty() {
        match send(tcp, handshake.output(), SendFlags::NOSIGNAL) {
            Ok(n) => handshake.handle_written(n),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Tells a responder that its Reply cannot be lived with. It says nothing before it has heard from us, so there is nothing unread over
/// which the close might become a reset.
pub(crate) fn terminate(tcp: &OwnedFd, terms: &Terms, error: MpaError) {
    let engine = Engine::refusing(terms, rdmap::Config::default(), error, now());
    for piece in engine.pieces() {
        if let Piece::Own(octets) = piece {
            // A socket that has carried one frame has room; a peer that is gone does not miss it.
            let _gone = send(tcp, octets, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }
}

/// What our end of a startup wants. How long it waits is up to VIPL's timeouts.
pub(crate) fn options(config: &Config) -> Options {
    let defaults = Options::default();
    Options {
        crc: config.crc,
        markers: config.markers,
        revision: if config.enhanced {
            defaults.revision
        } else {
            Revision::One
        },
        time_limit: Duration::MAX,
        ..defaults
    }
}

/// A socket that is being connected.
fn begin(remote: SocketAddrV4, config: &Config) -> Result<OwnedFd, Error> {
    let begun = || -> io::Result<_> {
        let tcp = tcp_socket_of(config)?;
        sockopt::set_tcp_nodelay(&tcp, true)?;
        Ok(tcp)
    };
    let tcp = begun().map_err(|_| Error::Resource)?;
    match connect(&tcp, &remote) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(tcp),
        Err(errno) => Err(unreachable(errno)),
    }
}

/// Why nobody can be connected to.
fn unreachable(errno: Errno) -> Error {
    match errno {
        // Nobody waits at that port, or whoever did has just left.
        Errno::CONNREFUSED | Errno::CONNRESET | Errno::PIPE => Error::NoMatch,
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL => {
            Error::Resource
        }
        _ => Error::NotReachable,
    }
}
