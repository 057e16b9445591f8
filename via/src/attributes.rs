//! What NICs, VIs and registered memory are like.

use std::fmt;

use crate::provider::PtagId;

/// How much a VI promises about delivery (VI Architecture, reliability levels).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Reliability {
    /// Messages may be lost; each arrives intact and at most once.
    Unreliable = 0x01,
    /// Exactly once and in order, or the connection breaks; done means that it has left.
    ReliableDelivery = 0x02,
    /// As [`Reliability::ReliableDelivery`], and done means that it is in the target's memory.
    ReliableReception = 0x04,
}

impl Reliability {
    /// All levels, weakest first.
    pub const ALL: [Self; 3] = [
        Self::Unreliable,
        Self::ReliableDelivery,
        Self::ReliableReception,
    ];

    /// The level with exactly this one bit of `VIP_RELIABILITY_LEVEL`.
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.bits() == bits)
    }

    /// The level as a bit of `VIP_RELIABILITY_LEVEL`.
    #[must_use]
    pub fn bits(self) -> u16 {
        self as u16
    }

    /// Whether an error breaks the connection.
    #[must_use]
    pub fn is_reliable(self) -> bool {
        self != Self::Unreliable
    }
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreliable => "UD",
            Self::ReliableDelivery => "RD",
            Self::ReliableReception => "RR",
        })
    }
}

/// A set of reliability levels, as the mask of `VIP_RELIABILITY_LEVEL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReliabilitySet(u16);

impl ReliabilitySet {
    /// No level.
    pub const NONE: Self = Self(0);
    /// Every level.
    pub const ALL: Self = Self(0x07);
    /// The two levels at which errors break the connection.
    pub const RELIABLE: Self = Self(0x06);

    /// Whether `level` is in the set.
    #[must_use]
    pub fn contains(self, level: Reliability) -> bool {
        self.0 & level.bits() != 0
    }

    /// The set as a mask.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }
}

/// What a NIC is and where its limits are (`VIP_NIC_ATTRIBUTES`); fixed from start-up on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicAttributes {
    /// Device name.
    pub name: String,
    /// Hardware version; 0 for software.
    pub hardware_version: u32,
    /// Provider version.
    pub provider_version: u32,
    /// The host part of this NIC's addresses.
    pub local_address: [u8; 6],
    /// Whether all calls may be made from any thread.
    pub thread_safe: bool,
    /// Longest discriminator, bytes.
    pub max_discriminator_len: u16,
    /// Most bytes registered at a time, in all.
    pub max_register_bytes: u64,
    /// Most regions registered at a time.
    pub max_register_regions: u32,
    /// Largest single region, bytes.
    pub max_register_block_bytes: u64,
    /// Most VIs of a NIC handle.
    pub max_vi: u32,
    /// Most descriptors on one work queue.
    pub max_descriptors_per_queue: u32,
    /// Most data segments of a descriptor.
    pub max_segments_per_desc: u32,
    /// Most completion queues of a NIC handle.
    pub max_cq: u32,
    /// Most entries of a completion queue.
    pub max_cq_entries: u32,
    /// Most bytes that one descriptor moves.
    pub max_transfer_size: u32,
    /// The NIC's natural frame, bytes; informational.
    pub native_mtu: u32,
    /// Most protection tags of a NIC handle.
    pub max_ptags: u32,
    /// Reliability levels offered.
    pub reliability: ReliabilitySet,
    /// Levels at which RDMA read works.
    pub rdma_read: ReliabilitySet,
}

/// What a NIC does itself, and in what: what a layer above need not do again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Who carries out the VI semantics.
    pub engine: Engine,
    /// How often the CPU copies a sent payload between the two user buffers. A kernel that carries the octets, and what it copies, is not counted, nor is
    /// what may be copied of the beginning of a long one.
    pub send_copies: u8,
    /// How often one of no more than [`short_max`](Self::short_max) bytes.
    pub short_send_copies: u8,
    /// Bytes of a payload that is short, and copied where it might stay in place, since that costs less; 0 where its length decides nothing.
    pub short_max: u32,
    /// How often for an RDMA write into memory that the provider allocated.
    pub rdma_write_copies: u8,
    /// How often for an RDMA write into any other registered memory, when the kernel lets one
    /// process write another's memory, and when it does not.
    pub rdma_write_copies_foreign: (u8, u8),
    /// Whether registering memory makes a send cheaper (a NIC with DMA) or buys nothing (it copies).
    pub registration_pays: bool,
    /// Whether a posted send leaves the caller's buffer at once when there is room.
    pub buffers_sends: bool,
    /// Bytes of payload that the NIC holds for a receiver in each direction.
    pub buffer_bytes: u32,
    /// Whether a sender is held back while the receiver's NIC has no room.
    pub flow_control: bool,
    /// Whether data may be added to a send that is queued but has not left.
    pub appendable: bool,
    /// What guards payload against corruption on the way.
    pub integrity: Integrity,
    /// How a consumer sleeps until something happens.
    pub wait: WaitOn,
    /// Immediate data with sends and with RDMA writes.
    pub immediate_data: bool,
    /// Whether it finds the other NICs of its network.
    pub discovers: bool,
}

/// Who carries out the VI semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// The CPU, in the caller's context.
    Software,
    /// The adapter.
    Hardware,
}

/// What guards payload against corruption on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Integrity {
    /// The memory of one host.
    Memory,
    /// A checksum of each frame, computed by the CPU.
    Checksum,
    /// What guards the stream that carries it, as TCP's checksum, and nothing of the NIC's.
    Stream,
    /// A checksum of each frame, computed by the adapter.
    Hardware,
}

/// How a consumer sleeps until something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitOn {
    /// A futex word for one VI, a pollable descriptor for a completion queue.
    FutexAndFd,
    /// A pollable descriptor.
    Fd,
    /// Virtual time moves on.
    VirtualTime,
}

/// Properties of a VI (`VIP_VI_ATTRIBUTES`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViAttributes {
    /// Reliability level; both ends of a connection must have the same.
    pub reliability: Reliability,
    /// Most bytes of one transfer; both ends must have the same.
    pub max_transfer_size: u32,
    /// Quality of service; only 0 is defined.
    pub qos: u64,
    /// Protection tag. `None` is cLAN's default tag: any memory of the same NIC handle.
    pub ptag: Option<PtagId>,
    /// Accept incoming RDMA writes.
    pub enable_rdma_write: bool,
    /// Accept incoming RDMA reads.
    pub enable_rdma_read: bool,
}

impl Default for ViAttributes {
    /// Reliable delivery, 64 KiB, RDMA off.
    fn default() -> Self {
        Self {
            reliability: Reliability::ReliableDelivery,
            max_transfer_size: 65536,
            qos: 0,
            ptag: None,
            enable_rdma_write: false,
            enable_rdma_read: false,
        }
    }
}

/// Properties of a registered region (`VIP_MEM_ATTRIBUTES`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemAttributes {
    /// Protection tag. `None`: any VI of the same NIC handle.
    pub ptag: Option<PtagId>,
    /// May be the target of RDMA writes.
    pub enable_rdma_write: bool,
    /// May be the source of RDMA reads.
    pub enable_rdma_read: bool,
}
