//! Registration: who may reach which bytes, and under which name.

use std::collections::HashSet;
use std::sync::Arc;

use via::provider::MemHandle;
use via::{
    Descriptor, Error, Fault, MemAttributes, Memory, Ptag, Reliability, RemoteSegment, Segment,
};

use crate::Lab;
use crate::buffer::{Kind, mix, pattern};
use crate::kit::{Must, Pair, refused, sent};

/// An operation on the registrations of one end. Regions are named by their age, modulo their
/// number; those whose registration has ended are among them.
#[derive(Debug, Clone, Copy)]
pub enum RegionOp {
    /// Registers so many bytes.
    Register {
        /// Bytes.
        len: u16,
        /// Whether the provider allocates them.
        shared: bool,
        /// Tag and rights.
        rights: Rights,
    },
    /// Ends a registration.
    Deregister(u8),
    /// Changes tag and rights.
    Set(u8, Rights),
    /// Asks for tag and rights.
    Query(u8),
    /// The peer writes near the region: where, and how many bytes.
    Write(u8, u16, u16),
    /// The owner sends from near the region: where, and how many bytes.
    Send(u8, u16, u16),
}

/// Tag and rights of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The tag of the VI, or another.
    pub own_tag: bool,
    /// Peers may write.
    pub write: bool,
}

/// Runs `ops` on the end B of a pair at Unreliable Delivery, where a refusal does not end the
/// connection.
///
/// # Panics
/// When a registration differs from the model's, or a byte that nobody may reach.
pub fn check_regions(lab: &dyn Lab, ops: &[RegionOp]) {
    let mut model = Model::new(lab);
    for (nth, op) in ops.iter().enumerate() {
        model.run(nth as u64, *op);
        model.check_bytes();
    }
    model.end();
}

struct Model<'l> {
    pair: Pair<'l>,
    other_tag: Ptag,
    source: (Arc<Memory>, MemHandle),
    regions: Vec<Entry>,
    /// Every handle that there ever was.
    handles: HashSet<MemHandle>,
}

struct Entry {
    memory: Arc<Memory>,
    handle: MemHandle,
    rights: Rights,
    alive: bool,
    bytes: Vec<u8>,
}

impl<'l> Model<'l> {
    fn new(lab: &'l dyn Lab) -> Self {
        let pair = Pair::for_rdma(lab, Reliability::Unreliable);
        let source = Arc::new(Memory::private(MOST).must());
        let attributes = MemAttributes {
            ptag: Some(pair.a.tag.id()),
            ..MemAttributes::default()
        };
        let handle = pair.a.ops().register_mem(Arc::clone(&source), attributes);
        Self {
            other_tag: pair.b.nic.create_ptag().must(),
            source: (source, handle.must()),
            pair,
            regions: Vec::new(),
            handles: HashSet::new(),
        }
    }

    fn run(&mut self, nth: u64, op: RegionOp) {
        match op {
            RegionOp::Register {
                len,
                shared,
                rights,
            } => self.register(nth, usize::from(len) % MOST, shared, rights),
            RegionOp::Deregister(which) => self.deregister(which),
            RegionOp::Set(which, rights) => self.set(which, rights),
            RegionOp::Query(which) => self.query(which),
            RegionOp::Write(which, at, len) => self.write(nth, which, at, len),
            RegionOp::Send(which, at, len) => self.send(which, at, len),
        }
    }

    fn register(&mut self, nth: u64, len: usize, shared: bool, rights: Rights) {
        if len == 0 || self.regions.len() == usize::from(u8::MAX) {
            return;
        }
        let kind = if shared { Kind::Shared } else { Kind::Private };
        let memory = Arc::new(kind.allocate(len));
        let bytes = pattern(nth, len);
        memory.write(0, &bytes).must();
        let attributes = self.attributes(rights);
        let ops = self.pair.b.ops();
        let handle = ops.register_mem(Arc::clone(&memory), attributes).must();
        assert_ne!(handle, MemHandle(0), "0 names none");
        assert!(self.handles.insert(handle), "{handle:?} is valid twice");
        self.regions.push(Entry {
            memory,
            handle,
            rights,
            alive: true,
            bytes,
        });
    }

    fn deregister(&mut self, which: u8) {
        let ops = Arc::clone(self.pair.b.nic.ops());
        let Some(region) = self.region(which) else {
            return;
        };
        let addr = region.memory.addr();
        refused(
            ops.deregister_mem(addr + 1, region.handle),
            Error::InvalidParameter,
        );
        let outcome = ops.deregister_mem(addr, region.handle);
        if region.alive {
            outcome.must();
            region.alive = false;
        } else {
            refused(outcome, Error::InvalidParameter);
        }
    }

    fn set(&mut self, which: u8, rights: Rights) {
        let attributes = self.attributes(rights);
        let ops = Arc::clone(self.pair.b.nic.ops());
        let Some(region) = self.region(which) else {
            return;
        };
        let outcome = ops.set_mem_attributes(region.memory.addr(), region.handle, attributes);
        if region.alive {
            outcome.must();
            region.rights = rights;
        } else {
            refused(outcome, Error::InvalidParameter);
        }
    }

