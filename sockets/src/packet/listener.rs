//! The connection thread: accepts requests behind the program, so that a peer's `connect` succeeds before our `accept`.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proto::packet::State;
use sys::errno::Errno;
use sys::quiet;
use via::{NetAddress, ViConfig};

use super::adapter::Adapter;
use super::show::Show;
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
    /// In the order of the requests.
    queue: VecDeque<Place>,
    /// Of those that have been made, how many had a silent peer when somebody last looked.
    silent: usize,
    requests: u64,
    backlog: usize,
    closed: bool,
    /// Where a program that polls is told what there is.
    shown: Option<Show>,
}

/// A connection that the program has not accepted yet.
#[derive(Debug)]
struct Place {
    number: u64,
    /// `None` while it is being made.
    stream: Option<Arc<Stream>>,
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
        backlog: usize,
    ) -> Result<Arc<Self>, Errno> {
        let at = adapter.listening_at(local.port())?;
        if !matches!(
            adapter.nic.connect_wait(&at, Some(Duration::ZERO)),
            Err(via::Error::Timeout)
        ) {
            return Err(Errno::ADDRINUSE);
        }
        let listener = Arc::new(Self {
            adapter: Arc::clone(adapter),
            at,
            local,
            inner: Mutex::new(Inner {
                queue: VecDeque::new(),
                silent: 0,
                requests: 0,
                backlog: backlog.clamp(1, BACKLOG_MAX),
                closed: false,
                shown: None,
            }),
            changed: Changed::default(),
        });
        // While one makes a connection the other waits: a NIC knows of a place only while somebody waits there.
        for _ in 0..THREADS {
            let listening = Arc::clone(&listener);
            let started = quiet::spawn("sovia-connect", None, move || listening.run());
            if started.is_err() {
                listener.close();
                return Err(Errno::AGAIN);
            }
        }
        // Who is told that we listen may ask at once.
        if !listener.is_reached() {
            listener.close();
            return Err(Errno::AGAIN);
        }
        Ok(listener)
    }

    /// Whether a thread of ours waits: it refuses a request that comes from this address.
    fn is_reached(&self) -> bool {
        let deadline = Instant::now() + START_TIME;
        while Instant::now() < deadline {
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

    pub(super) fn local(&self) -> SocketAddrV4 {
        self.local
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

    /// Somebody polls.
    pub(super) fn watch(&self, show: &Show) {
        let mut inner = self.lock();
        inner.shown = Some(show.clone());
        inner.show(true);
    }

    /// Accepts nothing more, and resets what nobody has accepted.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.shown = None;
        let queue = std::mem::take(&mut inner.queue);
        drop(inner);
        self.changed.notify_all();
        let accepted = queue.iter().filter_map(|place| place.stream.as_ref());
        accepted.for_each(|stream| stream.abort());
        // Each request of ours ends the wait of one thread.
        for _ in 0..THREADS {
            // Refused, or nobody waits any more.
            let _ = self.knock();
        }
    }

    fn run(&self) {
        while let Some((number, stream)) = self.next() {
            let mut inner = self.lock();
            if inner.closed {
                drop(inner);
                stream.abort();
                return;
            }
            inner.silent += usize::from(!stream.is_met());
            let mut places = inner.queue.iter_mut();
            if let Some(place) = places.find(|place| place.number == number) {
                place.stream = Some(stream);
            }
            inner.show(true);
            drop(inner);
            self.changed.notify_all();
        }
    }

    /// The next connection, and the number of its request; `None` when there are no more to be.
    fn next(&self) -> Option<(u64, Arc<Stream>)> {
        loop {
            let inner = self.look_at_silent(self.lock());
            if inner.closed {
                return None;
            }
            let limit = (inner.silent > 0).then_some(LOOK_TIME);
            if inner.queue.len() >= inner.backlog {
                self.nap(inner, limit);
                continue;
            }
            drop(inner);
            let request = match self.adapter.nic.connect_wait(&self.at, limit) {
                Ok(request) => request,
                Err(via::Error::Timeout) => continue,
                Err(_) if self.adapter.is_closed() => return None,
                Err(_) => {
                    // Descriptors may have run out, and come back.
                    self.nap(self.lock(), Some(LOOK_TIME));
                    continue;
                }
            };
            if self.lock().closed {
                // Told already that nobody listens, or about to be.
                let _ = request.reject();
                return None;
            }
            if request.remote_address().discriminator.as_bytes() == OURSELVES {
                let _ = request.reject();
                continue;
            }
            let identity = Identity {
                descriptor: 0,
                address: self.local.ip().octets(),
                port: self.local.port(),
            };
            // Who asks for another connection when it has this one gets it behind this one.
            let mut inner = self.lock();
            inner.requests += 1;
            let number = inner.requests;
            inner.queue.push_back(Place {
                number,
                stream: None,
                since: Instant::now(),
            });
            drop(inner);
            match Stream::accept(&self.adapter, request, identity) {
                Ok(stream) => {
                    stream.meet(MEETING_TIME);
                    return Some((number, stream));
                }
                Err(_) => self.forget(number),
            }
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
            let Some(stream) = place.stream.as_ref().filter(|stream| !stream.is_met()) else {
                return true;
            };
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

    /// A request came to nothing.
    fn forget(&self, number: u64) {
        let mut inner = self.lock();
        inner.queue.retain(|place| place.number != number);
        inner.show(false);
        drop(inner);
        self.changed.notify_all();
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

    /// Where the oldest connection is whose peer has said who it is. One that is being made may be older than those behind it.
    fn first(&self) -> Option<usize> {
        let mut made = self.queue.iter().map_while(|place| place.stream.as_ref());
        made.position(|stream| stream.is_met())
    }

    /// The oldest connection, if it is there.
    fn pop(&mut self) -> Option<Arc<Stream>> {
        self.queue.remove(self.first()?)?.stream
    }
}

/// From where we ask ourselves.
const OURSELVES: &[u8] = b"SOVI?";
const START_TIME: Duration = Duration::from_secs(10);
const THREADS: usize = 2;
const BACKLOG_MAX: usize = 4096;
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// A peer's first packet follows its request at once. Who takes longer is looked at now and then, and others come first meanwhile.
const MEETING_TIME: Duration = Duration::from_millis(2);
const LOOK_TIME: Duration = Duration::from_millis(10);
const SILENCE_TIME: Duration = Duration::from_secs(10);
