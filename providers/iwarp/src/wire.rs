//! A TCP connection, and how one sleeps on it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};
use sys::poll::{Interest, Poller};
use sys::section;
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use via::soft::Waiter;

/// A connection's socket, shared by its link, by those who sleep on it and by the agent.
pub(crate) struct Wire {
    tcp: OwnedFd,
    bell: Bell,
    /// It is, unless somebody has emptied it.
    rung: AtomicBool,
    /// Wake-ups so far.
    rings: AtomicU32,
    sleepers: AtomicU32,
    /// Octets wait for room in the socket: a sleeper waits for that too.
    wants_room: AtomicBool,
    /// The peer is to be nudged if it goes on saying nothing: nobody sleeps for longer than that.
    unheard: AtomicBool,
    /// It should be armed, and is not.
    unwatched: AtomicBool,
    watch: Mutex<Option<Watch>>,
}

/// Readable when a local thread has woken the sleepers.
pub(crate) struct Bell(OwnedFd);

/// The readiness set that the socket is a member of, unless its owner polls.
struct Watch {
    set: Arc<Poller>,
    token: u64,
    is_member: bool,
    /// What it is armed for, until it rings.
    armed: Option<Interest>,
}

impl Wire {
    /// # Errors
    /// When the descriptor is no TCP socket, or there is none for the bell.
    pub(crate) fn new(tcp: OwnedFd) -> io::Result<Self> {
        Self::with_bell(tcp, Bell::new()?)
    }

    /// As [`Wire::new`], by one who had to know before that there is a bell.
    ///
    /// # Errors
    /// When the descriptor is no TCP socket.
    pub(crate) fn with_bell(tcp: OwnedFd, bell: Bell) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&tcp, true)?;
        sockopt::set_tcp_nodelay(&tcp, true)?;
        Ok(Self {
            tcp,
            bell,
            rung: AtomicBool::new(false),
            rings: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            wants_room: AtomicBool::new(false),
            unheard: AtomicBool::new(false),
            unwatched: AtomicBool::new(false),
            watch: Mutex::default(),
        })
    }

    pub(crate) fn tcp(&self) -> &OwnedFd {
        &self.tcp
    }

    /// Under the lock of the VI. Whoever has armed the set, or sleeps, did so for input only.
    pub(crate) fn set_wants_room(&self, wants: bool) {
        if self.wants_room.load(Ordering::Relaxed) == wants {
            return;
        }
        self.wants_room.store(wants, Ordering::SeqCst);
        if wants {
            let is_armed = self
                .watch()
                .as_ref()
                .is_some_and(|watch| watch.armed.is_some());
            if is_armed {
                self.arm_set();
            }
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                self.ring();
            }
        }
    }

    /// Wakes the sleepers.
    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.rung.store(true, Ordering::SeqCst);
            // Full means that it is readable.
            let _readable = rustix::io::write(&self.bell.0, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn set_unheard(&self, unheard: bool) {
        self.unheard.store(unheard, Ordering::Relaxed);
    }

    pub(crate) fn is_unheard(&self) -> bool {
        self.unheard.load(Ordering::Relaxed)
    }

    /// FIN.
    pub(crate) fn end_output(&self) {
        // Whoever is gone already does not miss it.
        let _gone = shutdown(&self.tcp, Shutdown::Write);
    }

    /// Becomes a member of `set`, armed.
    pub(crate) fn join(&self, set: Arc<Poller>, token: u64) -> io::Result<()> {
        set.add(&self.tcp, token, Interest::Once)?;
        *self.watch() = Some(Watch {
            set,
            token,
            is_member: true,
            armed: Some(Interest::Once),
        });
        Ok(())
    }

    pub(crate) fn leave(&self) {
        self.unwatch();
        self.watch().take();
    }

    /// It rang, and is silent until it is armed again.
    pub(crate) fn rang(&self) {
        if let Some(watch) = &mut *self.watch() {
            watch.armed = None;
        }
    }

    /// The set tells of input from now on, once; and of room, if that is waited for.
    pub(crate) fn arm_set(&self) {
        let interest = if self.wants_room.load(Ordering::Relaxed) {
            Interest::OnceReadWrite
        } else {
            Interest::Once
        };
        if let Some(watch) = &mut *self.watch()
            && watch.armed != Some(interest)
        {
            let armed = if watch.is_member {
                watch.set.modify(&self.tcp, watch.token, interest)
            } else {
                watch.set.add(&self.tcp, watch.token, interest)
            };
            watch.is_member |= armed.is_ok();
            watch.armed = armed.is_ok().then_some(interest);
            self.unwatched.store(armed.is_err(), Ordering::Relaxed);
        }
    }

    /// The set does not hear of the socket until it is armed again: whoever sends pays for each member, whether it is armed or not, a tenth of a
    /// microsecond a segment.
    pub(crate) fn unwatch(&self) {
        if let Some(watch) = &mut *self.watch()
            && std::mem::take(&mut watch.is_member)
        {
            watch.armed = None;
            let removed = watch.set.remove(&self.tcp);
            debug_assert!(removed.is_ok(), "a member until now");
        }
    }

    /// There was no room in the set when it was to be armed.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.unwatched.load(Ordering::Relaxed)
    }

    /// Makes ready for a sleeper: what [`Sleepers::sleep`] takes. Under the lock of the VI, as [`Sleepers::wake`] is.
    pub(crate) fn arm_sleeper(&self) -> u32 {
        // One who is on his way out has seen it.
        if self.sleepers.load(Ordering::SeqCst) == 0 && self.rung.swap(false, Ordering::SeqCst) {
            let _silent = rustix::io::read(&self.bell.0, &mut [0; 8]);
        }
        self.rings.load(Ordering::SeqCst)
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Option<Watch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// # Errors
    /// When there is no descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(bell))
    }
}

