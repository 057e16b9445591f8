//! One relay: from packets to the pair, and from the pair to packets, as far as there is room.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sys::errno::Errno;
use sys::relay::Pair;

use super::Bell;
use super::follow::Follows;
use super::leave::Leaving;
use crate::packet::stream::Stream;
use crate::packet::stream::relay::{Poured, Shut};
use crate::packet::table::{self, sharing::numbers};

/// A stream and its pair.
#[derive(Debug)]
pub(super) struct Relay {
    stream: Arc<Stream>,
    pair: Pair,
    bell: Bell,
    /// The end of the peer's pair, which goes on in place of the stream.
    far: OnceLock<Pair>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    /// The program has been told of the end of what comes.
    pub(super) has_ended: bool,
    /// The program wants nothing after what has come by now.
    is_ending: bool,
    /// Nobody will take what comes.
    is_shut: bool,
    /// The peer has been told of the end of what goes.
    has_said_end: bool,
    /// There is no room in the NIC for all that the program has written.
    has_more: bool,
    pub(super) is_over: bool,
    /// The peer's process hands its end over.
    pub(super) follows: Follows,
    /// This process does.
    pub(super) leaving: Option<Leaving>,
    pub(super) scratch: Box<[u8]>,
}

impl Relay {
    pub(super) fn new(stream: Arc<Stream>, pair: Pair, bell: Bell, shut: Shut) -> Self {
        if shut.output {
            pair.end_of_theirs();
        }
        Self {
            stream,
            pair,
            bell,
            far: OnceLock::new(),
            inner: Mutex::new(Inner {
                has_ended: false,
                is_ending: shut.input,
                is_shut: false,
                has_said_end: shut.output,
                has_more: false,
                is_over: false,
                follows: Follows::Not,
                leaving: None,
                scratch: vec![0; AT_ONCE].into(),
            }),
        }
    }

