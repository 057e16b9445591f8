//! The peer's owner leaves: this process goes on with its end, which is that of a pair, in place of the stream.
//!
//! The peer has said MOVE behind the last of its bytes. We connect to the place that its WAKEUP named, prove who we are, and say MOVED behind the
//! last of ours; then we are sent the descriptor, and bytes go from pair to pair.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::packet::Kind;
use sys::errno::Errno;
use sys::net::{Conn, Received, Sent};
use sys::relay::Pair;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use super::carry::{Inner, Relay};
use super::leave::{SECRET_LEN, name_of};
use crate::packet::stream::Stream;

/// How far it has come.
#[derive(Debug)]
pub(super) enum Follows {
    /// Nobody has asked.
    Not,
    Asking {
        conn: Conn,
        /// MOVED has been said.
        has_answered: bool,
    },
    Done,
}

impl Follows {
    pub(super) fn has_asked_nobody(&self) -> bool {
        matches!(self, Self::Not)
    }

    pub(super) fn has_answered(&self) -> bool {
        matches!(
            self,
            Self::Asking {
                has_answered: true,
                ..
            }
        )
    }
}

impl Relay {
    /// The next steps of going on with the peer's end. Whether the connection is broken.
    pub(super) fn follow(&self, inner: &mut Inner) -> bool {
        let watch = &self.bell().watch;
        if inner.follows.has_asked_nobody() && self.stream().is_asked_to_move() {
            // Who cannot be reached now may be later, until the VI is gone, too: `bring` sees to that, behind what has come.
            let asked = self.stream().place_of_peer().and_then(|place| ask(&place));
            let watched = asked.filter(|conn| watch.add(conn, self.bell().name).is_ok());
            if let Some(conn) = watched {
                inner.follows = Follows::Asking {
                    conn,
                    has_answered: false,
                };
            }
        }
        let Follows::Asking { conn, has_answered } = &mut inner.follows else {
            return false;
        };
        *has_answered = *has_answered || self.stream().say_move(Kind::Moved);
        let taken = match conn.recv(&mut [0; 64]) {
            Ok(Received::Nothing) => return false,
            Ok(Received::Packet { fds, .. }) => fds.into_iter().next(),
            Ok(Received::Closed) | Err(_) => None,
        };
        watch.remove(&*conn);
        let far = taken.and_then(|end| Pair::adopt(end).ok());
        let far = far.filter(|far| *has_answered && watch.add(far, self.bell().name).is_ok());
        inner.follows = Follows::Done;
        match far {
            // It comes once.
            Some(far) => drop(self.far().set(far)),
            None => {
                self.spoil(inner, Some(Errno::CONNRESET));
                return true;
            }
        }
        false
    }
}

/// Connects to who leaves.
fn ask(place: &[u8]) -> Option<Conn> {
    let secret = place.get(place.len().checked_sub(SECRET_LEN)?..)?;
    let conn = Conn::connect(&name_of(place)).ok()?;
    let sent: io::Result<Sent> = conn.send(secret, &[]);
    matches!(sent, Ok(Sent::Whole)).then_some(conn)
}

/// From now on this process goes on with ends that others leave: its calls know what to do with a socket that becomes the kernel's meanwhile.
#[inline]
pub(in crate::packet) fn allow() {
    FOLLOWS.store(1, Ordering::Relaxed);
}

/// Notes a stream whose peer leaves. Whether it is to be seen to.
pub(super) fn note(stream: &Arc<Stream>) -> bool {
    let allowed = FOLLOWS.load(Ordering::Relaxed) != 0;
    if allowed {
        lock().push(Arc::clone(stream));
    }
    allowed
}

/// Those that have been noted.
pub(super) fn noted() -> Vec<Arc<Stream>> {
    std::mem::take(&mut lock())
}

/// The list's lock.
pub(super) type Lock = MutexGuard<'static, Vec<Arc<Stream>>>;

pub(super) fn try_lock() -> Option<Lock> {
    NOTED.try_lock().ok()
}

fn lock() -> Lock {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

static FOLLOWS: AtomicU32 = AtomicU32::new(0);
static NOTED: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
