//! Extended sockets: a connected TCP socket that has become a VI, in place.
//!
//! Plain calls keep their meaning on it: [`Socket::read`], [`Socket::write`], [`Socket::shutdown`], and `poll` on its [descriptor](Socket::fd). Beside them,
//! on the same connection, stand a VI's own: registered memory ([`Socket::register`]), which the peer may be told of ([`Socket::advertise`]), posted sends
//! and receives that gather and scatter, RDMA writes and reads, and completions that are [polled](Socket::completion), [waited](Socket::wait) for, shown by a
//! [descriptor](Socket::completion_fd), or [called back](Socket::on_events) for.
//!
//! Both ends must ask: on one host by [`Socket::meet`], over any VI NIC that can export an end; by [`Socket::in_place`] where the NIC makes the VI of the TCP
//! connection itself. Bytes and messages have a window each, so that bytes nobody reads do not hold up a message.
//!
//! # Example
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use sockets::extended::Socket;
//! use via::{Access, Memory, Nic};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (here, there) = {
//! #     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! #     let here = std::net::TcpStream::connect(listener.local_addr()?)?;
//! #     (here, listener.accept()?.0)
//! # };
//! // `here` and `there` are the ends of a TCP connection.
//! let nic = Nic::open(&shm::DRIVER)?;
//! let soon = Some(Instant::now() + Duration::from_secs(10));
//! let (here, there) = std::thread::scope(|scope| {
//!     let other = scope.spawn(|| Socket::meet(there.into(), &nic, soon));
//!     (Socket::meet(here.into(), &nic, soon), other.join().expect("no panic"))
//! });
//! let (here, there) = (here?, there?);
//!
//! // A byte stream still.
//! here.write(b"as ever")?;
//! let mut bytes = [0; 16];
//! assert_eq!(there.read(&mut bytes)?, 7);
//!
//! // And one-sided: the owner of a table does nothing while it is read.
//! let table = there.register(Memory::private(4096)?, Access::Read)?;
//! table.memory().write(64, b"seven across")?;
//! there.advertise(&table, 1)?;
//! let remote = here.remote(1, soon)?;
//! let answer = here.register(Memory::private(12)?, Access::Local)?;
//! here.post_read(&[answer.whole()?], &remote, 64, 5)?;
//! assert_eq!(here.wait(soon)?.result, Ok(12));
//! # Ok(())
//! # }
//! ```

mod calls;
mod core;
mod events;
mod meeting;
mod posts;
mod region;
mod work;

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sys::errno::Errno;
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use sys::wait::{Limits, Spinner};
use via::provider::{CqOps, Timeout};
use via::{Error, Nic, Ptag, Vi};

pub use self::calls::{Directions, Wait};
use self::core::Core;
use self::events::Events;
pub use self::events::{COMPLETION, END, READABLE, WRITABLE};
pub use self::region::{Region, Remote, SLICES_MAX, Slice};
pub use self::work::{Completion, OUTSTANDING_MAX, Op};
use crate::conn::Origin;
use crate::stat::{Kind, Tally};

/// An extended socket. Dropping it closes the connection: what was sent still goes.
///
/// Its calls may be made from any thread, and not from signal handlers. In a forked child they answer `ENOTCONN`: the parent has the connection.
pub struct Socket {
    inner: Arc<Inner>,
}

struct Inner {
    id: u64,
    /// Which process it belongs to.
    home: u32,
    // Before the NIC's things: the VI ends first.
    core: Mutex<Core>,
    cq: Arc<dyn CqOps>,
    nic: Nic,
    tag: Ptag,
    /// Where the program polls; the same as the core's.
    face: OwnedFd,
    /// The TCP connection, where the VI has left it to us.
    tcp: Option<OwnedFd>,
    /// Whether the NIC has been asked to call when something comes.
    armed: AtomicBool,
    sleepers: AtomicU32,
    /// Whether somebody polls the descriptors.
    watched: AtomicBool,
    events: Events,
    spinner: Spinner,
}

