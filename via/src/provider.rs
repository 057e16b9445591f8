//! What a VI NIC must do, and may declare.
//!
//! A provider is a [`Driver`]: a name and a way to open the device. What it opens are tables of
//! operations, [`NicOps`], [`ViOps`], [`CqOps`] and [`ConnOps`], behind which it is free: a
//! software NIC builds them from [`crate::soft`], a hardware NIC passes them on to its adapter.
//! An operation that a NIC does not have answers [`Error::NotSupported`], and its
//! [`Capabilities`] say so beforehand.
//!
//! These tables speak in ids and raw addresses, as VIPL does, so that the C interface is a thin
//! layer over them; [`crate::Nic`] and its companions are the typed layer for Rust.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use sys::mem::Memory;

use crate::window::Windows;
use crate::{
    AsyncError, Capabilities, Completion, Descriptor, DescriptorAt, Done, Error, MemAttributes,
    NetAddress, NicAttributes, Queue, Segment, ViAttributes, ViState,
};

/// A kind of VI NIC that can be opened.
pub trait Driver: Send + Sync {
    /// The device name that `VipOpenNic` takes.
    fn name(&self) -> &'static str;

    /// Opens the device. Every call gives a NIC of its own: tags, memory, VIs and completion
    /// queues belong to the handle that made them.
    ///
    /// # Errors
    /// [`Error::Resource`] when this process has opened it too often, or the host lacks something.
    fn open(&self, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error>;

    /// The memory that it lends to byte streams, if its RDMA writes are stores of this CPU.
    fn windows(&self) -> Option<&'static dyn Windows> {
        None
    }
}

/// How to open a NIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Follow the specification where old programs need leniency: no default protection tag, no
    /// default memory attributes, no destruction of VIs that were not drained.
    pub strict: bool,
    /// Calls that wait sleep at once, where they would poll for some microseconds first.
    pub sleeps_at_once: bool,
}

/// A protection tag of one NIC handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtagId(pub u32);

/// Names a registered region, on the wire too (`VIP_MEM_HANDLE`). 0 names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemHandle(pub u32);

/// A VI of one NIC handle; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ViId(pub u32);

/// A completion queue of one NIC handle; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CqId(pub u32);

/// How long to wait; `None` is without limit (`VIP_INFINITE`).
pub type Timeout = Option<Duration>;

/// Called for asynchronous errors, on a thread of the NIC, one at a time.
pub type ErrorHandler = Arc<dyn Fn(&AsyncError) + Send + Sync>;

/// Called once with a completed descriptor, on a thread of the NIC.
pub type DoneHandler = Box<dyn FnOnce(Completion) + Send>;

/// Called once with an entry of a completion queue, on a thread of the NIC.
pub type CqHandler = Box<dyn FnOnce(CqEntry) + Send>;

/// An entry of a completion queue: the named queue of the VI has one more completed descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CqEntry {
    /// The VI.
    pub vi: ViId,
    /// Which of its queues.
    pub queue: Queue,
}

/// An open NIC.
pub trait NicOps: Send + Sync {
    /// Name, address and limits.
    fn attributes(&self) -> &NicAttributes;
    /// What the NIC does itself, and how.
    fn capabilities(&self) -> Capabilities;
    /// Whether [`NicOps::close`] was called, or the process is a fork of the one that opened it.
    fn is_closed(&self) -> bool;
    /// Whether it was opened strict.
    fn is_strict(&self) -> bool;

    /// Makes a protection tag. Errors: [`Error::Resource`] at the limit.
    fn create_ptag(&self) -> Result<PtagId, Error>;
    /// Errors: [`Error::Resource`] while a VI or region uses it, [`Error::InvalidPtag`] if unknown.
    fn destroy_ptag(&self, ptag: PtagId) -> Result<(), Error>;

    /// Registers `memory`, whole.
    ///
    /// Errors: [`Error::InvalidParameter`] for no bytes, [`Error::Resource`] over a limit,
    /// [`Error::InvalidPtag`], [`Error::InvalidRdmaRead`].
    fn register_mem(
        &self,
        memory: Arc<Memory>,
        attributes: MemAttributes,
    ) -> Result<MemHandle, Error>;
    /// Ends a registration; the memory is not touched after this returns.
    /// Errors: [`Error::InvalidParameter`] unless `addr` is where the region begins.
    fn deregister_mem(&self, addr: u64, handle: MemHandle) -> Result<(), Error>;
    /// Changes tag and RDMA rights of a region, for operations processed from now on.
    fn set_mem_attributes(
        &self,
        addr: u64,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), Error>;
    /// Tag and RDMA rights of a region.
    fn query_mem(&self, addr: u64, handle: MemHandle) -> Result<MemAttributes, Error>;

