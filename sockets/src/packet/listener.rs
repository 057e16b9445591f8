//! The connection threads: they accept requests behind the program, so that a peer's `connect` succeeds before our `accept`.
//!
//! Two do nothing but take requests in, so that whoever asks finds somebody; a third makes connections of them, as many as the backlog has room for.
//! Requests beyond that stay unanswered, and their askers wait, as they do for TCP.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::quiet;
use via::{Incoming, NetAddress};

use super::adapter::{Adapter, Claim};
use super::keeper;
use super::show::Show;
use super::stream::Stream;
use super::stream::combine::any_holds;
use super::stream::relay::BY_KERNEL;
use super::wait::{Changed, Wait};

mod deferral;
mod knock;
mod threads;

/// A place where requests come.
#[derive(Debug)]
pub(super) struct Listener {
    adapter: Arc<Adapter>,
    at: NetAddress,
    local: SocketAddrV4,
    inner: Mutex<Inner>,
    changed: Arc<Changed>,
}

#[derive(Debug)]
struct Inner {
    /// What nobody has answered yet.
    requests: VecDeque<Incoming>,
    /// In the order of the requests.
    queue: VecDeque<Place>,
    /// How many of those had a silent peer when somebody last looked.
    silent: usize,
    /// How many are not there before their peer has said something.
    deferred: usize,
    backlog: usize,
    /// How long a connection waits for its first bytes before it is there.
    deferral: Option<Duration>,
    closed: bool,
    /// How many threads take requests in.
    receiving: usize,
    /// Nobody can wait there.
    failed: bool,
    /// Keeps the port from other listeners, of any process.
    claim: Option<Claim>,
    /// Other processes have it, too.
    is_offered: bool,
    /// Where a program that polls is told what there is.
    shown: Option<Show>,
}

/// A connection that the program has not accepted yet.
#[derive(Debug)]
struct Place {
    stream: Arc<Stream>,
    since: Instant,
    /// Its peer had not said who it is when somebody last looked.
    is_silent: bool,
    /// Until then it is not there, unless its peer has said something.
    deferred_until: Option<Instant>,
}

impl Listener {
    /// Begins to accept.
    ///
    /// # Errors
    /// `EADDRINUSE` when somebody listens there, `EAGAIN` without threads.
    pub(super) fn start(
        adapter: &Arc<Adapter>,
        local: SocketAddrV4,
        claim: Option<Claim>,
        backlog: usize,
        deferral: Option<Duration>,
    ) -> Result<Arc<Self>, Errno> {
        let at = adapter.listening_at(local.port())?;
        let listener = Arc::new(Self {
            adapter: Arc::clone(adapter),
            at,
            local,
            inner: Mutex::new(Inner {
                requests: VecDeque::new(),
                queue: VecDeque::new(),
                silent: 0,
                deferred: 0,
                backlog: backlog.clamp(1, BACKLOG_MAX),
                deferral,
                closed: false,
                receiving: 0,
                failed: false,
                claim,
                is_offered: false,
                shown: None,
            }),
            changed: Arc::default(),
        });
        if listener.is_taken() {
            return Err(Errno::ADDRINUSE);
        }
        let run: [fn(&Self); 1 + WAITERS] = [Self::make_all, Self::receive, Self::receive];
        for run in run {
            let listening = Arc::clone(&listener);
            let started = quiet::spawn("sovia-connect", None, move || run(&listening));
            if started.is_err() {
                listener.close();
                return Err(Errno::AGAIN);
            }
        }
        // Who is told that we listen may ask at once.
        if !listener.is_reached() {
            listener.close();
            // The NIC's own place, which others on this host can have as well, over whatever it reaches them by.
            return Err(if adapter.reaches_others() {
                Errno::ADDRINUSE
            } else {
                Errno::AGAIN
            });
        }
        Ok(listener)
    }

    /// What keeps its port.
    pub(super) fn claim(&self) -> Option<Claim> {
        self.lock().claim.clone()
    }