/// What a socket is before its VI is connected.
struct Raw {
    id: u64,
    tag: Ptag,
    core: Core,
    /// How the TCP connection came about, and its ends.
    origin: Origin,
    ends: Option<[SocketAddr; 2]>,
}

impl Raw {
    fn new(nic: &Nic, tcp: BorrowedFd<'_>) -> Result<Self, Errno> {
        sys::fork::watch().map_err(|_| Errno::NOMEM)?;
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let tag = nic.create_ptag().map_err(errno_of)?;
        let core = Core::new(nic, &tag, id).map_err(errno_of)?;
        let ends = sys::tcp::addresses(tcp).ok();
        Ok(Self {
            id,
            tag,
            core,
            origin: match sys::tcp::is_opener(tcp) {
                Ok(true) => Origin::Connected,
                _ => Origin::Accepted,
            },
            ends: ends.map(|(local, peer)| [local, peer]),
        })
    }

    fn into_socket(self, nic: &Nic, tcp: Option<OwnedFd>) -> Result<Socket, Errno> {
        let name = &nic.attributes().name;
        let tally = Tally::begin(Kind::Extended, name, self.origin, self.ends);
        let Self {
            id, tag, mut core, ..
        } = self;
        let face = core.double.duplicate(true);
        if let Ok(face) = &face {
            tally.set_number(face.as_raw_fd().cast_unsigned());
        }
        core.tally = tally;
        let socket = Socket {
            inner: Arc::new(Inner {
                id,
                home: sys::fork::generation(),
                cq: Arc::clone(core.cq().ops()),
                core: Mutex::new(core),
                nic: nic.clone(),
                tag,
                face: face.map_err(|_| Errno::MFILE)?,
                tcp,
                armed: AtomicBool::new(false),
                sleepers: AtomicU32::new(0),
                watched: AtomicBool::new(false),
                events: Events::default(),
                spinner: Spinner::new(Limits::MEMORY),
            }),
        };
        socket.inner.locked()?.progress();
        Ok(socket)
    }
}

impl Socket {
    /// Meets the other end, on this host, and goes on over VIs of `nic`. Both ends call this; the NIC must be able to export an end ([`via::Vi::export`]).
    /// The TCP connection stays beneath, and carries nothing.
    ///
    /// # Errors
    /// The TCP connection is as it was after each of these. `ETIMEDOUT` when the other end did not ask until `deadline`, `EBUSY` if bytes of the plain stream are unread
    /// at either end, `ENOTCONN`, `EOPNOTSUPP` for what is no TCP socket, `EHOSTUNREACH` if the other end is on another host, `EACCES` if who came cannot prove to have the
    /// other end, `EPROTO` if the ends do not understand each other, `ENOMEM`, `EMFILE`.
    pub fn meet(tcp: OwnedFd, nic: &Nic, deadline: Option<Instant>) -> Result<Self, Errno> {
        check(tcp.as_fd())?;
        let raw = Raw::new(nic, tcp.as_fd())?;
        meeting::meet(&raw.core.vi, tcp.as_fd(), deadline)?;
        raw.into_socket(nic, Some(tcp))
    }

    /// Has `connect` make the VI of the TCP connection itself, as `iwarp::over` does: it gets the VI, a duplicate of the socket, and whether this end is the one
    /// that opened the connection, and so begins. Both ends call this.
    ///
    /// # Errors
    /// With the stream as it was: `ENOTCONN`, `EOPNOTSUPP`, `EBUSY` if bytes of the plain stream are unread, `ENOMEM`, `EMFILE`. After what `connect` answers the connection
    /// is reset: `ETIMEDOUT`, `ECONNREFUSED` if the peer refuses or speaks something else, `EPROTO`.
    pub fn in_place(
        tcp: OwnedFd,
        nic: &Nic,
        connect: impl FnOnce(&Vi, OwnedFd, bool) -> Result<(), Error>,
    ) -> Result<Self, Errno> {
        check(tcp.as_fd())?;
        let opener = sys::tcp::is_opener(tcp.as_fd())?;
        // Who began may have said its first words already.
        if opener && sys::tcp::inq(tcp.as_fd())? > 0 {
            return Err(Errno::BUSY);
        }
        let raw = Raw::new(nic, tcp.as_fd())?;
        let duplicate = tcp.try_clone().map_err(|_| Errno::MFILE)?;
        if let Err(error) = connect(&raw.core.vi, duplicate, opener) {
            sys::socket::reset_now(tcp.as_fd());
            return Err(errno_of(error));
        }
        raw.into_socket(nic, None)
    }

