//! Registered memory that notices every byte that lands where it should not.

use std::ops::Range;
use std::sync::Arc;

use via::provider::MemHandle;
use via::{Access, Descriptor, Memory, Ptag, Region, RemoteSegment, Segment};

use crate::kit::{Must, Site};

/// A region whose bytes, before, in and behind the buffer proper, start out as a pattern of their position.
pub(crate) struct Buffer {
    region: Region,
    len: u32,
}

impl Buffer {
    /// In memory that the provider allocates, without RDMA rights.
    #[track_caller]
    pub(crate) fn new(site: &Site<'_>, len: u32) -> Self {
        Self::with(site, len, Kind::Shared, Access::Local)
    }

    #[track_caller]
    pub(crate) fn with(site: &Site<'_>, len: u32, kind: Kind, access: Access) -> Self {
        Self::under(site, &site.tag, len, kind, access)
    }

    /// The right to read is left out where the NIC has no RDMA read.
    #[track_caller]
    pub(crate) fn under(site: &Site<'_>, tag: &Ptag, len: u32, kind: Kind, access: Access) -> Self {
        let reads = site.nic.attributes().rdma_read.bits() != 0;
        let access = match access {
            Access::Read if !reads => Access::Local,
            Access::ReadWrite if !reads => Access::Write,
            offered => offered,
        };
        let memory = kind.allocate(len as usize + 2 * GUARD);
        let region = site.nic.register(memory, tag, access).must();
        let buffer = Self { region, len };
        buffer.reset();
        buffer
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    pub(crate) fn handle(&self) -> MemHandle {
        self.region.handle()
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn addr(&self, at: u32) -> u64 {
        self.region.addr() + GUARD as u64 + u64::from(at)
    }

    pub(crate) fn segment(&self, range: Range<u32>) -> Segment {
        Segment {
            addr: self.addr(range.start),
            handle: self.handle(),
            len: range.end - range.start,
        }
    }

    pub(crate) fn remote(&self, at: u32) -> RemoteSegment {
        RemoteSegment {
            addr: self.addr(at),
            handle: self.handle(),
        }
    }

    pub(crate) fn send(&self, range: Range<u32>) -> Descriptor<'_> {
        Descriptor::send().raw_segment(self.segment(range))
    }

    pub(crate) fn recv(&self, range: Range<u32>) -> Descriptor<'_> {
        Descriptor::recv().raw_segment(self.segment(range))
    }

    /// Puts the message `seed` into `range`.
    #[track_caller]
    pub(crate) fn fill(&self, range: Range<u32>, seed: u64) {
        let bytes = pattern(seed, (range.end - range.start) as usize);
        self.write(range.start, &bytes);
    }

    #[track_caller]
    pub(crate) fn write(&self, at: u32, bytes: &[u8]) {
        self.memory().write(GUARD + at as usize, bytes).must();
    }

    #[track_caller]
    pub(crate) fn read(&self, range: Range<u32>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let at = GUARD + range.start as usize;
        self.memory().read(at, &mut bytes).must();
        bytes
    }

    /// Back to the pattern of positions.
    #[track_caller]
    pub(crate) fn reset(&self) {
        let all = pattern(CANARY, self.region.len());
        self.memory().write(0, &all).must();
    }

    /// Whether `range` holds the message `seed`.
    #[track_caller]
    pub(crate) fn assert_holds(&self, range: Range<u32>, seed: u64) {
        let found = self.read(range.clone());
        let wanted = pattern(seed, found.len());
        if let Some(at) = (0..found.len()).find(|&i| found[i] != wanted[i]) {
            panic!(
                "message {seed:#x} in {range:?}: byte {at} is {:#04x}, not {:#04x}",
                found[at], wanted[at]
            );
        }
    }

    /// Whether every byte outside `range` is as [`Buffer::reset`] left it.
    #[track_caller]
    pub(crate) fn assert_untouched_but(&self, range: Range<u32>) {
        let mut found = vec![0; self.region.len()];
        self.memory().read(0, &mut found).must();
        let wanted = pattern(CANARY, found.len());
        let inside = GUARD + range.start as usize..GUARD + range.end as usize;
        let wrong = (0..found.len()).find(|i| !inside.contains(i) && found[*i] != wanted[*i]);
        if let Some(at) = wrong {
            let at = i64::try_from(at).must() - GUARD as i64;
            panic!("byte {at} of a buffer was written, outside {range:?}");
        }
    }

    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        self.assert_untouched_but(0..0);
    }

    fn memory(&self) -> &Arc<Memory> {
        self.region.memory()
    }
}

/// Who allocated a region's memory: providers have different paths for the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The provider: peers may map it.
    Shared,
    /// Anyone.
    Private,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Shared, Self::Private];

    #[track_caller]
    pub(crate) fn allocate(self, len: usize) -> Memory {
        match self {
            Self::Shared => Memory::shared(len).must(),
            Self::Private => Memory::private(len).must(),
        }
    }
}

/// Bytes of the message `seed`, each dependent on its position.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).flat_map(|word| mix(seed, word).to_le_bytes());
    words.take(len).collect()
}

/// A random number, the `index`th of the sequence `seed` (SplitMix64).
pub(crate) fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Odd, so that buffers begin at odd addresses.
const GUARD: usize = 251;
const CANARY: u64 = 0x0ca1_1a87;
