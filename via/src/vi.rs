//! Virtual interfaces and completion queues.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::provider::{
    ConnOps, CqEntry, CqId, CqOps, Export, NicOps, Received, Timeout, ViId, ViOps,
};
use crate::{
    Completion, Descriptor, Done, Error, NetAddress, Ptag, Queue, Reliability, Segment,
    ViAttributes, ViState,
};

/// What a VI shall be like.
#[derive(Debug, Clone, Copy)]
pub struct ViConfig<'a> {
    pub(crate) tag: &'a Ptag,
    attributes: ViAttributes,
    send_cq: Option<&'a Cq>,
    recv_cq: Option<&'a Cq>,
}

impl<'a> ViConfig<'a> {
    /// Reliable delivery, 64 KiB transfers, no RDMA accepted, no completion queue.
    #[must_use]
    pub fn new(tag: &'a Ptag) -> Self {
        Self {
            tag,
            attributes: ViAttributes {
                ptag: Some(tag.id()),
                ..ViAttributes::default()
            },
            send_cq: None,
            recv_cq: None,
        }
    }

    /// The reliability level.
    #[must_use]
    pub fn reliability(mut self, level: Reliability) -> Self {
        self.attributes.reliability = level;
        self
    }

    /// Most bytes of one transfer.
    #[must_use]
    pub fn max_transfer_size(mut self, bytes: u32) -> Self {
        self.attributes.max_transfer_size = bytes;
        self
    }

    /// Accept incoming RDMA writes.
    #[must_use]
    pub fn accept_rdma_write(mut self) -> Self {
        self.attributes.enable_rdma_write = true;
        self
    }

    /// Accept incoming RDMA reads.
    #[must_use]
    pub fn accept_rdma_read(mut self) -> Self {
        self.attributes.enable_rdma_read = true;
        self
    }

    /// Report completed sends to `cq`.
    #[must_use]
    pub fn send_cq(mut self, cq: &'a Cq) -> Self {
        self.send_cq = Some(cq);
        self
    }

    /// Report completed receives to `cq`.
    #[must_use]
    pub fn recv_cq(mut self, cq: &'a Cq) -> Self {
        self.recv_cq = Some(cq);
        self
    }
}

/// A virtual interface: a protected endpoint with a send and a receive queue.
///
/// Dropping it disconnects, forgets what is queued, and destroys it.
pub struct Vi {
    nic: Arc<dyn NicOps>,
    ops: Arc<dyn ViOps>,
    tag: Ptag,
}

impl Vi {
    pub(crate) fn create(nic: &Arc<dyn NicOps>, config: &ViConfig<'_>) -> Result<Self, Error> {
        let ops = nic.create_vi(
            config.attributes,
            config.send_cq.map(Cq::id),
            config.recv_cq.map(Cq::id),
        )?;
        Ok(Self {
            nic: Arc::clone(nic),
            ops,
            tag: config.tag.clone(),
        })
    }

    /// The table of operations underneath.
    #[must_use]
    pub fn ops(&self) -> &Arc<dyn ViOps> {
        &self.ops
    }

    /// Its id, by which completion queues and errors name it.
    #[must_use]
    pub fn id(&self) -> ViId {
        self.ops.id()
    }

    /// Its protection tag.
    #[must_use]
    pub fn tag(&self) -> &Ptag {
        &self.tag
    }

    /// Where it is in its life.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] in a forked child, as for every call.
    pub fn state(&self) -> Result<ViState, Error> {
        self.ops.state()
    }