    fn query(&mut self, which: u8) {
        let ops = Arc::clone(self.pair.b.nic.ops());
        let Some(region) = self.region(which) else {
            return;
        };
        let found = ops.query_mem(region.memory.addr(), region.handle);
        let (alive, rights) = (region.alive, region.rights);
        if alive {
            assert_eq!(found, Ok(self.attributes(rights)));
        } else {
            refused(found, Error::InvalidParameter);
        }
    }

    fn write(&mut self, nth: u64, which: u8, at: u16, len: u16) {
        let (source, source_handle) = (Arc::clone(&self.source.0), self.source.1);
        let Some(region) = self.region(which) else {
            return;
        };
        let (addr, range) = region.place(at, len);
        let message = pattern(mix(nth, 1), range.len());
        source.write(0, &message).must();
        let remote = RemoteSegment {
            addr,
            handle: region.handle,
        };
        let may = region.alive && region.rights.own_tag && region.rights.write;
        // An empty write touches nothing, whatever it names.
        if may && let Some(target) = range.within(region.bytes.len()) {
            region.bytes[target].copy_from_slice(&message);
        }
        let local = Segment {
            addr: source.addr(),
            handle: source_handle,
            len: range.len,
        };
        let write = Descriptor::rdma_write(remote).raw_segment(local);
        self.pair.va.post_send(&write, nth).must();
        sent(&self.pair.va).ok().must();
        // Behind the write.
        self.pair.exchange_empty();
    }

    fn send(&mut self, which: u8, at: u16, len: u16) {
        let Some(region) = self.region(which) else {
            return;
        };
        let (addr, range) = region.place(at, len);
        let may =
            region.alive && region.rights.own_tag && (range.within(region.bytes.len()).is_some());
        let segment = Segment {
            addr,
            handle: region.handle,
            len: range.len,
        };
        let empty = range.len == 0;
        let (va, vb) = (&self.pair.va, &self.pair.vb);
        va.post_recv(&Descriptor::recv().raw_segment(self.room()), 1)
            .must();
        vb.post_send(&Descriptor::send().raw_segment(segment), 2)
            .must();
        let outcome = sent(vb).status.fault();
        if may {
            assert_eq!(outcome, None);
        } else if !empty {
            assert_eq!(outcome, Some(Fault::Protection));
        }
        if outcome.is_some() {
            // The receive is for another message.
            vb.post_send(&Descriptor::send(), 3).must();
            sent(vb).ok().must();
        }
        let arrived = crate::kit::received(va).ok().must();
        let mut found = vec![0; arrived.length as usize];
        self.source.0.read(0, &mut found).must();
        if outcome.is_none() && !empty {
            let region = self.region(which).must();
            let wanted = range.within(region.bytes.len()).must();
            assert!(found == region.bytes[wanted], "another message was sent");
        }
    }

    fn end(&self) {
        for region in self.regions.iter().filter(|region| region.alive) {
            let ops = self.pair.b.ops();
            ops.deregister_mem(region.memory.addr(), region.handle)
                .must();
        }
        let ops = self.pair.a.ops();
        ops.deregister_mem(self.source.0.addr(), self.source.1)
            .must();
    }

    /// All of A's memory.
    fn room(&self) -> Segment {
        Segment {
            addr: self.source.0.addr(),
            handle: self.source.1,
            len: MOST as u32,
        }
    }

    /// Every byte of every region, whether it is registered or not.
    fn check_bytes(&self) {
        for (nth, region) in self.regions.iter().enumerate() {
            let mut found = vec![0; region.bytes.len()];
            region.memory.read(0, &mut found).must();
            if let Some(at) = (0..found.len()).find(|&at| found[at] != region.bytes[at]) {
                panic!(
                    "byte {at} of region {nth}, of {} bytes, was written",
                    found.len()
                );
            }
        }
    }

    fn region(&mut self, which: u8) -> Option<&mut Entry> {
        let count = self.regions.len();
        self.regions.get_mut(usize::from(which).checked_rem(count)?)
    }

    fn attributes(&self, rights: Rights) -> MemAttributes {
        let tag = if rights.own_tag {
            &self.pair.b.tag
        } else {
            &self.other_tag
        };
        MemAttributes {
            ptag: Some(tag.id()),
            enable_rdma_write: rights.write,
            enable_rdma_read: false,
        }
    }
}

/// Bytes relative to the begin of a region.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    len: u32,
}

impl Range {
    fn len(self) -> usize {
        self.len as usize
    }

    /// As a range of the region's bytes, if all of it is.
    fn within(self, len: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(self.start).ok()?;
        let end = start.checked_add(self.len())?;
        (end <= len).then_some(start..end)
    }
}

impl Entry {
    /// Some ranges begin before the region, some end behind it.
    fn place(&self, at: u16, len: u16) -> (u64, Range) {
        let size = self.bytes.len() as i64;
        // From 3 bytes before the begin to 3 behind the end, and as long as the region at most but for 3.
        let start = i64::from(at) % (size + 6) - 3;
        let len = (i64::from(len) % (size + 3)).min(MOST as i64) as u32;
        (
            self.memory.addr().wrapping_add_signed(start),
            Range { start, len },
        )
    }
}

/// More than a page, so that some regions share none and some do.
const MOST: usize = 5000;