    /// Where to `poll`: it is readable, writable and ended as the connection is. Nothing can be read from it or written to it but by this type.
    ///
    /// From the first call on the NIC looks after the connection while nobody calls.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch();
        self.inner.face.as_fd()
    }

    /// The same, for who knows that nobody polls it yet.
    #[must_use]
    pub fn face(&self) -> BorrowedFd<'_> {
        self.inner.face.as_fd()
    }

    /// Somebody polls it.
    pub fn watch(&self) {
        if !self.inner.watched.swap(true, Ordering::SeqCst)
            && let Ok(core) = self.inner.enter()
        {
            self.inner.settle(core);
        }
    }

    /// The program knows it by that descriptor: `sovia stat` shows the number.
    pub fn set_number(&self, fd: RawFd) {
        if let Ok(core) = self.inner.locked() {
            core.tally.set_number(fd.cast_unsigned());
        }
    }

    /// The NIC that its VI is of.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        &self.inner.nic
    }

    /// Closes it, as dropping it does; what was sent before goes for as long as `until`. Nobody is called back any more; for a callback that runs
    /// [`Socket::off_events`] waits.
    pub fn close(&self, until: Option<Instant>) {
        if self.inner.is_home() {
            self.inner.events.stop();
        }
        self.inner.close(until);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.off_events();
        self.inner.close(Some(sys::time::now() + FLUSH));
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Socket").field(&self.inner.id).finish()
    }
}

