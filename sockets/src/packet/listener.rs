//! The connection thread: accepts requests behind the program, so that a peer's `connect` succeeds before our `accept`.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use via::{NetAddress, ViConfig};

use super::adapter::Adapter;
use super::show::Show;
use super::stream::{Identity, Stream};

/// A place where requests come.
#[derive(Debug)]
pub(super) struct Listener {
    adapter: Arc<Adapter>,
    at: NetAddress,
    local: SocketAddrV4,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    queue: VecDeque<Arc<Stream>>,
    backlog: usize,
    closed: bool,
    /// Where a program that polls is told what there is.
    shown: Option<Show>,
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
                backlog: backlog.clamp(1, BACKLOG_MAX),
                closed: false,
                shown: None,
            }),
            changed: Condvar::new(),
        });
        // While one makes a connection the other waits: a NIC knows of a place only while somebody waits there.
        for _ in 0..THREADS {
            let listening = Arc::clone(&listener);
            let started = std::thread::Builder::new()
                .name("sovia-connect".into())
                .spawn(move || listening.run());
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

    /// The oldest connection, waiting for one if `patient` says that it may.
    ///
    /// # Errors
    /// `EAGAIN` when it would wait and may not; `EINVAL` when it is closed meanwhile.
    pub(super) fn accept(&self, patient: impl Fn() -> bool) -> Result<Arc<Stream>, Errno> {
        let mut inner = self.lock();
        loop {
            if let Some(stream) = inner.queue.pop_front() {
                inner.show(false);
                self.changed.notify_all();
                return Ok(stream);
            }
            if inner.closed {
                return Err(Errno::INVAL);
            }
            if !patient() {
                return Err(Errno::AGAIN);
            }
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
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
        queue.iter().for_each(|stream| stream.abort());
        // Each request of ours ends the wait of one thread.
        for _ in 0..THREADS {
            // Refused, or nobody waits any more.
            let _ = self.knock();
        }
    }

    fn run(&self) {
        while let Some(stream) = self.next() {
            let mut inner = self.lock();
            if inner.closed {
                drop(inner);
                stream.abort();
                return;
            }
            inner.queue.push_back(stream);
            inner.show(true);
            drop(inner);
            self.changed.notify_all();
        }
    }

    /// The next connection; `None` when there are no more to be.
    fn next(&self) -> Option<Arc<Stream>> {
        loop {
            let mut inner = self.lock();
            while !inner.closed && inner.queue.len() >= inner.backlog {
                inner = self
                    .changed
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if inner.closed {
                return None;
            }
            drop(inner);
            let request = self.adapter.nic.connect_wait(&self.at, None).ok()?;
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
            if let Ok(stream) = Stream::accept(&self.adapter, request, identity) {
                return Some(stream);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Says whether there is a connection to accept; `fresh` if there is one more.
    fn show(&self, fresh: bool) {
        if let Some(show) = &self.shown {
            show.input(!self.queue.is_empty(), fresh);
        }
    }
}

/// From where we ask ourselves.
const OURSELVES: &[u8] = b"SOVI?";
const START_TIME: Duration = Duration::from_secs(10);
const THREADS: usize = 2;
const BACKLOG_MAX: usize = 4096;
const CLOSE_TIME: Duration = Duration::from_secs(1);