    /// Makes a VI, idle, whose queues report to the given completion queues.
    fn create_vi(
        &self,
        attributes: ViAttributes,
        send_cq: Option<CqId>,
        recv_cq: Option<CqId>,
    ) -> Result<Arc<dyn ViOps>, Error>;
    /// Makes a completion queue for `entries` entries.
    fn create_cq(&self, entries: u32) -> Result<Arc<dyn CqOps>, Error>;

    /// Waits for a connection request to `local`. Timeout zero polls.
    /// Errors: [`Error::Timeout`], [`Error::InvalidParameter`] when the host part is not this NIC's.
    fn connect_wait(&self, local: &NetAddress, timeout: Timeout)
    -> Result<Box<dyn ConnOps>, Error>;

    /// Sets or, with `None`, removes the handler of asynchronous errors. Without one they are
    /// printed to standard error.
    fn set_error_handler(&self, handler: Option<ErrorHandler>) -> Result<(), Error>;

    /// Takes the other half of [`ViOps::export`] and connects `vi` to it.
    /// Errors: as [`ConnOps::accept`]; [`Error::InvalidParameter`] for what is no export of ours.
    fn import(&self, vi: &dyn ViOps, blob: &[u8], fds: Vec<OwnedFd>) -> Result<(), Error>;

    /// The host parts of the addresses of NICs within `hops` of this one, its own first (VIPL's autodiscovery).
    /// Errors: [`Error::NotSupported`] by a NIC that knows of none but itself, though there may be others.
    fn discover(&self, hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        let _ = hops;
        Err(Error::NotSupported)
    }

    /// Disconnects and destroys everything made under this handle.
    fn close(&self);
}

/// A connection request that arrived.
pub trait ConnOps: Send {
    /// Who asks, discriminator included.
    fn remote_address(&self) -> NetAddress;
    /// The asker's VI.
    fn remote_attributes(&self) -> ViAttributes;
    /// Connects `vi`, which must be idle and of this NIC. After an error that names an attribute
    /// the request is still pending and may be accepted again, as it is where this side lacked something before the asker was told.
    fn accept(&mut self, vi: &dyn ViOps) -> Result<(), Error>;
    /// Whether it may still be accepted.
    fn is_pending(&self) -> bool;
    /// Refuses.
    fn reject(self: Box<Self>) -> Result<(), Error>;
}

/// What [`ViOps::export`] hands out: to be carried to the other end by the caller's own means.
#[derive(Debug)]
pub struct Export {
    /// Goes to the other end with the descriptors.
    pub blob: Vec<u8>,
    /// Go with the blob, in this order.
    pub fds: Vec<OwnedFd>,
}

/// A VI.
pub trait ViOps: Send + Sync {
    /// Its id within the NIC handle.
    fn id(&self) -> ViId;
    /// For providers: the concrete object behind the table.
    fn as_any(&self) -> &dyn std::any::Any;

    /// Where it is in its life.
    fn state(&self) -> Result<ViState, Error>;
    /// Its attributes, as assigned.
    fn attributes(&self) -> Result<ViAttributes, Error>;
    /// Whether `queue` holds no descriptor, completed or not.
    fn is_empty(&self, queue: Queue) -> Result<bool, Error>;
    /// Changes the attributes of an idle VI.
    fn set_attributes(&self, attributes: ViAttributes) -> Result<(), Error>;

    /// Asks the waiter at `remote` for a connection and waits for the answer, which tells the
    /// other VI's attributes.
    fn connect_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<ViAttributes, Error>;
    /// Offers a connection to whoever offers the mirror image; does not wait.
    fn peer_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<(), Error>;
    /// `None` while nobody has matched.
    fn peer_done(&self) -> Result<Option<ViAttributes>, Error>;
    /// Waits until the request's own timeout.
    fn peer_wait(&self) -> Result<ViAttributes, Error>;
    /// Connects by endpoint exchange: this end is connected at once; the other is, once
    /// [`NicOps::import`] has taken what this returns. If that never happens the connection is lost
    /// when the returned descriptors are closed.
    fn export(&self) -> Result<Export, Error>;
    /// Ends whatever connection or request there is; all that is queued completes, flushed. When this returns no handler of errors runs, or will
    /// run, for the VI, unless called from one; who is [handed](ViOps::notify) a descriptor is not waited for before [`ViOps::destroy`].
    fn disconnect(&self) -> Result<(), Error>;
    /// Destroys an idle, drained VI.
    fn destroy(&self) -> Result<(), Error>;

