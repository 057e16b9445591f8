//! Descriptors laid out by hand, as VIPL has them in memory.

use std::ops::Range;

use sys::sync::Ordering;
use via::{Access, DescriptorAt, Memory, Ptag, Region, RemoteSegment, Segment};

use crate::kit::{Must, Site};

/// The fields of a descriptor, right or wrong.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) seg_count: u16,
    pub(crate) control: u16,
    pub(crate) reserved: u32,
    pub(crate) immediate: u32,
    pub(crate) length: u32,
    pub(crate) status: u32,
    /// 16 bytes each: address, handle, length or zero.
    pub(crate) segments: Vec<(u64, u32, u32)>,
}

impl Raw {
    pub(crate) fn send(segments: &[Segment]) -> Self {
        Self::new(CONTROL_SENDRECV, None, segments)
    }

    /// As a send; receives ignore the length.
    pub(crate) fn recv(segments: &[Segment]) -> Self {
        Self::new(CONTROL_SENDRECV, None, segments)
    }

    pub(crate) fn rdma_write(remote: RemoteSegment, segments: &[Segment]) -> Self {
        Self::new(CONTROL_RDMA_WRITE, Some(remote), segments)
    }

    pub(crate) fn rdma_read(remote: RemoteSegment, segments: &[Segment]) -> Self {
        Self::new(CONTROL_RDMA_READ, Some(remote), segments)
    }

    pub(crate) fn control(mut self, bits: u16) -> Self {
        self.control |= bits;
        self
    }

    fn new(control: u16, remote: Option<RemoteSegment>, data: &[Segment]) -> Self {
        let remote = remote.map(|to| (to.addr, to.handle.0, 0));
        let data = data.iter().map(|of| (of.addr, of.handle.0, of.len));
        let segments: Vec<_> = remote.into_iter().chain(data.clone()).collect();
        Self {
            seg_count: u16::try_from(segments.len()).must(),
            control,
            reserved: 0,
            immediate: 0,
            length: data.map(|(_, _, len)| len).sum(),
            status: 0,
            segments,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = STALE_NEXT.to_le_bytes().to_vec();
        bytes.extend(STALE_NEXT_HANDLE.to_le_bytes());
        bytes.extend(self.seg_count.to_le_bytes());
        bytes.extend(self.control.to_le_bytes());
        for word in [self.reserved, self.immediate, self.length, self.status] {
            bytes.extend(word.to_le_bytes());
        }
        for &(addr, handle, len) in &self.segments {
            bytes.extend(addr.to_le_bytes());
            bytes.extend(handle.to_le_bytes());
            bytes.extend(len.to_le_bytes());
        }
        bytes
    }
}

/// Registered memory with room for descriptors.
pub(crate) struct Sheet {
    region: Region,
}

impl Sheet {
    #[track_caller]
    pub(crate) fn new(site: &Site<'_>, len: usize) -> Self {
        Self::of(site, &site.tag, len)
    }

    #[track_caller]
    pub(crate) fn of(site: &Site<'_>, tag: &Ptag, len: usize) -> Self {
        let memory = Memory::private(len).must();
        memory.write(0, &vec![FILLER; len]).must();
        let region = site.nic.register(memory, tag, Access::Local).must();
        Self { region }
    }

    /// Lays a descriptor at `offset` and says where it is.
    #[track_caller]
    pub(crate) fn lay(&self, offset: usize, descriptor: &Raw) -> DescriptorAt {
        self.region
            .memory()
            .write(offset, &descriptor.encode())
            .must();
        self.at(offset)
    }

    pub(crate) fn at(&self, offset: usize) -> DescriptorAt {
        DescriptorAt {
            addr: self.region.addr() + offset as u64,
            handle: self.region.handle(),
        }
    }

    /// The status field, as a consumer polls it.
    #[track_caller]
    pub(crate) fn status(&self, offset: usize) -> u32 {
        self.word(offset + STATUS)
    }

    #[track_caller]
    pub(crate) fn length(&self, offset: usize) -> u32 {
        self.word(offset + LENGTH)
    }

    #[track_caller]
    pub(crate) fn immediate(&self, offset: usize) -> u32 {
        self.word(offset + IMMEDIATE)
    }

    #[track_caller]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; range.len()];
        self.region.memory().read(range.start, &mut bytes).must();
        bytes
    }

    /// Whether nobody wrote to `range`.
    #[track_caller]
    pub(crate) fn assert_unused(&self, range: Range<usize>) {
        let bytes = self.bytes(range.clone());
        assert!(
            bytes.iter().all(|&byte| byte == FILLER),
            "{range:?} of a page of descriptors was written"
        );
    }

    #[track_caller]
    fn word(&self, offset: usize) -> u32 {
        self.region
            .memory()
            .load_u32(offset, Ordering::Acquire)
            .must()
    }
}

/// Bytes of a control segment, and of each segment behind it.
pub(crate) const CONTROL_LEN: usize = 32;
pub(crate) const SEGMENT_LEN: usize = 16;

pub(crate) const CONTROL_SENDRECV: u16 = 0;
pub(crate) const CONTROL_RDMA_WRITE: u16 = 1;
pub(crate) const CONTROL_RDMA_READ: u16 = 2;
pub(crate) const CONTROL_OP_RESERVED: u16 = 3;
pub(crate) const CONTROL_IMMEDIATE: u16 = 4;
pub(crate) const CONTROL_RESERVED: u16 = 0xfff0;

pub(crate) const STATUS_DONE: u32 = 1;
pub(crate) const STATUS_ERROR_MASK: u32 = 0x1fe;
pub(crate) const STATUS_RESERVED: u32 = 0xfff0_fe00;

const IMMEDIATE: usize = 20;
const LENGTH: usize = 24;
const STATUS: usize = 28;
const FILLER: u8 = 0xc7;
/// A consumer may leave anything in these; they are the provider's.
const STALE_NEXT: u64 = 0x1111_2222_3333_4444;
const STALE_NEXT_HANDLE: u32 = 0x5555_6666;
