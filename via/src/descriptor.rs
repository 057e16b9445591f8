//! Descriptors: what a consumer asks a NIC to move, and what became of it.

use std::fmt;
use std::marker::PhantomData;

use crate::Region;
use crate::provider::MemHandle;

/// Which of a VI's two work queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Sends, RDMA writes and RDMA reads.
    Send,
    /// Receives.
    Recv,
}

/// What a descriptor asks for (bits 1:0 of the control field).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Send or receive, by the queue that it is posted to.
    SendRecv,
    /// Gather local segments into one remote range.
    RdmaWrite,
    /// Scatter one remote range into local segments.
    RdmaRead,
}

/// A piece of registered memory (`VIP_DATA_SEGMENT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Local virtual address.
    pub addr: u64,
    /// The region that holds it.
    pub handle: MemHandle,
    /// Bytes.
    pub len: u32,
}

/// Where RDMA goes (`VIP_ADDRESS_SEGMENT`): address and handle as the peer knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSegment {
    /// Virtual address at the peer.
    pub addr: u64,
    /// The peer's memory handle.
    pub handle: MemHandle,
}

/// A request for a work queue, over memory that stays registered while it is built.
///
/// The borrow keeps a [`Region`] from being dropped under the descriptor:
///
/// ```compile_fail
/// # fn f(nic: &via::Nic, tag: &via::Ptag) -> Result<via::Descriptor<'static>, via::Error> {
/// let region = nic.register(via::Memory::private(64).unwrap(), tag, via::Access::Local)?;
/// Ok(via::Descriptor::send().segment(&region, 0..8)) // `region` does not live long enough
/// # }
/// ```
///
/// Once posted, the NIC looks regions up by handle when it processes the descriptor: memory that
/// has been deregistered by then is not touched, and the descriptor completes with
/// [`Fault::Protection`].
#[derive(Debug, Clone)]
pub struct Descriptor<'r> {
    pub(crate) op: Op,
    pub(crate) fence: bool,
    pub(crate) immediate: Option<u32>,
    pub(crate) remote: Option<RemoteSegment>,
    /// Sum of the segments, bytes; saturates.
    pub(crate) len: u32,
    pub(crate) segments: Segments,
    regions: PhantomData<&'r Region>,
}

impl<'r> Descriptor<'r> {
    #[inline(always)]
    fn new(op: Op, remote: Option<RemoteSegment>) -> Self {
        Self {
            op,
            fence: false,
            immediate: None,
            remote,
            len: 0,
            segments: Segments::default(),
            regions: PhantomData,
        }
    }

    /// A message for the peer's next receive descriptor.
    #[must_use]
    #[inline(always)]
    pub fn send() -> Self {
        Self::new(Op::SendRecv, None)
    }

    /// Room for one message.
    #[must_use]
    #[inline(always)]
    pub fn recv() -> Self {
        Self::new(Op::SendRecv, None)
    }

    /// Puts the segments, one after the other, at `remote`.
    #[must_use]
    #[inline(always)]
    pub fn rdma_write(remote: RemoteSegment) -> Self {
        Self::new(Op::RdmaWrite, Some(remote))
    }

    /// Fills the segments, one after the other, from `remote`.
    #[must_use]
    #[inline(always)]
    pub fn rdma_read(remote: RemoteSegment) -> Self {
        Self::new(Op::RdmaRead, Some(remote))
    }

    /// Adds `range` (bytes from the start) of `region`. A range beyond the region's end is not
    /// refused here: the NIC checks it, byte by byte, when it processes the descriptor.
    #[must_use]
    #[inline(always)]
    pub fn segment(self, region: &'r Region, range: std::ops::Range<u32>) -> Self {
        self.raw_segment(Segment {
            addr: region.addr() + u64::from(range.start),
            handle: region.handle(),
            len: range.end.saturating_sub(range.start),
        })
    }

    /// Adds a piece given by address and handle.
    #[must_use]
    #[inline(always)]
    pub fn raw_segment(mut self, segment: Segment) -> Self {
        self.len = self.len.saturating_add(segment.len);
        self.segments.push(segment);
        self
    }

    /// Sends 32 bits along, which the receiver finds in its completion.
    #[must_use]
    #[inline(always)]
    pub fn immediate(mut self, value: u32) -> Self {
        self.immediate = Some(value);
        self
    }

    /// Holds this descriptor back until all earlier RDMA reads of the queue have finished.
    #[must_use]
    #[inline(always)]
    pub fn fence(mut self) -> Self {
        self.fence = true;
        self
    }
}

/// The segments of a descriptor: two within, more on the heap.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    near: [Segment; 2],
    near_len: u8,
    far: Vec<Segment>,
}

impl Default for Segments {
    #[inline(always)]
    fn default() -> Self {
        let none = Segment {
            addr: 0,
            handle: MemHandle(0),
            len: 0,
        };
        Self {
            near: [none; 2],
            near_len: 0,
            far: Vec::new(),
        }
    }
}

impl Segments {
    #[inline(always)]
    pub(crate) fn push(&mut self, segment: Segment) {
        // Places known at compile time, and no borrow of the rest: so a descriptor under construction stays in registers.
        let [first, second] = &mut self.near;
        match self.near_len {
            0 => (*first, self.near_len) = (segment, 1),
            1 => (*second, self.near_len) = (segment, 2),
            _ => self.far = lengthened(std::mem::take(&mut self.far), segment),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.near_len) + self.far.len()
    }