    pub(super) fn pair(&self) -> &Pair {
        &self.pair
    }

    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    pub(super) fn far(&self) -> &OnceLock<Pair> {
        &self.far
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Moves what can be moved. `false` when it is over.
    pub(super) fn carry(&self) -> bool {
        let mut inner = self.lock();
        if inner.is_over {
            return true;
        }
        let inner = &mut *inner;
        // Before what goes is looked at: nothing is written after that.
        let is_left = self.pair.is_left();
        if self.part(inner) {
            inner.is_over = true;
            return false;
        }
        let broken = self.follow(inner) || self.bring(inner) || self.send(inner);
        if broken {
            self.stream.close();
        } else if is_left && inner.has_said_end {
            // What came and nobody read is for the peer to know, which `close` sees to.
            self.stream.close();
            if self.far.get().is_none() {
                table::leave(&self.stream);
            }
        } else {
            return true;
        }
        inner.is_over = true;
        false
    }

    /// Takes what came to the program. Whether the connection is broken.
    fn bring(&self, inner: &mut Inner) -> bool {
        if inner.leaving.is_some() {
            return false;
        }
        let mut shut = inner.is_shut;
        let poured = self.stream.pour(&mut inner.scratch, |bytes, is_urgent| {
            if shut {
                return bytes.len();
            }
            match self.pair.give_as(bytes, is_urgent) {
                Err(Errno::PIPE) => {
                    shut = !self.pair.is_left();
                    0
                }
                given => given.unwrap_or(0),
            }
        });
        inner.is_shut = shut;
        if std::mem::take(&mut inner.is_ending) {
            inner.is_shut = true;
            self.pair.end();
        }
        match poured {
            Poured::All | Poured::Part => false,
            Poured::End => {
                self.tell_end(inner);
                false
            }
            Poured::Moved { end, lost } => {
                if end {
                    self.tell_end(inner);
                } else if lost && inner.follows.has_asked_nobody() {
                    self.spoil(inner, Some(Errno::CONNRESET));
                    return true;
                }
                self.bring_from_far(inner)
            }
            Poured::Broken(error) => {
                self.spoil(inner, error);
                true
            }
        }
    }

    fn tell_end(&self, inner: &mut Inner) {
        if !std::mem::replace(&mut inner.has_ended, true) {
            self.pair.end();
        }
    }

    /// As [`Relay::bring`], from the pair that goes on in place of the stream.
    fn bring_from_far(&self, inner: &mut Inner) -> bool {
        let Some(far) = self.far.get().filter(|_| !inner.has_ended) else {
            return false;
        };
        loop {
            let mut is_urgent = false;
            let seen = match far.see_as(&mut inner.scratch, &mut is_urgent) {
                Ok(0) => {
                    self.tell_end(inner);
                    return false;
                }
                Ok(seen) => seen,
                Err(Errno::CONNRESET) => {
                    self.spoil(inner, Some(Errno::CONNRESET));
                    return true;
                }
                Err(_) => return false,
            };
            let bytes = inner.scratch.get(..seen).unwrap_or_default();
            let given = match self.pair.give_as(bytes, is_urgent) {
                _ if inner.is_shut => seen,
                Err(Errno::PIPE) => {
                    inner.is_shut = !self.pair.is_left();
                    if !inner.is_shut {
                        return false;
                    }
                    seen
                }
                Err(_) => return false,
                Ok(given) => given,
            };
            far.take_as(given, is_urgent);
        }
    }

    /// Takes what the program wrote to the peer. Whether the connection is broken.
    fn send(&self, inner: &mut Inner) -> bool {
        if inner.has_said_end {
            return false;
        }
        inner.has_more = inner.is_between();
        if inner.has_more {
            return false;
        }
        let far = self.far.get();
        loop {
            // The kernel tells of a reset once: nobody else asks.
            let mut is_urgent = false;
            let seen = match self.pair.see_as(&mut inner.scratch, &mut is_urgent) {
                Ok(0) => {
                    inner.has_said_end = true;
                    match far {
                        Some(far) => far.end(),
                        // A connection that is broken shows that by itself.
                        None => drop(self.stream.end()),
                    }
                    return false;
                }
                Ok(seen) => seen,
                Err(Errno::CONNRESET) => {
                    // Who had it left something unread: as over TCP the peer is to know.
                    self.stream.abort();
                    return true;
                }
                Err(_) => return false,
            };
            let bytes = inner.scratch.get(..seen).unwrap_or_default();
            let sent = match (far, bytes) {
                (Some(far), _) => far.give_as(bytes, is_urgent),
                (None, [byte]) if is_urgent => self.stream.push_urgent(*byte).map(|()| 1),
                (None, _) => self.stream.push(bytes),
            };
            match sent {
                Ok(sent) => self.pair.take_as(sent, is_urgent),
                Err(Errno::AGAIN) => {
                    inner.has_more = true;
                    return false;
                }
                Err(errno) => {
                    self.spoil(inner, Some(errno));
                    return true;
                }
            }
        }
    }

    /// Tells the program that the connection broke, as far as a pair can: closed with something in it that nobody took it says `ECONNRESET`.
    pub(super) fn spoil(&self, inner: &mut Inner, error: Option<Errno>) {
        if error == Some(Errno::CONNRESET) {
            let sockets = table::of_stream(&self.stream);
            self.pair
                .spoil(&sockets.iter().flat_map(numbers).collect::<Vec<_>>());
        } else {
            while let Ok(seen @ 1..) = self.pair.see(&mut inner.scratch) {
                self.pair.take(seen);
            }
        }
    }

    /// Whether something has been written that the NIC has no room for yet, or nobody has the other end and the peer has not been told.
    pub(super) fn is_busy(&self) -> bool {
        let inner = self.lock();
        !inner.is_over && (inner.has_more || self.pair.is_left())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The stream takes nothing more, and nothing else does yet.
    fn is_between(&self) -> bool {
        self.follows.has_answered() || self.leaving.as_ref().is_some_and(Leaving::is_said)
    }
}

const AT_ONCE: usize = 32 << 10;
