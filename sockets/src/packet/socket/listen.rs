//! How a socket listens and accepts.

use std::sync::Mutex;
use std::time::Duration;

use sys::errno::Errno;
use sys::sync::mapped::AtomicU32;
use sys::sync::{AtomicBool, Ordering};

use super::address::{ANYWHERE, PORTS_TRIED};
use super::{Bound, Life, Socket};
use crate::conn::Origin;
use crate::packet::listener::Listener;
use crate::packet::wait::Wait;

impl Socket {
    /// Begins to accept connections: from now on a peer's `connect` succeeds, up to `backlog` before our `accept`.
    ///
    /// # Errors
    /// `EADDRINUSE`; `EINVAL` when it is connected.
    pub fn listen(&self, backlog: usize) -> Result<(), Errno> {
        let life = self.lock();
        match &*life {
            Life::Fresh(bound) => {
                let deferral = self.kept().deferral;
                let start = |Bound { at, claim, .. }: Bound| {
                    Listener::start(&self.adapter, at, claim, backlog, deferral)
                };
                let anywhere = || start(self.claim(ANYWHERE)?);
                let listener = match bound {
                    Some(bound) => start(bound.clone())?,
                    // A NIC may know of others than the claims do.
                    None => (0..PORTS_TRIED)
                        .map(|_| anywhere())
                        .find(|started| !matches!(started, Err(Errno::ADDRINUSE)))
                        .unwrap_or(Err(Errno::ADDRINUSE))?,
                };
                if let Err(errno) = self.join() {
                    listener.close();
                    return Err(errno);
                }
                self.become_now(life, Life::Listening(listener));
                Ok(())
            }
            Life::Listening(listener) => {
                listener.set_backlog(backlog);
                Ok(())
            }
            Life::Connecting(_) | Life::Connected(..) => Err(Errno::INVAL),
        }
    }

    /// How long a connection waits for its first bytes before it is there to be accepted (`TCP_DEFER_ACCEPT`).
    pub(in crate::packet) fn set_deferral(&self, deferral: Option<Duration>) {
        self.kept().deferral = deferral;
        if let Life::Listening(listener) = &*self.lock() {
            listener.set_deferral(deferral);
        }
    }

    /// The oldest connection.
    ///
    /// # Errors
    /// `EINVAL` unless it listens; `EAGAIN` when there is none and `patient` says that it may not wait; `EINTR`.
    pub fn accept<W: Into<Wait>>(&self, patient: impl Fn() -> W) -> Result<Self, Errno> {
        let Life::Listening(listener) = self.lock().clone() else {
            return Err(Errno::INVAL);
        };
        let stream = listener.accept(|| patient().into())?;
        let accepted_at = Bound {
            at: listener.local_of(&stream),
            claim: None,
            given: None,
        };
        let accepted = Self {
            life: Mutex::new(Life::Connected(accepted_at, None)),
            resets: AtomicBool::new(self.resets.load(Ordering::Relaxed)),
            kept: Mutex::new(*self.kept()),
            options: Mutex::new(self.options().clone()),
            nodelay: AtomicU32::new(self.nodelay().into()),
            ..Self::of(self.family, &self.adapter)
        };
        accepted.adopt(stream);
        accepted.tell(Origin::Accepted);
        Ok(accepted)
    }

    /// There is no descriptor for what was accepted: it is the next again.
    pub(in crate::packet) fn put_back(&self, accepted: &Self) {
        let Ok(stream) = accepted.stream() else {
            return;
        };
        match &*self.lock() {
            Life::Listening(listener) => listener.put_back(stream),
            _ => stream.abort(),
        }
    }

    /// Whether it listens.
    pub fn is_listening(&self) -> bool {
        matches!(&*self.lock(), Life::Listening(_))
    }
}