/// Those who sleep on a wire.
#[derive(Clone)]
pub(crate) struct Sleepers(pub(crate) Arc<Wire>);

impl Waiter for Sleepers {
    fn sleep(&self, ticket: u32, deadline: Option<Instant>) {
        let wire = &self.0;
        // Whoever wakes counts a ring and then looks for sleepers: one of the two sees the other.
        wire.sleepers.fetch_add(1, Ordering::SeqCst);
        if wire.rings.load(Ordering::SeqCst) == ticket {
            let room = wire.wants_room.load(Ordering::Relaxed);
            let flags = if room {
                PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP
            } else {
                PollFlags::IN | PollFlags::RDHUP
            };
            let mut fds = [
                PollFd::new(&wire.tcp, flags),
                PollFd::new(&wire.bell.0, PollFlags::IN),
            ];
            let nudge = wire.is_unheard().then_some(NUDGE_AFTER);
            // A call in a section comes to its end for a signal; others go on.
            if !section::poll(&fds, nudge, deadline) {
                let nudge = nudge.map(|nudge| Instant::now() + nudge);
                wait_for(&mut fds, deadline.into_iter().chain(nudge).min());
            }
        }
        wire.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        self.0.ring();
    }
}

/// Waits until one of `fds` is ready or `deadline` has passed; a signal does not end it.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], deadline: Option<Instant>) {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // One that does not fit is longer than anybody waits.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // Handlers of signals run meanwhile, for no lock is held.
        match section::paused(|| poll(fds, left.as_ref())) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// How long a stranger that was asked may say nothing before it is nudged.
pub(crate) const NUDGE_AFTER: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// The agent has to look by itself then.
    #[test]
    fn what_finds_no_room_in_its_set_says_so() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let tcp = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        let wire = Wire::new(tcp.into()).expect("TCP");
        let set = Arc::new(Poller::new().expect("a set"));
        wire.join(Arc::clone(&set), 7).expect("there is room");
        wire.unwatch();
        assert!(!wire.is_unwatched());
        wire.arm_set();
        assert!(!wire.is_unwatched());
        wire.unwatch();
        // Somebody else's, so that it cannot be added again.
        set.add(wire.tcp(), 8, Interest::Hangup).expect("no member");
        wire.arm_set();
        assert!(wire.is_unwatched());
        set.remove(wire.tcp()).expect("a member");
        wire.arm_set();
        assert!(!wire.is_unwatched());
        wire.leave();
        assert!(set.remove(wire.tcp()).is_err(), "no member any more");
    }
}
