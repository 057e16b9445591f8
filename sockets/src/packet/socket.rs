//! A socket of type `SOCK_VIA`: what the program does with it, in the order in which it may.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::argument::Family;
use sys::errno::Errno;
use sys::options::Options;
use sys::socket::is_nonblocking;
use sys::sync::mapped::AtomicU32;
use sys::sync::{AtomicBool, Ordering};

use self::address::Given;
use super::adapter::{Adapter, Claim};
use super::listener::Listener;
use super::option::Kept;
use super::show::Show;
use super::stream::Stream;
use super::wait::Wait;
use crate::conn::Origin;

mod address;
mod connect;
mod listen;
mod share;
mod tcp;

/// A socket of type `SOCK_VIA`.
#[derive(Debug)]
pub struct Socket {
    /// How the program sees its addresses.
    family: Family,
    adapter: Arc<Adapter>,
    life: Mutex<Life>,
    /// The stream, without the lock, from when there is one.
    stream: std::sync::OnceLock<Arc<Stream>>,
    nodelay: AtomicU32,
    /// What the program's descriptor shows, if it has one.
    show: Option<Show>,
    /// Whether somebody polls.
    watched: AtomicBool,
    /// A close breaks the connection (`SO_LINGER` of no time).
    resets: AtomicBool,
    /// Its calls wait so long at most, as its descriptor says (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    is_timed: AtomicBool,
    kept: Mutex<Kept>,
    /// What is TCP's and IP's, and is kept to be read back.
    options: Mutex<Options>,
    /// Why a connect failed that went on behind the program, until that has been told.
    failure: Mutex<Option<Errno>>,
    /// What the descriptor shows is the end of such a connect: another needs another stand-in.
    is_spent: AtomicBool,
    /// Its own address and its peer's, once it is relayed. A child of `fork` can ask, too: no lock is in the way.
    names: std::sync::OnceLock<(SocketAddrV4, Option<SocketAddrV4>)>,
}

#[derive(Debug, Clone)]
enum Life {
    Fresh(Option<Bound>),
    Listening(Arc<Listener>),
    /// A thread asks, without the lock: others poll meanwhile.
    Connecting(Option<Bound>),
    /// Where it is, and whom it asked if it did.
    Connected(Bound, Option<SocketAddrV4>),
}

/// Where a socket is.
#[derive(Debug, Clone)]
struct Bound {
    at: SocketAddrV4,
    /// Keeps the port from others, where the program chose it or listens.
    claim: Option<Claim>,
    /// Keeps it from being given to others of this process.
    given: Option<Arc<Given>>,
}

impl Socket {
    /// A socket that is nowhere yet. The VI is made when it connects or is accepted.
    #[must_use]
    pub fn new(adapter: &Arc<Adapter>) -> Self {
        Self::of(Family::V4, adapter)
    }

    /// As [`Socket::new`], of that family.
    #[must_use]
    pub fn of(family: Family, adapter: &Arc<Adapter>) -> Self {
        Self {
            family,
            adapter: Arc::clone(adapter),
            life: Mutex::new(Life::Fresh(None)),
            stream: std::sync::OnceLock::new(),
            nodelay: AtomicU32::new(0),
            show: None,
            watched: AtomicBool::new(false),
            resets: AtomicBool::new(false),
            is_timed: AtomicBool::new(false),
            kept: Mutex::default(),
            options: Mutex::default(),
            failure: Mutex::default(),
            is_spent: AtomicBool::new(false),
            names: std::sync::OnceLock::new(),
        }
    }