    /// The segment, if there is just one.
    #[inline(always)]
    pub(crate) fn only(&self) -> Option<Segment> {
        // There are none far away before there are two near.
        (self.near_len == 1).then_some(self.near[0])
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Segment> + '_ {
        let near = &self.near[..usize::from(self.near_len)];
        near.iter().chain(&self.far).copied()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<Segment> {
        let index = index as usize;
        match index.checked_sub(usize::from(self.near_len)) {
            None => self.near.get(index).copied(),
            Some(index) => self.far.get(index).copied(),
        }
    }
}

#[cold]
#[inline(never)]
fn lengthened(mut far: Vec<Segment>, segment: Segment) -> Vec<Segment> {
    far.push(segment);
    far
}

/// Where a descriptor that lies in registered memory is (VIPL's own form).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorAt {
    /// Its address; a multiple of 64.
    pub addr: u64,
    /// The region that holds it.
    pub handle: MemHandle,
}

/// How a descriptor failed: exactly one of these bits of the status field is set (bits 8:1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Fault {
    /// Malformed descriptor.
    Format = 0x0002,
    /// A local segment fails the protection checks.
    Protection = 0x0004,
    /// Too long to send, or longer than the posted segments.
    Length = 0x0008,
    /// The message arrived or left only in part.
    Partial = 0x0010,
    /// The VI left the connected state, or was not in it.
    Flushed = 0x0020,
    /// Delivery could not be completed.
    Transport = 0x0040,
    /// The remote range is not permitted.
    RdmaProtection = 0x0080,
    /// The remote receive descriptor was missing or faulty.
    RemoteDescriptor = 0x0100,
}

impl Fault {
    const ALL: [Self; 8] = [
        Self::Format,
        Self::Protection,
        Self::Length,
        Self::Partial,
        Self::Flushed,
        Self::Transport,
        Self::RdmaProtection,
        Self::RemoteDescriptor,
    ];
}

/// What a completed descriptor was (bits 18:16 of the status field).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CompletedOp {
    /// A send.
    Send = 0x0000_0000,
    /// A receive.
    Receive = 0x0001_0000,
    /// An RDMA write.
    RdmaWrite = 0x0002_0000,
    /// A receive that the peer's RDMA write with immediate data used up.
    RemoteRdmaWrite = 0x0003_0000,
    /// An RDMA read.
    RdmaRead = 0x0004_0000,
}

/// The status field of a completed descriptor (32 bits, VIPL's layout).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u32);

impl Status {
    pub(crate) fn new(op: CompletedOp, fault: Option<Fault>, immediate: bool) -> Self {
        let immediate = if immediate { STATUS_IMMEDIATE } else { 0 };
        Self(STATUS_DONE | op as u32 | fault.map_or(0, |fault| fault as u32) | immediate)
    }

    /// The field as it stands in memory.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// What failed, if anything did.
    #[must_use]
    #[inline]
    pub fn fault(self) -> Option<Fault> {
        // Hardly ever there is one.
        if self.0 & STATUS_FAULTS == 0 {
            return None;
        }
        Fault::ALL
            .into_iter()
            .find(|&fault| self.0 & fault as u32 != 0)
    }

    /// What the descriptor was.
    #[must_use]
    pub fn op(self) -> CompletedOp {
        match self.0 & STATUS_OP_MASK {
            0x0001_0000 => CompletedOp::Receive,
            0x0002_0000 => CompletedOp::RdmaWrite,
            0x0003_0000 => CompletedOp::RemoteRdmaWrite,
            0x0004_0000 => CompletedOp::RdmaRead,
            _ => CompletedOp::Send,
        }
    }

    /// Whether immediate data came with it.
    #[must_use]
    pub fn has_immediate(self) -> bool {
        self.0 & STATUS_IMMEDIATE != 0
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.op())?;
        match self.fault() {
            Some(fault) => write!(f, " failed: {fault:?}"),
            None => f.write_str(" done"),
        }
    }
}

/// A descriptor that the NIC has finished with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What the poster named it; the address of a descriptor posted by reference.
    pub token: u64,
    /// What became of it.
    pub status: Status,
    /// Bytes moved; after an error, bytes placed.
    pub length: u32,
    /// Immediate data that came with a receive.
    pub immediate: Option<u32>,
}

impl Completion {
    /// The completion itself, or its fault.
    ///
    /// # Errors
    /// The [`Fault`] of a descriptor that failed.
    pub fn ok(self) -> Result<Self, Fault> {
        self.status.fault().map_or(Ok(self), Err)
    }
}

/// What looking at the head of a work queue shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The head was complete and has been taken off the queue.
    Completed(Completion),
    /// The head is still in progress.
    NotDone,
    /// Nothing is posted.
    Empty,
}

impl Done {
    /// The completion, if there was one.
    #[must_use]
    #[inline]
    pub fn completion(self) -> Option<Completion> {
        match self {
            Self::Completed(completion) => Some(completion),
            Self::NotDone | Self::Empty => None,
        }
    }
}

const STATUS_DONE: u32 = 0x0000_0001;
const STATUS_FAULTS: u32 = 0x0000_01fe;
const STATUS_OP_MASK: u32 = 0x0007_0000;
const STATUS_IMMEDIATE: u32 = 0x0008_0000;
