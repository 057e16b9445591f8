//! Registered memory and protection tags of one NIC handle.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use sys::mem::Memory;
use sys::sync::{AtomicU32, Ordering};

use crate::{Error, MemAttributes, MemHandle, NicAttributes, PtagId};

/// The translation and protection table.
///
/// The data path reads it through a [`RegionCache`] under the lock of its VI. A change advances
/// `epoch`; whoever made it then takes the lock of every VI once, after which no VI uses what was
/// there before.
pub(super) struct Registry {
    table: Mutex<Table>,
    epoch: AtomicU32,
    limits: Limits,
}

struct Limits {
    bytes: u64,
    block_bytes: u64,
    regions: usize,
    ptags: usize,
    has_rdma_read: bool,
    strict: bool,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    free: VecDeque<u16>,
    regions: usize,
    bytes: u64,
    /// Uses of each tag by VIs and regions.
    ptags: HashMap<PtagId, u32>,
    last_ptag: u32,
}

/// A place for a region. Its handles count in steps from a beginning that the device chose: with an odd step none comes again before
/// all others have, and who knows of one slot's handle knows nothing of another's.
struct Slot {
    generation: u16,
    step: u16,
    region: Option<Arc<RegionEntry>>,
}

impl Slot {
    fn new(seed: u32) -> Self {
        Self {
            generation: (seed >> 16) as u16,
            step: seed as u16 | 1,
            region: None,
        }
    }

    /// The next generation, which is never 0: no handle is.
    fn renew(&mut self) -> u16 {
        self.generation = self.generation.wrapping_add(self.step);
        if self.generation == 0 {
            self.generation = self.step;
        }
        self.generation
    }
}

/// A registered region as the engine sees it.
pub(super) struct RegionEntry {
    pub(super) handle: MemHandle,
    pub(super) memory: Arc<Memory>,
    pub(super) attributes: MemAttributes,
}

impl RegionEntry {
    /// Where `addr..addr + len` begins in the region, if all of it lies there and the tags match.
    #[inline]
    pub(super) fn reach(&self, addr: u64, len: u32, vi: Option<PtagId>) -> Option<usize> {
        let tags_match = match (self.attributes.ptag, vi) {
            (Some(region), Some(vi)) => region == vi,
            (None, _) | (_, None) => true,
        };
        let offset = addr.checked_sub(self.memory.addr())?;
        let end = offset.checked_add(u64::from(len))?;
        (tags_match && end <= self.memory.len() as u64).then_some(offset as usize)
    }
}

impl Registry {
    pub(super) fn new(nic: &NicAttributes, strict: bool) -> Self {
        Self {
            table: Mutex::default(),
            epoch: AtomicU32::new(1),
            limits: Limits {
                bytes: nic.max_register_bytes,
                block_bytes: nic.max_register_block_bytes,
                regions: nic.max_register_regions.min(REGIONS_MAX) as usize,
                ptags: nic.max_ptags as usize,
                has_rdma_read: nic.rdma_read.bits() != 0,
                strict,
            },
        }
    }

    pub(super) fn create_ptag(&self) -> Result<PtagId, Error> {
        let mut table = self.table();
        if table.ptags.len() >= self.limits.ptags {
            return Err(Error::Resource);
        }
        table.last_ptag = table.last_ptag.checked_add(1).ok_or(Error::Resource)?;
        let ptag = PtagId(table.last_ptag);
        table.ptags.insert(ptag, 0);
        Ok(ptag)
    }

    pub(super) fn destroy_ptag(&self, ptag: PtagId) -> Result<(), Error> {
        let mut table = self.table();
        match table.ptags.get(&ptag) {
            None => Err(Error::InvalidPtag),
            Some(0) => {
                table.ptags.remove(&ptag);
                Ok(())
            }
            Some(_) => Err(Error::Resource),
        }
    }

    /// Counts a VI as a user of its tag.
    pub(super) fn use_ptag(&self, ptag: Option<PtagId>) -> Result<(), Error> {
        self.table().use_ptag(ptag, self.limits.strict)
    }

    pub(super) fn unuse_ptag(&self, ptag: Option<PtagId>) {
        self.table().unuse_ptag(ptag);
    }

    /// `seed` is asked for a new slot's [generations](Slot).
    pub(super) fn register(
        &self,
        memory: Arc<Memory>,
        attributes: MemAttributes,
        seed: impl FnOnce() -> u32,
    ) -> Result<MemHandle, Error> {
        let len = memory.len() as u64;
        if len == 0 {
            return Err(Error::InvalidParameter);
        }
        self.check_rights(&attributes)?;
        let mut table = self.table();
        if len > self.limits.block_bytes
            || table.bytes + len > self.limits.bytes
            || table.regions >= self.limits.regions
        {
            return Err(Error::Resource);
        }
        table.use_ptag(attributes.ptag, self.limits.strict)?;
        // The oldest free slot, so that a stale handle stays recognisable as long as possible.
        let index = match table.free.pop_front() {
            Some(index) => index,
            None => {
                table.slots.push(Slot::new(seed()));
                (table.slots.len() - 1) as u16
            }
        };
        let slot = &mut table.slots[usize::from(index)];
        let handle = MemHandle(u32::from(slot.renew()) << 16 | u32::from(index));
        slot.region = Some(Arc::new(RegionEntry {
            handle,
            memory,
            attributes,
        }));
        table.regions += 1;
        table.bytes += len;
        Ok(handle)
    }

