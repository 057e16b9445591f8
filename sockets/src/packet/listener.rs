//! The connection threads: they accept requests behind the program, so that a peer's `connect` succeeds before our `accept`.
//!
//! Two do nothing but take requests in, so that whoever asks finds somebody; a third makes connections of them, as many as the backlog has room for.
//! Requests beyond that stay unanswered, and their askers wait, as they do for TCP.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proto::packet::State;
use sys::errno::Errno;
use sys::quiet;
use via::{Incoming, NetAddress, ViConfig};

use super::adapter::{Adapter, Claim};
use super::show::Show;
use super::stream::relay::BY_KERNEL;
use super::stream::{Identity, Stream};
use super::wait::{Changed, Wait};

/// A place where requests come.
#[derive(Debug)]
pub(super) struct Listener {
    adapter: Arc<Adapter>,
    at: NetAddress,
    local: SocketAddrV4,
    inner: Mutex<Inner>,
    changed: Changed,
}

#[derive(Debug)]
struct Inner {
    /// What nobody has answered yet.
    requests: VecDeque<Incoming>,
    /// In the order of the requests.
    queue: VecDeque<Place>,
    /// How many of those had a silent peer when somebody last looked.
    silent: usize,
    backlog: usize,
    closed: bool,
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
                backlog: backlog.clamp(1, BACKLOG_MAX),
                closed: false,
                failed: false,
                claim,
                is_offered: false,
                shown: None,
            }),
            changed: Changed::default(),
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
            let taken = adapter.capabilities.integrity != via::Integrity::Memory;
            return Err(if taken {
                Errno::ADDRINUSE
            } else {
                Errno::AGAIN
            });
        }
        Ok(listener)
    }

    /// Whether somebody listens there who has no claim to it, or whose NIC knows no claims. A listener may be away for a moment.
    fn is_taken(&self) -> bool {
        (0..KNOCKS).any(|_| {
            std::thread::yield_now();
            matches!(self.knock(), Some(via::Error::Reject | via::Error::Timeout))
        })
    }

    /// Whether a thread of ours waits: it refuses a request that comes from this address.
    fn is_reached(&self) -> bool {
        let deadline = Instant::now() + START_TIME;
        while Instant::now() < deadline && !self.lock().failed {
            match self.knock() {
                Some(via::Error::NoMatch) => std::thread::yield_now(),
                Some(via::Error::Reject) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Asks ourselves; what the answer was.
    fn knock(&self) -> Option<via::Error> {
        let config = ViConfig::new(&self.adapter.tag);
        let asker = self.adapter.nic.create_vi(&config).ok()?;
        let from = self.adapter.nic.address(OURSELVES).ok()?;
        asker.connect(&from, &self.at, Some(CLOSE_TIME)).err()
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

    /// The oldest connection, waiting for one as `patient` says.
    ///
    /// # Errors
    /// `EAGAIN` when it would wait and may not, `EINTR`; `EINVAL` when it is closed meanwhile.
    pub(super) fn accept(&self, patient: impl Fn() -> Wait) -> Result<Arc<Stream>, Errno> {
        let mut inner = self.lock();
        loop {
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
            let ticket = self.changed.ticket();
            drop(inner);
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
        // Each request of ours ends the wait of one thread.
        for _ in 0..WAITERS {
            // Refused, or nobody waits any more.
            let _ = self.knock();
        }
        drop(claim);
    }

    /// Takes requests in. A NIC knows of a place only while somebody waits there: so two threads do this, and nothing else.
    fn receive(&self) {
        loop {
            let inner = self.lock();
            if inner.closed {
                return;
            }
            if inner.requests.len() >= REQUESTS_MAX {
                self.nap(inner, None);
                continue;
            }
            drop(inner);
            match self.adapter.nic.connect_wait(&self.at, None) {
                Ok(request) => self.keep(request),
                Err(_) if self.adapter.is_closed() => return,
                // Descriptors may have run out, and come back.
                Err(_) => {
                    let mut inner = self.lock();
                    inner.failed = true;
                    self.nap(inner, Some(LOOK_TIME));
                }
            }
        }
    }

    fn keep(&self, request: Incoming) {
        let mut inner = self.lock();
        let is_ours = request.remote_address().discriminator.as_bytes() == OURSELVES;
        if is_ours || inner.closed {
            drop(inner);
            // Told already that nobody listens, or about to be.
            let _ = request.reject();
            return;
        }
        inner.requests.push_back(request);
        drop(inner);
        self.changed.notify_all();
    }

    /// Makes connections of requests.
    fn make_all(&self) {
        let identity = Identity {
            descriptor: 0,
            address: self.local.ip().octets(),
            port: self.local.port(),
        };
        while let Some(request) = self.next() {
            let Ok(stream) = Stream::accept(&self.adapter, request, identity) else {
                continue;
            };
            stream.meet(MEETING_TIME);
            let mut inner = self.lock();
            if inner.closed {
                drop(inner);
                stream.abort();
                return;
            }
            inner.silent += usize::from(!stream.is_met());
            inner.queue.push_back(Place {
                stream,
                since: Instant::now(),
            });
            inner.show(true);
            drop(inner);
            self.changed.notify_all();
        }
    }

    /// The next request, when there is room for its connection; `None` when there are no more to be.
    fn next(&self) -> Option<Incoming> {
        loop {
            let mut inner = self.look_at_silent(self.lock());
            if inner.closed || self.adapter.is_closed() {
                return None;
            }
            if inner.queue.len() < inner.backlog
                && let Some(request) = inner.requests.pop_front()
            {
                let was_full = inner.requests.len() + 1 == REQUESTS_MAX;
                drop(inner);
                if was_full {
                    self.changed.notify_all();
                }
                return Some(request);
            }
            let limit = (inner.silent > 0).then_some(LOOK_TIME);
            self.nap(inner, limit);
        }
    }

    /// Until something has changed, or so long.
    fn nap(&self, inner: MutexGuard<'_, Inner>, time: Option<Duration>) {
        let ticket = self.changed.ticket();
        drop(inner);
        self.changed
            .wait(ticket, time.map(|time| Instant::now() + time));
    }

    /// Looks at connections whose peer had not said who it is: it may have by now. Some have been silent for long, or are gone.
    fn look_at_silent<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        if inner.silent == 0 {
            return inner;
        }
        let mut silent_now = 0;
        let mut given_up = Vec::new();
        inner.queue.retain(|place| {
            let stream = &place.stream;
            if stream.is_met() {
                return true;
            }
            let over = place.since.elapsed() >= SILENCE_TIME || stream.state() == State::Closed;
            if over {
                given_up.push(Arc::clone(stream));
            } else {
                silent_now += 1;
            }
            !over
        });
        if std::mem::replace(&mut inner.silent, silent_now) == silent_now {
            return inner;
        }
        inner.show(true);
        drop(inner);
        given_up.iter().for_each(|stream| stream.abort());
        self.changed.notify_all();
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Says whether there is a connection to accept; `fresh` if there is one more.
    fn show(&self, fresh: bool) {
        if let Some(show) = &self.shown {
            show.input(self.is_ready(), fresh);
        }
    }

    fn is_ready(&self) -> bool {
        self.first().is_some()
    }

    /// Where the oldest connection is whose peer has said who it is.
    fn first(&self) -> Option<usize> {
        self.queue.iter().position(|place| place.stream.is_met())
    }

    /// The oldest connection, if it is there.
    fn pop(&mut self) -> Option<Arc<Stream>> {
        Some(self.queue.remove(self.first()?)?.stream)
    }
}

/// From where we ask ourselves.
const OURSELVES: &[u8] = b"SOVI?";
const START_TIME: Duration = Duration::from_secs(10);
const WAITERS: usize = 2;
/// How often one asks whether a place is taken.
const KNOCKS: usize = 3;
const BACKLOG_MAX: usize = 4096;
/// Askers beyond the backlog that wait for an answer. Each has a descriptor of ours.
const REQUESTS_MAX: usize = 128;
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// A peer's first packet follows its request at once. Who takes longer is looked at now and then, and others come first meanwhile.
const MEETING_TIME: Duration = Duration::from_millis(2);
const LOOK_TIME: Duration = Duration::from_millis(10);
const SILENCE_TIME: Duration = Duration::from_secs(10);