    /// Asks whoever waits at `remote` for a connection (`VipConnectRequest`); returns the other
    /// VI's attributes.
    ///
    /// # Errors
    /// [`Error::NoMatch`] at once when nobody waits there, [`Error::Reject`], [`Error::Timeout`],
    /// [`Error::InvalidState`] unless idle, [`Error::InvalidParameter`] for a timeout of zero.
    pub fn connect(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<ViAttributes, Error> {
        self.ops.connect_request(local, remote, timeout)
    }

    /// Gives out one half of a connection, to be carried to the other end by other means.
    ///
    /// # Errors
    /// [`Error::InvalidState`] unless idle, [`Error::NotSupported`].
    pub fn export(&self) -> Result<Export, Error> {
        self.ops.export()
    }

    /// Connects to the other half of an [`Export`].
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for what is no export; a code for an attribute that differs.
    pub fn import(&self, blob: &[u8], fds: Vec<OwnedFd>) -> Result<(), Error> {
        self.nic.import(&*self.ops, blob, fds)
    }

    /// Ends the connection; everything queued completes, flushed. Does not wait for a handler that has been called with a completed descriptor.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a destroyed VI.
    pub fn disconnect(&self) -> Result<(), Error> {
        self.ops.disconnect()
    }

    /// Posts a send, RDMA write or RDMA read under the name `token`.
    ///
    /// # Errors
    /// [`Error::Resource`] when the queue is full. What is wrong with the descriptor itself shows
    /// in its completion.
    #[inline]
    pub fn post_send(&self, descriptor: &Descriptor<'_>, token: u64) -> Result<(), Error> {
        self.ops.post(Queue::Send, descriptor, token)
    }

    /// Posts a receive under the name `token`.
    ///
    /// # Errors
    /// As [`Vi::post_send`].
    #[inline]
    pub fn post_recv(&self, descriptor: &Descriptor<'_>, token: u64) -> Result<(), Error> {
        self.ops.post(Queue::Recv, descriptor, token)
    }

    /// Looks at the head of the send queue.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a destroyed VI.
    #[inline]
    pub fn send_done(&self) -> Result<Done, Error> {
        self.ops.done(Queue::Send)
    }

    /// Looks at the head of the receive queue.
    ///
    /// # Errors
    /// As [`Vi::send_done`].
    #[inline]
    pub fn recv_done(&self) -> Result<Done, Error> {
        self.ops.done(Queue::Recv)
    }

    /// Waits for the head of the send queue.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::InvalidParameter`] when it reports to a completion queue;
    /// [`Error::InvalidState`] when nothing is posted.
    pub fn send_wait(&self, timeout: Timeout) -> Result<Completion, Error> {
        self.wait(Queue::Send, timeout)
    }

    /// Waits for the head of the receive queue.
    ///
    /// # Errors
    /// As [`Vi::send_wait`].
    pub fn recv_wait(&self, timeout: Timeout) -> Result<Completion, Error> {
        self.wait(Queue::Recv, timeout)
    }

    /// From now on messages for which no receive is posted wait in the NIC, and their sender with them; else such a message breaks the connection.
    /// They outlive it: the loss of the connection is told behind them.
    ///
    /// # Errors
    /// [`Error::NotSupported`]; [`Error::InvalidState`] unless idle.
    pub fn hold_back(&self) -> Result<(), Error> {
        self.ops.hold_back()
    }

    /// Sends a message from any memory, copied when this returns; nothing completes. `false`, and nothing was sent, where a descriptor has to be
    /// posted: the NIC does not copy ([`crate::Capabilities`]), has no room now, or has sends queued.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a destroyed VI.
    #[inline]
    pub fn send_copied(&self, bytes: &[u8], immediate: Option<u32>) -> Result<bool, Error> {
        self.ops.send_copied(bytes, immediate)
    }

    /// As [`Vi::recv_wait`], or as [`Vi::recv_done`] for a timeout of zero; but a message for which no descriptor has been used yet, and which fits,
    /// may be copied to `into` without one. [`Done::NotDone`] also when a signal was handled meanwhile, where the NIC notices.
    ///
    /// # Errors
    /// [`Error::Timeout`], but for a timeout of zero; as [`Vi::recv_wait`].
    #[inline]
    pub fn receive(&self, into: &mut [u8], timeout: Timeout) -> Result<Received, Error> {
        self.ops.receive(into, timeout)
    }

    /// As [`Vi::receive`] for a timeout of zero. Who would ask again and again says how often to look for the message: a look costs less than a call.
    ///
    /// # Errors
    /// As [`Vi::recv_done`].
    #[inline]
    pub fn look(&self, into: &mut [u8], looks: u32) -> Result<Received, Error> {
        self.ops.look(into, looks)
    }

    /// What the peer writes to `at`, of which it has been told, nobody sees before immediate data behind it have come, as nobody looks into a receive
    /// that is not complete: a NIC that checks what comes may place it first. So until immediate data follow a write there, or [`Vi::dismiss_write`].
    pub fn expect_write(&self, at: Segment) {
        self.ops.expect_write(at);
    }

    /// What was [expected](Vi::expect_write) at `at` is so no more; nothing happens if it was not.
    pub fn dismiss_write(&self, at: Segment) {
        self.ops.dismiss_write(at);
    }

    /// As [`Vi::send_wait`], or [`Done::NotDone`] when a signal was handled meanwhile, where the NIC notices.
    ///
    /// # Errors
    /// As [`Vi::send_wait`].
    pub fn send_wait_or_signal(&self, timeout: Timeout) -> Result<Done, Error> {
        self.ops.wait_or_signal(Queue::Send, timeout)
    }

    fn wait(&self, queue: Queue, timeout: Timeout) -> Result<Completion, Error> {
        self.ops
            .wait(queue, timeout)?
            .completion()
            .ok_or(Error::InvalidState)
    }
}

impl Drop for Vi {
    fn drop(&mut self) {
        // A NIC that was closed, or a fork, has ended the VI already: nothing is left to undo.
        if self.ops.disconnect().is_ok() {
            for queue in [Queue::Send, Queue::Recv] {
                while let Ok(Done::Completed(_)) = self.ops.done(queue) {}
            }
            let destroyed = self.ops.destroy();
            debug_assert!(
                destroyed.is_ok() || self.nic.is_closed() || std::thread::panicking(),
                "an idle, drained VI can be destroyed"
            );
        }
    }
}

impl fmt::Debug for Vi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vi").field(&self.id().0).finish()
    }
}

