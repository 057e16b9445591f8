//! How a socket asks for a connection.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use sys::argument::{Family, LOOPBACK_OF_V6};
use sys::errno::Errno;
use sys::quiet;
use sys::sync::Ordering;

use super::super::stream::{Identity, Patience, Stream};
use super::super::table::Held;
use super::{Bound, Life, Socket};
use crate::conn::Origin;

impl Socket {
    /// Connects to whoever listens at `address`. Does not wait for its `accept`.
    ///
    /// # Errors
    /// `ECONNREFUSED` when nobody does, `EISCONN` also when it listens, `EALREADY` while another thread connects it, `ENETUNREACH`, `ETIMEDOUT`.
    pub fn connect(&self, address: SocketAddrV4, descriptor: u32) -> Result<(), Errno> {
        let bound = self.begin_to_connect()?;
        let asked = self.ask(address, descriptor, bound.clone(), Patience::FULL);
        self.settle_connect(bound, asked)
    }

    /// As [`Socket::connect`], for a program that does not wait: what is not done at once goes on behind it, and is shown to who polls.
    ///
    /// # Errors
    /// As [`Socket::connect`], and `EINPROGRESS`.
    pub(in crate::packet) fn connect_behind(
        held: &Arc<Held>,
        address: SocketAddrV4,
        descriptor: u32,
    ) -> Result<(), Errno> {
        let bound = held.begin_to_connect()?;
        let at_once = match held.adapter.is_far(address) {
            // Its answer takes longer, and to ask twice would be two connections.
            Ok(true) => Err(Errno::TIMEDOUT),
            Ok(false) => held.ask(address, descriptor, bound.clone(), Patience::NONE),
            Err(errno) => Err(errno),
        };
        if !matches!(at_once, Err(Errno::CONNREFUSED | Errno::TIMEDOUT)) {
            return held.settle_connect(bound, at_once);
        }
        // Where there is no descriptor for that it is shown later.
        let _ = held.join();
        held.show_busy();
        let (asker, kept) = (Arc::clone(held), bound.clone());
        let started = quiet::spawn("sovia-asker", None, move || {
            let asked = asker.ask(address, descriptor, kept.clone(), Patience::FULL);
            if let Err(errno) = asked {
                asker.fail(kept, errno);
            }
        });
        if started.is_err() {
            let asked = held.ask(address, descriptor, bound.clone(), Patience::FULL);
            return held.settle_connect(bound, asked);
        }
        Err(Errno::INPROGRESS)
    }

    /// What a connect that went on behind the program came to, once.
    #[cold]
    pub(in crate::packet) fn take_failure(&self) -> Option<Errno> {
        let failure = std::mem::take(&mut *self.failure());
        if let (Some(_), Some(show)) = (failure, &self.show) {
            show.told();
        }
        failure
    }

    fn begin_to_connect(&self) -> Result<Option<Bound>, Errno> {
        let mut life = self.lock();
        let bound = match &*life {
            Life::Fresh(bound) => bound.clone(),
            Life::Connecting(_) => return Err(Errno::ALREADY),
            Life::Listening(_) | Life::Connected(..) => return Err(Errno::ISCONN),
        };
        *life = Life::Connecting(bound.clone());
        Ok(bound)
    }

    /// It is nowhere again where that failed.
    fn settle_connect(&self, bound: Option<Bound>, asked: Result<(), Errno>) -> Result<(), Errno> {
        if asked.is_err() {
            *self.lock() = Life::Fresh(bound);
        }
        asked
    }

    /// Who polls learns that it failed, and who asks why.
    fn fail(&self, bound: Option<Bound>, errno: Errno) {
        let mut life = self.lock();
        *self.failure() = Some(errno);
        self.is_spent.store(true, Ordering::Relaxed);
        *life = Life::Fresh(bound);
        drop(life);
        if self.watched.load(Ordering::Relaxed) {
            self.watch_now();
        }
    }

    fn ask(
        &self,
        address: SocketAddrV4,
        descriptor: u32,
        bound: Option<Bound>,
        patience: Patience,
    ) -> Result<(), Errno> {
        let mut address = address;
        if self.family == Family::V6 && address.ip().is_unspecified() {
            address.set_ip(LOOPBACK_OF_V6);
        }
        let here = SocketAddrV4::new(self.adapter.facing(*address.ip()), 0);
        let bound = bound.unwrap_or_else(|| Bound::numbered(here));
        let mut local = bound.at;
        if local.ip().is_unspecified() {
            local.set_ip(*here.ip());
        }
        let identity = Identity {
            descriptor,
            address: local.ip().octets(),
            port: local.port(),
        };
        let remote = self.adapter.reach(address)?;
        // As over TCP: nobody elsewhere could answer.
        if local.ip().is_loopback() && self.adapter.is_far(address)? {
            return Err(Errno::INVAL);
        }
        let stream = Stream::connect_within(&self.adapter, &remote, identity, patience)?;
        if let Err(errno) = self.join() {
            stream.abort();
            return Err(errno);
        }
        stream.meet(MEETING_TIME);
        self.adopt(stream);
        let bound = Bound { at: local, ..bound };
        self.become_now(self.lock(), Life::Connected(bound, Some(address)));
        self.tell(Origin::Connected);
        self.set_number(descriptor);
        Ok(())
    }
}

/// How long a `connect` waits for the listener's first packet, which says what may be sent.
const MEETING_TIME: Duration = Duration::from_millis(100);