    pub(super) fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// The address of this end of a connection that was accepted: where it was not bound to one, the one that the asker must have reached.
    pub(super) fn local_of(&self, stream: &Stream) -> SocketAddrV4 {
        let asker = stream.peer().map(|peer| Ipv4Addr::from(peer.address));
        match asker.filter(|_| self.local.ip().is_unspecified()) {
            Some(asker) => SocketAddrV4::new(self.adapter.facing(asker), self.local.port()),
            None => self.local,
        }
    }

    pub(super) fn set_backlog(&self, backlog: usize) {
        self.lock().backlog = backlog.clamp(1, BACKLOG_MAX);
        self.changed.notify_all();
    }

    /// For connections that are made from now on.
    pub(super) fn set_deferral(&self, deferral: Option<Duration>) {
        self.lock().deferral = deferral;
    }

    /// The oldest connection, waiting for one as `patient` says.
    ///
    /// # Errors
    /// `EAGAIN` when it would wait and may not, `EINTR`; `EINVAL` when it is closed meanwhile.
    pub(super) fn accept(&self, patient: impl Fn() -> Wait) -> Result<Arc<Stream>, Errno> {
        let mut inner = self.lock();
        loop {
            // Before the look: a stream that hears from its peer tells without the lock.
            let ticket = self.changed.ticket();
            if inner.is_offered {
                return Err(BY_KERNEL);
            }
            if let Some(stream) = inner.pop() {
                inner.show(false);
                self.changed.notify_all();
                return Ok(stream);
            }
            if inner.closed {
                return Err(Errno::INVAL);
            }
            let limit = patient().limit()?;
            drop(inner);
            if any_holds() {
                keeper::release();
            }
            if self.changed.wait(ticket, limit) {
                return Err(Errno::INTR);
            }
            inner = self.lock();
        }
    }

    /// The oldest connection, if there is one.
    pub(super) fn take(&self) -> Option<Arc<Stream>> {
        let mut inner = self.look_at_silent(self.lock());
        let stream = inner.pop()?;
        drop(inner);
        self.changed.notify_all();
        Some(stream)
    }

    /// Others have it, too: who accepts does so from them, and `show` hears what there is.
    pub(super) fn offer(&self, show: &Show) {
        let mut inner = self.lock();
        inner.is_offered = true;
        inner.shown = Some(show.clone());
        drop(inner);
        self.changed.notify_all();
    }

    /// What was accepted is not to be had, and is the first again.
    pub(super) fn put_back(&self, stream: &Arc<Stream>) {
        let mut inner = self.lock();
        if inner.closed {
            drop(inner);
            return stream.abort();
        }
        inner.queue.push_front(Place {
            stream: Arc::clone(stream),
            since: Instant::now(),
            is_silent: false,
            deferred_until: None,
        });
        inner.show(true);
        drop(inner);
        self.changed.notify_all();
    }

    /// Somebody polls.
    pub(super) fn watch(&self, show: &Show) {
        let mut inner = self.lock();
        if inner.is_offered {
            return;
        }
        inner.shown = Some(show.clone());
        inner.show(true);
    }

    /// Accepts nothing more, and resets what nobody has accepted.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.shown = None;
        let queue = std::mem::take(&mut inner.queue);
        let requests = std::mem::take(&mut inner.requests);
        let claim = inner.claim.take();
        drop(inner);
        self.changed.notify_all();
        // What is dropped is refused.
        drop(requests);
        queue.iter().for_each(|place| place.stream.abort());
        self.call_back();
        drop(claim);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Says whether there is a connection to accept; `fresh` if there is one more.
    fn show(&self, fresh: bool) {
        if let Some(show) = &self.shown {
            show.input(self.first().is_some(), fresh);
        }
    }

    /// Where the oldest connection is whose peer has said who it is, and more if that is waited for.
    fn first(&self) -> Option<usize> {
        let is_there = |place: &Place| place.deferred_until.is_none() && place.stream.is_met();
        self.queue.iter().position(is_there)
    }

    /// The oldest connection, if it is there.
    fn pop(&mut self) -> Option<Arc<Stream>> {
        self.admit();
        Some(self.queue.remove(self.first()?)?.stream)
    }
}

const WAITERS: usize = 2;
const BACKLOG_MAX: usize = 4096;
