//! Memory that a NIC lends to a byte stream.
//!
//! Where a NIC's RDMA write is a store of this CPU, a descriptor in a work queue says nothing that the store does not: the stream protocol `ring`
//! writes into the peer's memory itself. What is left for the NIC to do is to make that memory and to tell whether memory that a peer
//! sent is of its kind. A NIC that can do so returns its [`Windows`] from [`crate::provider::Driver::windows`].

use std::os::fd::OwnedFd;

use crate::Error;

/// A NIC whose RDMA writes are stores of this CPU, as a lender of memory.
pub trait Windows: Sync {
    /// The device name: the first half of a connection's path, as in `shm/ring`.
    fn name(&self) -> &'static str;

    /// Makes `len` bytes of memory, zeroed, that another process can map with the descriptor. Nobody can change its size.
    ///
    /// # Errors
    /// [`Error::Resource`] without descriptors or memory.
    fn create(&self, len: usize) -> Result<OwnedFd, Error>;

    /// Checks that `fd`, which a peer sent, is memory of this NIC: exactly `len` bytes, and nobody can change that.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if it is not; the descriptor is closed.
    fn admit(&self, fd: OwnedFd, len: usize) -> Result<OwnedFd, Error>;
}