    /// Queues a descriptor under the name `token`.
    fn post(&self, queue: Queue, descriptor: &Descriptor<'_>, token: u64) -> Result<(), Error>;
    /// Queues the descriptor that lies at `at`, in VIPL's layout; its outcome is written there.
    fn post_at(&self, queue: Queue, at: DescriptorAt) -> Result<(), Error>;
    /// Looks at the head of `queue` and takes it if complete. Never blocks.
    fn done(&self, queue: Queue) -> Result<Done, Error>;
    /// As [`ViOps::done`], but waits while the head is in progress.
    /// Errors: [`Error::Timeout`]; [`Error::InvalidParameter`] when the queue reports to a
    /// completion queue.
    fn wait(&self, queue: Queue, timeout: Timeout) -> Result<Done, Error>;
    /// As [`ViOps::wait`], or [`Done::NotDone`] when a signal was handled meanwhile, where the NIC notices.
    fn wait_or_signal(&self, queue: Queue, timeout: Timeout) -> Result<Done, Error> {
        self.wait(queue, timeout)
    }
    /// Ends the wait on `queue` that is under way, or else the next, as a signal would: [`ViOps::wait_or_signal`] and [`ViOps::receive`].
    /// Where signals are not noticed, nothing happens.
    fn interrupt(&self, queue: Queue) {
        let _ = queue;
    }
    /// From now on a message that needs a receive, where none is posted, waits in the NIC and holds its sender back; else it breaks the connection.
    /// Errors: [`Error::NotSupported`] by a NIC without flow control of its own; [`Error::InvalidState`] unless idle.
    fn hold_back(&self) -> Result<(), Error> {
        Err(Error::NotSupported)
    }
    /// Sends a message of `bytes`, which may be any memory and are the caller's again when this returns; no descriptor is used and nothing
    /// completes. `false`, and nothing was sent, where only a descriptor will do: the NIC does not copy, has no room now, or has sends queued.
    fn send_copied(&self, bytes: &[u8], immediate: Option<u32>) -> Result<bool, Error> {
        let _ = (bytes, immediate);
        Ok(false)
    }
    /// As [`ViOps::receive`] for a timeout of zero. Who would ask again and again says how often to look for the message: a look costs less than a call.
    fn look(&self, into: &mut [u8], looks: u32) -> Result<Received, Error> {
        let _ = (into, looks);
        self.done(Queue::Recv).map(Received::Posted)
    }
    /// As [`ViOps::wait`] on the receive queue, or as [`ViOps::done`] for a timeout of zero; but a message for which no descriptor has been used
    /// yet may be copied to `into`, if it fits there, without one. [`Done::NotDone`] as [`ViOps::wait_or_signal`].
    fn receive(&self, into: &mut [u8], timeout: Timeout) -> Result<Received, Error> {
        let _ = into;
        let done = match timeout {
            Some(Duration::ZERO) => self.done(Queue::Recv)?,
            _ => self.wait_or_signal(Queue::Recv, timeout)?,
        };
        Ok(Received::Posted(done))
    }
    /// What the peer writes to `at`, of which it has been told, nobody sees before immediate data behind it have come, as nobody looks into a receive
    /// that is not complete: a NIC need not check it before it places it. So until immediate data follow a write there, or [`ViOps::dismiss_write`].
    fn expect_write(&self, at: Segment) {
        let _ = at;
    }
    /// What was [expected](ViOps::expect_write) at `at` is so no more; nothing happens if it was not.
    fn dismiss_write(&self, at: Segment) {
        let _ = at;
    }
    /// Has `handler` called with the next completed descriptor of `queue`, taken off it.
    fn notify(&self, queue: Queue, handler: DoneHandler) -> Result<(), Error>;
}

/// What [`ViOps::receive`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message is in the caller's memory, and no descriptor was used for it.
    Copied {
        /// Its bytes.
        length: u32,
        /// Immediate data that came with it.
        immediate: Option<u32>,
    },
    /// What the head of the receive queue shows.
    Posted(Done),
}

/// A completion queue.
pub trait CqOps: Send + Sync {
    /// Its id within the NIC handle.
    fn id(&self) -> CqId;
    /// Takes the oldest entry, if there is one.
    fn done(&self) -> Result<Option<CqEntry>, Error>;
    /// Takes the oldest entry, waiting for one. Errors: [`Error::Timeout`].
    fn wait(&self, timeout: Timeout) -> Result<CqEntry, Error>;
    /// Has `handler` called with the next entry.
    fn notify(&self, handler: CqHandler) -> Result<(), Error>;
    /// Has `deputy` called, on a thread of the NIC, whenever that has moved something for a VI of this queue whose owner has left it: there are entries then.
    /// It is not called for what an owner that calls finds itself, so it costs nothing while there is one; up to some milliseconds pass before the
    /// NIC takes an owner for gone.
    fn look_after(&self, deputy: Arc<dyn Fn() + Send + Sync>);
    /// Changes the capacity. Errors: [`Error::Resource`] below what is in it, or above the limit.
    fn resize(&self, entries: u32) -> Result<(), Error>;
    /// Errors: [`Error::Resource`] while a VI is bound.
    fn destroy(&self) -> Result<(), Error>;
}