/// A completion queue: one place to wait for many work queues.
///
/// An entry says which queue of which VI has one more completed descriptor; the descriptor itself
/// is then taken off that queue. It must outlive the VIs that report to it.
pub struct Cq {
    pub(crate) ops: Arc<dyn CqOps>,
}

impl Cq {
    /// The table of operations underneath.
    #[must_use]
    pub fn ops(&self) -> &Arc<dyn CqOps> {
        &self.ops
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> CqId {
        self.ops.id()
    }

    /// Takes the oldest entry, if there is one.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] in a forked child.
    pub fn done(&self) -> Result<Option<CqEntry>, Error> {
        self.ops.done()
    }

    /// Waits for an entry.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn wait(&self, timeout: Timeout) -> Result<CqEntry, Error> {
        self.ops.wait(timeout)
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // While a VI is bound the queue lives on, unseen, until its NIC closes.
        let destroyed = self.ops.destroy();
        debug_assert!(!matches!(destroyed, Err(Error::InvalidState)));
    }
}

impl fmt::Debug for Cq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cq").field(&self.id().0).finish()
    }
}

/// A connection request that arrived.
pub struct Incoming(pub(crate) Box<dyn ConnOps>);

impl Incoming {
    /// Who asks.
    #[must_use]
    pub fn remote_address(&self) -> NetAddress {
        self.0.remote_address()
    }

    /// The asker's VI.
    #[must_use]
    pub fn remote_attributes(&self) -> ViAttributes {
        self.0.remote_attributes()
    }

    /// Connects `vi` to the asker.
    ///
    /// # Errors
    /// [`Error::InvalidState`] unless `vi` is idle; [`Error::InvalidReliabilityLevel`],
    /// [`Error::InvalidMtu`] or [`Error::InvalidQos`] when the two differ, after which it may be
    /// tried again with another VI; [`Error::Resource`], after which it may be tried again if the
    /// asker was not told; [`Error::Timeout`] when the asker has given up.
    pub fn accept(&mut self, vi: &Vi) -> Result<(), Error> {
        self.0.accept(&*vi.ops)
    }

    /// Refuses.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] after a successful accept.
    pub fn reject(self) -> Result<(), Error> {
        self.0.reject()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming")
            .field(&self.remote_address())
            .finish()
    }
}