    /// Takes the region out; the caller then passes every VI's lock.
    pub(super) fn deregister(&self, addr: u64, handle: MemHandle) -> Result<Arc<Memory>, Error> {
        let mut table = self.table();
        let entry = table.entry(addr, handle)?;
        let index = handle.0 as u16;
        table.slots[usize::from(index)].region = None;
        table.free.push_back(index);
        table.regions -= 1;
        table.bytes -= entry.memory.len() as u64;
        table.unuse_ptag(entry.attributes.ptag);
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(Arc::clone(&entry.memory))
    }

    /// Replaces a region's attributes; the caller then passes every VI's lock.
    pub(super) fn set_attributes(
        &self,
        addr: u64,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<Arc<Memory>, Error> {
        let mut table = self.table();
        let entry = table.entry(addr, handle)?;
        self.check_rights(&attributes)?;
        table.use_ptag(attributes.ptag, self.limits.strict)?;
        table.unuse_ptag(entry.attributes.ptag);
        let memory = Arc::clone(&entry.memory);
        table.slots[usize::from(handle.0 as u16)].region = Some(Arc::new(RegionEntry {
            handle,
            memory: Arc::clone(&memory),
            attributes,
        }));
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(memory)
    }

    pub(super) fn query(&self, addr: u64, handle: MemHandle) -> Result<MemAttributes, Error> {
        Ok(self.table().entry(addr, handle)?.attributes)
    }

    pub(super) fn find(&self, handle: MemHandle) -> Option<Arc<RegionEntry>> {
        self.table().find(handle)
    }

    /// Forgets every region, when the NIC closes.
    pub(super) fn clear(&self) {
        *self.table() = Table::default();
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn check_rights(&self, attributes: &MemAttributes) -> Result<(), Error> {
        if attributes.enable_rdma_read && !self.limits.has_rdma_read {
            return Err(Error::InvalidRdmaRead);
        }
        Ok(())
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn find(&self, handle: MemHandle) -> Option<Arc<RegionEntry>> {
        let slot = self.slots.get(usize::from(handle.0 as u16))?;
        let entry = slot.region.as_ref()?;
        (entry.handle == handle).then(|| Arc::clone(entry))
    }

    /// The region that begins at `addr`.
    fn entry(&self, addr: u64, handle: MemHandle) -> Result<Arc<RegionEntry>, Error> {
        self.find(handle)
            .filter(|entry| entry.memory.addr() == addr)
            .ok_or(Error::InvalidParameter)
    }

    fn use_ptag(&mut self, ptag: Option<PtagId>, strict: bool) -> Result<(), Error> {
        match ptag {
            None if strict => Err(Error::InvalidPtag),
            None => Ok(()),
            Some(ptag) => {
                *self.ptags.get_mut(&ptag).ok_or(Error::InvalidPtag)? += 1;
                Ok(())
            }
        }
    }

    fn unuse_ptag(&mut self, ptag: Option<PtagId>) {
        if let Some(uses) = ptag.and_then(|ptag| self.ptags.get_mut(&ptag)) {
            *uses -= 1;
        }
    }
}

/// The regions that a VI used last.
#[derive(Default)]
pub(super) struct RegionCache {
    epoch: u32,
    recent: [Option<Arc<RegionEntry>>; CACHED],
}

impl RegionCache {
    #[inline]
    pub(super) fn get(&mut self, registry: &Registry, handle: MemHandle) -> Option<&RegionEntry> {
        let epoch = registry.epoch.load(Ordering::Acquire);
        if epoch != self.epoch {
            self.clear();
            self.epoch = epoch;
        }
        let place = &mut self.recent[handle.0 as usize % CACHED];
        if place.as_ref().is_none_or(|entry| entry.handle != handle) {
            *place = registry.find(handle);
        }
        place.as_deref()
    }

    pub(super) fn clear(&mut self) {
        self.recent = Default::default();
    }
}

/// Local memory as one VI may use it.
pub(super) struct Reach<'a> {
    pub(super) regions: &'a mut RegionCache,
    pub(super) registry: &'a Registry,
    pub(super) ptag: Option<PtagId>,
}

impl Reach<'_> {
    /// The memory that holds `len` bytes at `addr`, and where in it they begin.
    #[inline]
    pub(super) fn local(
        &mut self,
        handle: MemHandle,
        addr: u64,
        len: u32,
    ) -> Option<(&Arc<Memory>, usize)> {
        let region = self.regions.get(self.registry, handle)?;
        Some((&region.memory, region.reach(addr, len, self.ptag)?))
    }

    /// As [`Reach::local`], for memory that is going to be written.
    #[inline]
    pub(super) fn writable(
        &mut self,
        handle: MemHandle,
        addr: u64,
        len: u32,
    ) -> Option<(&Arc<Memory>, usize)> {
        self.local(handle, addr, len)
            .filter(|(memory, _)| memory.writable())
    }

    /// As [`Reach::writable`], for a peer's RDMA write.
    pub(super) fn remotely_writable(
        &mut self,
        handle: MemHandle,
        addr: u64,
        len: u32,
    ) -> Option<(&Arc<Memory>, usize)> {
        let region = self.regions.get(self.registry, handle)?;
        if !region.attributes.enable_rdma_write {
            return None;
        }
        self.writable(handle, addr, len)
    }

    /// As [`Reach::local`], for a peer's RDMA read.
    pub(super) fn remotely_readable(
        &mut self,
        handle: MemHandle,
        addr: u64,
        len: u32,
    ) -> Option<(&Arc<Memory>, usize)> {
        let region = self.regions.get(self.registry, handle)?;
        if !region.attributes.enable_rdma_read {
            return None;
        }
        self.local(handle, addr, len)
    }
}

const CACHED: usize = 4;
/// Handles have 16 bits of index.
const REGIONS_MAX: u32 = 1 << 16;