    /// With a stand-in for the program to poll, and a descriptor of it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn expose(&mut self) -> io::Result<OwnedFd> {
        let show = match self.is_fresh() {
            true => Show::alone(),
            false => Show::new(),
        }?;
        let descriptor = show.descriptor()?;
        self.show = Some(show);
        Ok(descriptor)
    }

    /// Whether it has not been anything yet.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(&*self.lock(), Life::Fresh(_))
    }

    /// One as this was before it was connected, or listened, with a stand-in of its own at `numbers`. Where it was connected the next call is told of that, as over TCP.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn anew(&self, numbers: &[RawFd]) -> io::Result<Self> {
        let mut new = Self::of(self.family, &self.adapter);
        let show = Show::alone()?;
        show.renew(numbers)?;
        new.show = Some(show);
        let (bound, failure) = match &*self.lock() {
            Life::Fresh(bound) | Life::Connecting(bound) => (bound.clone(), None),
            Life::Listening(listener) => (Some(Bound::of(listener)), None),
            Life::Connected(bound, _) => {
                // The address stays where the program chose it.
                let bound = bound.claim.is_some().then(|| bound.clone());
                (bound, Some(Errno::CONNRESET))
            }
        };
        new.life = Mutex::new(Life::Fresh(bound));
        new.failure = Mutex::new(failure);
        new.kept = Mutex::new(*self.kept());
        new.options = Mutex::new(self.options().clone());
        new.set_nodelay(self.nodelay());
        new.set_resets(self.resets.load(Ordering::Relaxed));
        let is_timed = self.is_timed.load(Ordering::Relaxed);
        new.is_timed.store(is_timed, Ordering::Relaxed);
        Ok(new)
    }

    /// Somebody polls it: what there is is shown as it changes from now on.
    pub fn watch(&self) {
        if !self.watched.swap(true, Ordering::Relaxed) {
            self.watch_now();
        }
    }

    fn watch_now(&self) {
        let Some(show) = self.show.as_ref() else {
            return;
        };
        // Either what another thread makes of the socket meanwhile is seen here, or that thread sees that it is watched.
        let life = self.lock().clone();
        if let Some(stream) = self.stream.get() {
            stream.watch(show);
        } else if let Life::Listening(listener) = life {
            listener.watch(show);
        } else if let Life::Connecting(_) = life {
            // With the lock, so that it is not shown after what becomes of it. One for which there is no descriptor shows that it is nowhere.
            let life = self.lock();
            if matches!(&*life, Life::Connecting(_)) && show.join().is_ok() {
                show.room(false);
            }
        } else if self.failure().is_some() {
            show.reset();
        }
    }

    /// It is nowhere no more: the stand-in does not say so any longer.
    fn join(&self) -> Result<(), Errno> {
        let joined = self.show.as_ref().map_or(Ok(()), Show::join);
        joined.map_err(|_| Errno::NOBUFS)
    }

    /// It has become something else, which may be watched already.
    fn become_now(&self, mut life: MutexGuard<'_, Life>, now: Life) {
        *life = now;
        drop(life);
        if self.watched.load(Ordering::Relaxed) {
            self.watch_now();
        }
    }

    /// Shuts directions down. A listener's receiving direction is its listening.
    ///
    /// # Errors
    /// `ENOTCONN` unless it listens or is connected; [`super::stream::relay::BY_KERNEL`].
    pub fn shutdown(&self, input: bool, output: bool) -> Result<(), Errno> {
        let mut life = self.lock();
        if let Life::Listening(listener) = &*life {
            if input {
                let bound = Bound::of(listener);
                listener.close();
                *life = Life::Fresh(Some(bound));
            }
            return Ok(());
        }
        drop(life);
        let stream = self.stream()?;
        stream.shutdown(input, output)
    }

    /// Which of the kernel's sockets stands in for it.
    pub(super) fn inode(&self) -> Option<u64> {
        self.show.as_ref()?.inode()
    }

    /// Whether its bytes go through the stand-in, which others may have.
    #[inline]
    pub fn is_relayed(&self) -> bool {
        self.names.get().is_some()
    }

    /// What `SO_ERROR` tells, once.
    pub fn take_error(&self) -> Option<Errno> {
        match self.stream.get() {
            Some(stream) => stream.take_error(),
            None => self.take_failure(),
        }
    }

    /// Its stream.
    ///
    /// # Errors
    /// `ENOTCONN`.
    #[inline]
    pub fn stream(&self) -> Result<&Arc<Stream>, Errno> {
        self.stream.get().ok_or(Errno::NOTCONN)
    }

    /// TCP_NODELAY.
    pub fn set_nodelay(&self, nodelay: bool) {
        self.nodelay.store(nodelay.into(), Ordering::Relaxed);
        if let Ok(stream) = self.stream() {
            stream.set_nodelay(nodelay);
        }
    }

    /// Whether TCP_NODELAY is set.
    pub fn nodelay(&self) -> bool {
        self.nodelay.load(Ordering::Relaxed) != 0
    }

    /// While another thread connects it who polls sees no room.
    fn show_busy(&self) {
        if self.watched.load(Ordering::Relaxed) {
            self.watch_now();
        }
    }

    /// A stand-in that has shown an end gives way to another, at all of the program's `numbers`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn renew(&self, numbers: impl FnOnce() -> Vec<RawFd>) -> io::Result<()> {
        if self.is_spent.swap(false, Ordering::Relaxed)
            && let Some(show) = &self.show
        {
            show.renew(&numbers())?;
        }
        Ok(())
    }

    fn failure(&self) -> MutexGuard<'_, Option<Errno>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Options that are kept to be read back.
    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same of TCP's and IP's.
    pub(super) fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a close breaks the connection: `SO_LINGER` with no time.
    pub fn set_resets(&self, resets: bool) {
        self.resets.store(resets, Ordering::Relaxed);
    }

    /// The program is about to close its last descriptor.
    pub(super) fn conceal(&self) {
        if let Some(show) = &self.show {
            show.release();
        }
    }

    /// `SO_RCVTIMEO` or `SO_SNDTIMEO` has been set on its descriptor.
    pub fn set_timed(&self) {
        self.is_timed.store(true, Ordering::Relaxed);
    }

    /// How a call on descriptor `fd` waits, whose time-out is what `timeout_ms` reads.
    pub(super) fn wait(&self, fd: BorrowedFd<'_>, timeout_ms: fn(BorrowedFd<'_>) -> i32) -> Wait {
        if is_nonblocking(fd) {
            return Wait::Not;
        }
        let timed = self.is_timed.load(Ordering::Relaxed);
        let timeout = timed.then(|| u64::try_from(timeout_ms(fd)).ok()).flatten();
        timeout.map_or(Wait::Ever, |ms| {
            Wait::Until(Instant::now() + Duration::from_millis(ms))
        })
    }

    /// The program has closed it. A listener's address is free then: its threads have left, or cannot be reached for a second.
    pub fn close(&self) {
        if let Ok(stream) = self.stream() {
            if self.resets.load(Ordering::Relaxed) {
                stream.abort();
            }
            stream.close();
        }
        let mut life = self.lock();
        match &mut *life {
            Life::Listening(listener) => {
                let listener = Arc::clone(listener);
                // Other threads' calls need not wait for its threads.
                drop(life);
                listener.close();
            }
            Life::Fresh(Some(bound))
            | Life::Connecting(Some(bound))
            | Life::Connected(bound, _) => {
                (bound.claim, bound.given) = (None, None);
            }
            Life::Fresh(None) | Life::Connecting(None) => {}
        }
    }

    /// How the program sees its addresses.
    #[inline]
    pub fn family(&self) -> Family {
        self.family
    }

    fn adopt(&self, stream: Arc<Stream>) {
        if self.nodelay() {
            stream.set_nodelay(true);
        }
        self.kept().apply(&stream);
        // There is one only once: `life` says so.
        let _ = self.stream.set(stream);
    }

    /// Others may see the connection.
    fn tell(&self, origin: Origin) {
        let shown = |address| self.family.shown(address);
        let ends = self.peer().map(|peer| [self.local(), peer].map(shown));
        if let Ok(stream) = self.stream() {
            stream.tell(origin, ends.ok());
        }
    }

    /// The program knows it by that descriptor.
    pub(super) fn set_number(&self, fd: u32) {
        if let Ok(stream) = self.stream() {
            stream.set_number(fd);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
