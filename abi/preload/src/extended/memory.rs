//! Memory of the C program, registered, and pieces of it.

use std::ffi::{c_int, c_void};
use std::sync::{MutexGuard, PoisonError};

use sockets::extended::{Region, Slice};
use std::collections::BTreeMap;
use sys::errno::Errno;
use via::{Access, Memory};

use super::Extended;
use super::calls::Segment;
use crate::buffers::is_memory;

impl Extended {
    /// Registers `length` bytes at `address`; the number of the region.
    ///
    /// # Safety
    /// The program leaves the memory mapped until it has deregistered it, and expects it to change, as `sovia.h` says.
    pub(super) unsafe fn register(
        &self,
        address: *mut c_void,
        length: usize,
        access: c_int,
    ) -> Result<u32, Errno> {
        let access = match access {
            0 => Access::Local,
            1 => Access::Read,
            2 => Access::Write,
            3 => Access::ReadWrite,
            _ => return Err(Errno::INVAL),
        };
        if length == 0 {
            return Err(Errno::INVAL);
        }
        // SAFETY: by the contract.
        let memory = unsafe { Memory::borrowed(address.expose_provenance(), length) };
        let memory = memory.map_err(|_| Errno::FAULT)?;
        if !memory.writable() && matches!(access, Access::Write | Access::ReadWrite) {
            return Err(Errno::FAULT);
        }
        let region = self.socket.register(memory, access)?;
        let id = region.id();
        self.regions().insert(id, region);
        Ok(id)
    }

    /// Ends a registration.
    pub(super) fn deregister(&self, id: u32) -> Result<(), Errno> {
        let mut regions = self.regions();
        let region = regions.get(&id).ok_or(Errno::INVAL)?;
        if region.users() > 0 {
            return Err(Errno::BUSY);
        }
        // One that was never told of is not known to the peer, and does no harm there.
        if region.access() != Access::Local {
            let _gone = self.socket.withdraw(region);
        }
        regions.remove(&id);
        Ok(())
    }

    pub(super) fn region(&self, id: u32) -> Result<Region, Errno> {
        self.regions().get(&id).cloned().ok_or(Errno::INVAL)
    }

    /// The program's array of segments.
    ///
    /// # Safety
    /// There are `count` of them, if that is not too many.
    pub(super) unsafe fn slices(
        &self,
        segments: *const Segment,
        count: c_int,
    ) -> Result<Vec<Slice>, Errno> {
        let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
        if count > sockets::extended::SLICES_MAX {
            return Err(Errno::INVAL);
        }
        if count > 0 && !is_memory(segments) {
            return Err(Errno::FAULT);
        }
        let regions = self.regions();
        let slice = |index| {
            // SAFETY: by the contract.
            let segment = unsafe { segments.add(index).read_unaligned() };
            let region = regions.get(&segment.region).ok_or(Errno::INVAL)?;
            let start = (segment.address.addr() as u64).checked_sub(region.memory().addr());
            let start = start.and_then(|start| usize::try_from(start).ok());
            let start = start.ok_or(Errno::FAULT)?;
            let end = start.checked_add(segment.length as usize);
            region.slice(start..end.ok_or(Errno::FAULT)?)
        };
        (0..count).map(slice).collect()
    }

    fn regions(&self) -> MutexGuard<'_, BTreeMap<u32, Region>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