impl Inner {
    /// The state, with everything moved that can be.
    fn enter(&self) -> Result<MutexGuard<'_, Core>, Errno> {
        let mut core = self.locked()?;
        core.progress();
        Ok(core)
    }

    /// Whether this is no child, forked since.
    fn is_home(&self) -> bool {
        sys::fork::generation() == self.home
    }

    fn locked(&self) -> Result<MutexGuard<'_, Core>, Errno> {
        if !self.is_home() {
            return Err(Errno::NOTCONN);
        }
        Ok(self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// At the end of a call: sees to it that somebody goes on.
    fn settle(self: &Arc<Self>, core: MutexGuard<'_, Core>) {
        self.events.look(&core);
        let needed = core.gone.is_none()
            && (core.is_busy()
                || self.watched.load(Ordering::SeqCst)
                || self.sleepers.load(Ordering::SeqCst) > 0
                || self.events.are_wanted());
        drop(core);
        if needed && !self.armed.swap(true, Ordering::SeqCst) {
            let weak = Arc::downgrade(self);
            let asked = self.cq.notify(Box::new(move |_| {
                if let Some(inner) = weak.upgrade() {
                    inner.armed.store(false, Ordering::SeqCst);
                    if let Ok(core) = inner.enter() {
                        inner.settle(core);
                    }
                }
            }));
            if asked.is_err() {
                self.armed.store(false, Ordering::SeqCst);
            }
        }
    }

    /// Calls `attempt` until it answers something else than `EAGAIN`, polling and then asleep on `bed`: what is told with the lock held.
    fn until<T>(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        to_write: bool,
        bed: impl Fn(&Core) -> Option<OwnedFd>,
        mut attempt: impl FnMut(&mut Core) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut spin = self.spinner.begin();
        loop {
            let mut core = self.enter()?;
            let result = attempt(&mut core);
            if !matches!(result, Err(Errno::AGAIN)) {
                self.settle(core);
                spin.hit();
                return result;
            }
            let more = core.more;
            drop(core);
            if sys::time::expired(deadline) {
                return Err(Errno::AGAIN);
            }
            if more || spin.again() {
                continue;
            }
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let slept = self.sleep(deadline, to_write, &bed, &mut attempt);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            match slept {
                Some(Err(errno)) => return Err(errno),
                Some(Ok(value)) => return Ok(value),
                None => {}
            }
        }
    }

    /// One sleep. `None` after it.
    fn sleep<T>(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        to_write: bool,
        bed: &impl Fn(&Core) -> Option<OwnedFd>,
        attempt: &mut impl FnMut(&mut Core) -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        // Asked first, looked at once more afterwards: what comes between wakes the handler.
        match self.locked() {
            Ok(core) => self.settle(core),
            Err(errno) => return Some(Err(errno)),
        }
        let mut core = match self.enter() {
            Ok(core) => core,
            Err(errno) => return Some(Err(errno)),
        };
        let result = attempt(&mut core);
        let fd = bed(&core);
        self.settle(core);
        if !matches!(result, Err(Errno::AGAIN)) {
            return Some(result);
        }
        let fd = fd.as_ref().map_or_else(|| self.face.as_fd(), AsFd::as_fd);
        match sys::double::sleep(fd, to_write, deadline) {
            Ok(_) => None,
            Err(errno) => Some(Err(errno)),
        }
    }

    /// The call `waiter` waits no more.
    fn forget_news(&self, waiter: u64) {
        if let Ok(mut core) = self.locked() {
            core.news.retain(|(of, _)| *of != waiter);
        }
    }

    fn close(&self, until: Option<Instant>) {
        let Ok(mut core) = self.locked() else {
            return;
        };
        core.is_closed = true;
        for work in std::mem::take(&mut core.pending) {
            core.done.push(work.id, work.op(), Err(Errno::CANCELED));
        }
        core.stream.wants_fin = true;
        core.progress();
        while !core.is_flushed() && !sys::time::expired(until) {
            drop(core);
            let pause: Timeout = Some(PAUSE);
            // A completion, or a grant; what it was `progress` finds.
            let _ = self.cq.wait(pause);
            match self.enter() {
                Ok(entered) => core = entered,
                Err(_) => return,
            }
        }
        core.lose(Errno::CONNRESET);
        core.show();
        core.tally = Tally::default();
        drop(core);
        if let Some(tcp) = &self.tcp {
            sys::socket::finish(tcp.as_fd());
        }
    }
}

/// Whether a descriptor is of a TCP connection.
fn check(tcp: BorrowedFd<'_>) -> Result<(), Errno> {
    if !sys::socket::is_tcp(tcp) {
        return Err(Errno::OPNOTSUPP);
    }
    if !sys::socket::is_connected(tcp) {
        return Err(Errno::NOTCONN);
    }
    Ok(())
}

/// What a VI NIC's error is to a sockets program.
fn errno_of(error: Error) -> Errno {
    match error {
        Error::Timeout => Errno::TIMEDOUT,
        Error::Reject | Error::NoMatch => Errno::CONNREFUSED,
        Error::NotReachable => Errno::HOSTUNREACH,
        Error::Resource => Errno::NOMEM,
        Error::NotSupported | Error::InvalidRdmaRead => Errno::OPNOTSUPP,
        Error::InvalidState => Errno::NOTCONN,
        Error::InvalidReliabilityLevel | Error::InvalidMtu | Error::InvalidQos => Errno::PROTO,
        _ => Errno::INVAL,
    }
}

static NEXT: AtomicU64 = AtomicU64::new(1);
/// How long a socket that is dropped waits for what was sent to go.
const FLUSH: std::time::Duration = std::time::Duration::from_secs(2);
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
