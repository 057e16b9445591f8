//! What can go wrong, in VIPL's own codes.

use thiserror::Error;

/// Why a call did not do what was asked: the codes of `VIP_RETURN` other than `VIP_SUCCESS`.
///
/// The discriminants are the numbers of the C interface. By blame: [`Error::InvalidParameter`],
/// the `Invalid…` attribute codes, [`Error::InvalidState`] and [`Error::NotSupported`] are the
/// caller's; [`Error::Resource`] is a limit; [`Error::Reject`], [`Error::NoMatch`],
/// [`Error::NotReachable`] and [`Error::Timeout`] come from the other side or its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
#[repr(u32)]
pub enum Error {
    /// A handle, address or value is invalid.
    #[error("invalid parameter")]
    InvalidParameter = 2,
    /// A limit was reached, memory ran out, or the object is still in use.
    #[error("out of resources, or the object is in use")]
    Resource = 3,
    /// The time limit passed.
    #[error("timed out")]
    Timeout = 4,
    /// The remote side rejected the connection.
    #[error("connection rejected")]
    Reject = 5,
    /// The reliability level is invalid, unsupported, or differs from the peer's.
    #[error("invalid reliability level")]
    InvalidReliabilityLevel = 6,
    /// The maximum transfer size is invalid, unsupported, or differs from the peer's.
    #[error("invalid maximum transfer size")]
    InvalidMtu = 7,
    /// The quality of service is unsupported or differs from the peer's.
    #[error("invalid quality of service")]
    InvalidQos = 8,
    /// The protection tag is invalid.
    #[error("invalid protection tag")]
    InvalidPtag = 9,
    /// RDMA read was asked for where it is not supported.
    #[error("RDMA read is not supported here")]
    InvalidRdmaRead = 10,
    /// The VI is in the wrong state for the call.
    #[error("invalid state")]
    InvalidState = 12,
    /// The name service does not know.
    #[error("name service error")]
    NameService = 13,
    /// No listener matches the requested discriminator.
    #[error("no matching listener")]
    NoMatch = 14,
    /// The remote network address cannot be reached.
    #[error("not reachable")]
    NotReachable = 15,
    /// The NIC does not do that.
    #[error("not supported")]
    NotSupported = 16,
}

/// The codes of asynchronous errors (`VIP_ERROR_CODE`), numbered as in the C interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    /// A descriptor could not be queued: misaligned, or not in registered memory of the VI's tag.
    PostDesc = 0,
    /// The connection is lost; the VI is in the error state.
    ConnLost = 1,
    /// A message was dropped because no receive was posted.
    RecvqEmpty = 2,
    /// More descriptors were posted than the queue takes.
    ViOverrun = 3,
    /// An incoming RDMA write failed a protection check.
    RdmawProt = 4,
    /// An incoming RDMA write had corrupt data.
    RdmawData = 5,
    /// An incoming RDMA write arrived only in part.
    RdmawAbort = 6,
    /// An incoming RDMA read failed a protection check.
    RdmarProt = 7,
    /// A completion could not be written, its memory being gone.
    CompProt = 8,
    /// RDMA was cut off by a transport failure.
    RdmaTransport = 9,
    /// The provider failed as a whole.
    Catastrophic = 10,
}

/// Which kind of object an asynchronous error is about (`VIP_RESOURCE_CODE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Resource {
    /// The NIC.
    Nic = 0,
    /// A VI.
    Vi = 1,
    /// A completion queue.
    Cq = 2,
    /// A descriptor.
    Descriptor = 3,
}

impl ErrorCode {
    /// The kind of object that errors of this code are about.
    #[must_use]
    pub fn resource(self) -> Resource {
        match self {
            Self::PostDesc | Self::ViOverrun | Self::CompProt => Resource::Descriptor,
            Self::Catastrophic => Resource::Nic,
            _ => Resource::Vi,
        }
    }
}
