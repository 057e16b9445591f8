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
mod inner;
mod meeting;
mod posts;
mod raw;
mod region;
mod work;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;
use via::{Error, Nic, Vi};

pub use self::calls::{Directions, Wait};
pub use self::events::{COMPLETION, END, READABLE, WRITABLE};
use self::inner::Inner;
use self::raw::{Raw, check, errno_of};
pub use self::region::{Region, Remote, SLICES_MAX, Slice};
pub use self::work::{Completion, OUTSTANDING_MAX, Op};

/// An extended socket. Dropping it closes the connection: what was sent still goes.
///
/// Its calls may be made from any thread, and not from signal handlers. In a forked child they answer `ENOTCONN`: the parent has the connection.
pub struct Socket {
    inner: Arc<Inner>,
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
            && let Ok(mut core) = self.inner.locked()
        {
            core.watched = true;
            core.progress();
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

    /// Closes it, as dropping it does; what was sent before goes for as long as `until`. To the peer it is a reset where bytes are unread. Nobody is called back any more; for a callback that runs
    /// [`Socket::off_events`] waits.
    pub fn close(&self, until: Option<Instant>) {
        self.end(until, false);
    }

    /// The same, and to the peer it is a reset (`SO_LINGER` of no time).
    pub fn reset(&self, until: Option<Instant>) {
        self.end(until, true);
    }

    fn end(&self, until: Option<Instant>, resets: bool) {
        if self.inner.is_home() {
            self.inner.events.stop();
        }
        self.inner.close(until, resets);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.off_events();
        self.inner.close(Some(sys::time::now() + FLUSH), false);
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Socket").field(&self.inner.id).finish()
    }
}

static NEXT: AtomicU64 = AtomicU64::new(1);
/// How long a socket that is dropped waits for what was sent to go.
const FLUSH: Duration = Duration::from_secs(2);
