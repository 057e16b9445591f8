//! The listening socket, and those who come to it.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::mpa::{Handshake, Options};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, bind, getpeername, listen, sockopt};
use sys::fork::OwnFd;
use sys::poll::{Interest, Poller};
use via::soft::Ask;

use super::caller::Caller;
use crate::dial::{Answer, options, step};
use crate::driver::{Config, tcp_socket_of};
use crate::link::now;
use crate::private::{self, Asked};

/// The listening socket, and who has come but not yet said what it wants.
pub(super) struct Greeter {
    config: Config,
    listener: OwnFd,
    pub(super) poller: Arc<Poller>,
    silent: VecDeque<Silent>,
    /// The listening socket is not in the set until then.
    rests_until: Option<Instant>,
}

struct Silent {
    tcp: OwnedFd,
    handshake: Handshake,
    from: SocketAddrV4,
    until: Instant,
}

/// What somebody has said.
enum Heard {
    Nothing(Silent),
    Request(Caller),
    /// Or he has gone, or had his time.
    Nonsense,
}

impl Silent {
    fn listen(mut self) -> Heard {
        match step(&self.tcp, &mut self.handshake) {
            Ok(None) if Instant::now() < self.until => Heard::Nothing(self),
            Ok(Some(Answer::Asked { said, takes_reads })) => {
                let (ask, is_peer) = match private::asked(&said) {
                    Some(Asked::Client(ask)) => (Some(self.seen(ask)), false),
                    Some(Asked::Peer(ask)) => (Some(ask), true),
                    Some(Asked::Stranger) => (None, false),
                    None => return Heard::Nonsense,
                };
                Heard::Request(Caller {
                    tcp: self.tcp,
                    handshake: self.handshake,
                    ask,
                    is_peer,
                    takes_reads,
                    from: self.from,
                })
            }
            _ => Heard::Nonsense,
        }
    }

    /// His address as he says, but for that of his host, which TCP knows.
    fn seen(&self, mut ask: Ask) -> Ask {
        let [a, b, c, d] = self.from.ip().octets();
        let [.., high, low] = ask.local.host;
        ask.local.host = [a, b, c, d, high, low];
        ask
    }
}

impl Greeter {
    pub(super) fn new(at: SocketAddrV4, config: &Config) -> io::Result<Self> {
        let listener = OwnFd::new(tcp_socket_of(config)?);
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
            rests_until: None,
        })
    }

    /// Who has come and said what it wants.
    pub(super) fn callers(&mut self) -> Vec<Caller> {
        let mut callers = Vec::new();
        for silent in std::mem::take(&mut self.silent) {
            match silent.listen() {
                Heard::Nothing(silent) => self.silent.push_back(silent),
                Heard::Request(caller) => {
                    let removed = self.poller.remove(&caller.tcp);
                    debug_assert!(removed.is_ok(), "added before");
                    callers.push(caller);
                }
                // Closed, he has left the set by himself.
                Heard::Nonsense => {}
            }
        }
        self.let_in(&mut callers);
        callers
    }

    /// Lets so many in that nobody who waits for an answer does so for long. Each is listened to before the next, who may push him out.
    fn let_in(&mut self, callers: &mut Vec<Caller>) {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        if self.rests_until.take().is_some() {
            let added = self.poller.add(&self.listener, LISTENER, Interest::Read);
            if added.is_err() {
                return self.rest();
            }
        }
        for _ in 0..AT_A_TIME {
            let tcp =
                match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                    Ok(tcp) => tcp,
                    Err(Errno::INTR | Errno::CONNABORTED) => continue,
                    Err(Errno::AGAIN) => return,
                    // Out of descriptors is no fault of the waiter's: who is refused comes again.
                    Err(_) => return self.rest(),
                };
            let from = getpeername(&tcp).ok().flatten();
            let Some(from) = from.and_then(|peer| SocketAddrV4::try_from(peer).ok()) else {
                continue;
            };
            let limits = Options {
                time_limit: PATIENCE,
                ..options(&self.config)
            };
            let silent = Silent {
                tcp,
                handshake: Handshake::respond(limits, now()),
                from,
                until: Instant::now() + PATIENCE,
            };
            match silent.listen() {
                Heard::Nothing(silent) => self.keep(silent),
                Heard::Request(caller) => callers.push(caller),
                Heard::Nonsense => {}
            }
        }
    }

    fn keep(&mut self, silent: Silent) {
        if self
            .poller
            .add(&silent.tcp, SILENT, Interest::Read)
            .is_err()
        {
            return;
        }
        if self.silent.len() == SILENT_MAX {
            // Closed, he leaves the set by himself.
            self.silent.pop_front();
        }
        self.silent.push_back(silent);
    }

    /// Nobody can be let in for now: whoever stands before the door is not to wake us until then.
    fn rest(&mut self) {
        // If it is not there it does not wake anybody either.
        let _removed = self.poller.remove(&self.listener);
        self.rests_until = Some(Instant::now() + REST);
    }

    pub(super) fn sleep(&self, deadline: Option<Instant>) {
        let patience = self.silent.iter().map(|silent| silent.until).min();
        let until = [deadline, patience, self.rests_until]
            .into_iter()
            .flatten()
            .min();
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        // That fails only if there is no such set; and then there is nothing to wait for.
        let _woken = self.poller.wait(&mut Vec::new(), timeout);
    }
}

// Whoever is ready, all are looked at.
const LISTENER: u64 = 0;
const SILENT: u64 = 1;
const BACKLOG: i32 = 128;
/// Who connects and says nothing is sent away after this time, or when there are too many of them.
const PATIENCE: Duration = Duration::from_secs(1);
const SILENT_MAX: usize = 64;
/// Who is let in before the others get their turn; no more than may be silent.
const AT_A_TIME: usize = 32;
/// How long nobody is let in after there was no descriptor for somebody.
const REST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    fn greeter() -> (Greeter, SocketAddrV4) {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let Ok(SocketAddr::V4(at)) = free else {
            panic!("no port");
        };
        (Greeter::new(at, &Config::default()).expect("a door"), at)
    }

    fn ask(at: SocketAddrV4) -> TcpStream {
        let mut tcp = TcpStream::connect(at).expect("the door is open");
        tcp.write_all(b"MPA ID Req Frame\x40\x01\0\0")
            .expect("sent");
        tcp
    }

    #[test]
    fn who_has_asked_is_not_pushed_out_by_who_says_nothing() {
        let (mut greeter, at) = greeter();
        let _asker = ask(at);
        let crowd: Vec<_> = (0..SILENT_MAX + 10)
            .map(|_| TcpStream::connect(at).expect("the door is open"))
            .collect();
        let mut heard = 0;
        for _ in 0..=crowd.len() / AT_A_TIME {
            heard += greeter.callers().len();
        }
        assert_eq!((heard, greeter.silent.len()), (1, SILENT_MAX));
    }

    #[test]
    fn a_door_that_rests_wakes_nobody_and_opens_again() {
        let (mut greeter, at) = greeter();
        let _asker = ask(at);
        greeter.rest();
        let mut events = Vec::new();
        let waited = greeter.poller.wait(&mut events, Some(Duration::ZERO));
        assert!(waited.is_ok() && events.is_empty());
        let mut heard = 0;
        while heard == 0 {
            greeter.sleep(None);
            heard = greeter.callers().len();
        }
        assert_eq!(heard, 1);
    }
}
