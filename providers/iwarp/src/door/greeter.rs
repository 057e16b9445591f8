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
use sys::poll::{Interest, Poller};

use super::caller::Caller;
use crate::dial::{Answer, options, step};
use crate::driver::{Config, tcp_socket_of};
use crate::link::now;
use crate::private::{self, Asked};

/// The listening socket, and who has come but not yet said what it wants.
pub(super) struct Greeter {
    config: Config,
    listener: OwnedFd,
    pub(super) poller: Arc<Poller>,
    silent: VecDeque<Silent>,
}

struct Silent {
    tcp: OwnedFd,
    handshake: Handshake,
    from: SocketAddrV4,
    until: Instant,
}

impl Greeter {
    pub(super) fn new(at: SocketAddrV4, config: &Config) -> io::Result<Self> {
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
    pub(super) fn callers(&mut self) -> Vec<Caller> {
        self.let_in();
        let mut callers = Vec::new();
        let mut still_silent = VecDeque::new();
        for mut silent in std::mem::take(&mut self.silent) {
            match step(&silent.tcp, &mut silent.handshake) {
                Ok(None) if Instant::now() < silent.until => still_silent.push_back(silent),
                Ok(Some(Answer::Asked { said, takes_reads })) => {
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
                        takes_reads,
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

    pub(super) fn sleep(&self, deadline: Option<Instant>) {
        let patience = self.silent.iter().map(|silent| silent.until).min();
        let until = [deadline, patience].into_iter().flatten().min();
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
