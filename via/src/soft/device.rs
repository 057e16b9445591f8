//! What a device brings to the engine, and what the engine does for its threads.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Instant;

use sys::mem::Memory;

use super::link::{Goodbye, Link};
use crate::provider::{Export, ViId};
use crate::{Capabilities, Error, MemHandle, NetAddress, NicAttributes, ViAttributes};

/// One kind of NIC without VI hardware.
pub trait Device: Send + Sync + Sized + 'static {
    /// One end of a connection.
    type Link: Link;
    /// A connection request that arrived.
    type Incoming: Incoming<Link = Self::Link> + 'static;
    /// A connection request under way.
    type Pending: Pending<Link = Self::Link>;
    /// How threads sleep on a completion queue.
    type CqWaiter: CqWaiter;

    /// Name, address and limits.
    fn attributes(&self) -> &NicAttributes;
    /// What the NIC does, and how.
    fn capabilities(&self) -> Capabilities;

    /// The engine is there: from now on the device may call it back.
    fn started(&self, service: Weak<dyn Service>);
    /// The NIC closes: stop all threads of the device, and have who is in [`Device::listen`] look whether it is over. Every link has been dropped.
    fn stop(&self);
    /// An application thread has begun to look after `vi`, or has stopped sleeping on it: it is no
    /// longer armed for the agent, which has to look again some time later whether it should be.
    fn stirred(&self, vi: ViId);
    /// The time that timeouts are measured in.
    fn now(&self) -> Instant;
    /// Where the handles of a place for regions begin, and how they go on. They count unless the device says random numbers, where
    /// peers that know of one region are not to guess the handles of others.
    fn handle_seed(&self) -> u32 {
        0
    }

    /// Asks the waiter at `ask.remote`. [`Error::NoMatch`] at once when there is none.
    fn request(&self, ask: &Ask) -> Result<Self::Pending, Error>;
    /// Offers a connection to the mirror image of `ask`.
    fn peer_request(&self, ask: &Ask) -> Result<Self::Pending, Error>;
    /// Whether requests to `host` arrive at this NIC.
    fn is_local(&self, host: [u8; 6]) -> bool {
        host == self.attributes().local_address
    }
    /// As [`NicOps::discover`](crate::provider::NicOps::discover).
    fn discover(&self, hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        let _ = hops;
        Err(Error::NotSupported)
    }
    /// Waits for a request to `local`; [`Error::Timeout`] at the deadline, [`Error::InvalidState`] once [`Device::stop`] finds that it `is_over`.
    fn listen(
        &self,
        local: &NetAddress,
        deadline: Option<Instant>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self::Incoming, Error>;

    /// Makes both ends: a link, and what the other end needs.
    fn export(&self, attributes: &ViAttributes) -> Result<(Self::Link, Export), Error> {
        let _ = attributes;
        Err(Error::NotSupported)
    }
    /// The other end of an [`Device::export`].
    fn import(
        &self,
        attributes: &ViAttributes,
        blob: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Established<Self::Link>, Error> {
        let _ = (attributes, blob, fds);
        Err(Error::NotSupported)
    }

    /// A way to sleep on a new completion queue.
    fn cq_waiter(&self) -> io::Result<Self::CqWaiter>;
    /// `link` now is connection number `connection` of VI `vi`, whose completion queue, if any,
    /// sleeps on `cq`.
    fn attach(
        &self,
        vi: ViId,
        connection: u32,
        link: &Self::Link,
        cq: Option<&Self::CqWaiter>,
    ) -> Result<(), Error>;
    /// `link` is not looked after any more: it is about to be dropped, or the device has [said](Service::ended) that it is over.
    fn detach(&self, vi: ViId, link: &Self::Link, cq: Option<&Self::CqWaiter>);
    /// The rights to `handle` change or end: peers that reach its memory on their own must not any
    /// more when this returns. Called with no lock held.
    fn revoke(&self, handle: MemHandle, memory: &Memory) {
        let _ = (handle, memory);
    }
}

/// Sleeps on a completion queue: on all its VIs at once.
pub trait CqWaiter: Send + Sync + 'static {
    /// Sleeps until a link of the queue or [`CqWaiter::wake`] wakes it. Adds to `rung` the VIs
    /// whose links did; there is nothing to read on the others.
    fn sleep(&self, deadline: Option<Instant>, rung: &mut Vec<ViId>);
    /// Wakes all sleepers.
    fn wake(&self);
}

/// Who asks whom for a connection.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// The asker's address.
    pub local: NetAddress,
    /// The address asked for.
    pub remote: NetAddress,
    /// The asker's VI.
    pub attributes: ViAttributes,
}

/// A connection that has been made.
#[derive(Debug)]
pub struct Established<L> {
    /// Our end.
    pub link: L,
    /// The VI at the other.
    pub remote: ViAttributes,
}

/// A connection request that arrived.
pub trait Incoming: Send {
    /// One end of a connection.
    type Link;
    /// The asker's address and VI.
    fn remote(&self) -> (NetAddress, ViAttributes);
    /// Whether a VI with these attributes may accept it.
    ///
    /// # Errors
    /// The code of the attribute in which the two differ.
    fn check(&self, ours: &ViAttributes) -> Result<(), Error> {
        super::connect::check_match(ours, &self.remote().1)
    }
    /// Says yes. [`Error::Timeout`] when the asker has given up.
    fn accept(&mut self, attributes: &ViAttributes) -> Result<Self::Link, Error>;
    /// Whether the asker has been told nothing by an [accept](Self::accept) that failed, and may be accepted yet.
    fn is_unanswered(&self) -> bool {
        false
    }
    /// Says no.
    fn reject(&mut self);
    /// Lets go of it without a word, in a child of the process that it came to.
    fn abandon(&mut self) {}
}

/// A connection request under way.
pub trait Pending: Send + Sync + 'static {
    /// One end of a connection.
    type Link;
    /// Waits for the outcome until `deadline` (a past one polls); `None` when there is none yet.
    /// A peer's request with other attributes ends in the code of the attribute.
    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<Self::Link>, Error>>;
    /// Gives up, and ends a [`Pending::wait`] of another thread with [`Error::InvalidState`].
    fn cancel(&self);
}

/// What an agent finds when it looks after a VI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// The application looks after it.
    Attended,
    /// Nobody does: the link is armed for the agent.
    Armed,
    /// There is no such VI, or it is not connected.
    Gone,
}

/// The engine, as the threads of a device see it.
pub trait Service: Send + Sync {
    /// The agent's bell rang for `vi`, or it is time to look: moves what is there to move.
    fn serve(&self, vi: ViId) -> Attention;
    /// Looks whether the application still looks after `vi`; if not, arms the link for the agent.
    fn tend(&self, vi: ViId) -> Attention;
    /// Connection number `connection` of `vi` has ended, but for frames that still wait to be read. The device is detached from it when this returns.
    /// What the link knows itself of the end counts for more than `why`.
    fn ended(&self, vi: ViId, connection: u32, why: Goodbye);
    /// The region `handle`, if a peer connected to `vi` may write it as a whole on its own, and
    /// what else it may do: `(memory, read)`.
    fn exposed(&self, vi: ViId, handle: MemHandle) -> Option<(Arc<Memory>, bool)>;
}
