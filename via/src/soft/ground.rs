//! The memory of a VI, as a link of messages reaches it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use proto::ddp::{Access, Fault, InvalidateFault, Memory as DdpMemory, Stag, Window};
use proto::mpa::{Crc, Place, Source, SourceLost};
use sys::mem::Memory;
use sys::sync::Ordering;

use super::expected::Expected;
use super::memory::{Reach, RegionCache, RegionEntry, Registry};
use super::queue::WorkQueue;
use crate::{MemHandle, Segment, ViAttributes};

/// The memory of a VI while its lock is held: what is posted, and the regions that its peer may reach.
///
/// Nothing is remembered from one access to the next. A region that has been taken back is out of
/// reach at once, in the middle of a message too.
pub struct Ground<'a> {
    pub(super) send: &'a WorkQueue,
    pub(super) recv: &'a WorkQueue,
    pub(super) regions: RefCell<&'a mut RegionCache>,
    pub(super) expected: RefCell<&'a mut Expected>,
    pub(super) registry: &'a Registry,
    pub(super) attributes: ViAttributes,
    /// A peer's write was not allowed. What is to follow from that depends on whether immediate data comes behind it.
    pub(super) refused: Cell<Option<(Stag, u64)>>,
    /// Sends with invalidation carry immediate data, and take back nothing.
    pub(super) has_immediate: bool,
}

/// Contiguous bytes of a registered region.
#[derive(Debug, Clone)]
pub struct Run {
    /// The memory.
    pub memory: Arc<Memory>,
    /// Where in it the bytes begin.
    pub offset: usize,
    /// How many there are; never 0.
    pub len: u32,
}

/// What a place lies in, in the upper half of its handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lot {
    /// Nothing: what is put here is thrown away.
    Nowhere,
    /// The segments of the send descriptor of this number.
    Send(u64),
    /// Those of a receive descriptor.
    Receive(u64),
    /// A region, at its virtual addresses.
    Region(MemHandle),
}

impl Lot {
    /// Its beginning.
    pub(super) fn place(self) -> Place {
        Place::new(match self {
            Self::Nowhere => 0,
            Self::Send(number) => SEND | number & NUMBER,
            Self::Receive(number) => RECEIVE | number & NUMBER,
            Self::Region(handle) => REGION | u64::from(handle.0),
        })
    }

    fn of(place: Place) -> Self {
        let number = place.handle & NUMBER;
        match place.handle & !NUMBER {
            SEND => Self::Send(number),
            RECEIVE => Self::Receive(number),
            REGION => Self::Region(MemHandle(number as u32)),
            _ => Self::Nowhere,
        }
    }
}

impl Ground<'_> {
    /// Whether a write of the peer's was not allowed: nothing is sent before it is known what follows from that.
    pub fn has_refused(&self) -> bool {
        self.refused.get().is_some() && self.is_reliable()
    }

    /// The first run of the `len` bytes that are sent from `place`; `None` when they are out of reach.
    pub fn source(&self, place: Place, len: u32) -> Option<Run> {
        self.run(place, len, false)
    }

    /// The first run of the `len` bytes that are received at `place`.
    pub fn target(&self, place: Place, len: u32) -> Option<Run> {
        self.run(place, len, true)
    }

    fn run(&self, place: Place, len: u32, written: bool) -> Option<Run> {
        self.at(place, len, written, |memory, offset, len| {
            Some(Run {
                memory: Arc::clone(memory),
                offset,
                len,
            })
        })
    }

    /// Lets `step` at the memory where the `len` bytes at `place` begin: where in it that is, and how many of them lie there. To keep the memory
    /// for longer costs two locked instructions.
    fn at<T>(
        &self,
        place: Place,
        len: u32,
        written: bool,
        step: impl FnOnce(&Arc<Memory>, usize, u32) -> Option<T>,
    ) -> Option<T> {
        let (addr, handle, len) = match Lot::of(place) {
            Lot::Nowhere => return None,
            Lot::Send(number) => self.posted(self.send, number, place.offset, len)?,
            Lot::Receive(number) => self.posted(self.recv, number, place.offset, len)?,
            Lot::Region(handle) => (place.offset, handle, len),
        };
        let mut regions = self.regions.borrow_mut();
        let mut reach = Reach {
            regions: &mut regions,
            registry: self.registry,
            ptag: self.attributes.ptag,
        };
        let (memory, offset) = if written {
            reach.writable(handle, addr, len)?
        } else {
            reach.local(handle, addr, len)?
        };
        step(memory, offset, len)
    }

    /// The piece of a posted descriptor that begins `offset` bytes into it: address, region, length.
    fn posted(
        &self,
        queue: &WorkQueue,
        number: u64,
        offset: u64,
        len: u32,
    ) -> Option<(u64, MemHandle, u32)> {
        let index = queue.index_of(number)?;
        let mut offset = offset;
        for n in 0.. {
            let segment: Segment = queue.segment(index, n)?;
            if offset < u64::from(segment.len) {
                let left = segment.len - offset as u32;
                return Some((segment.addr + offset, segment.handle, left.min(len)));
            }
            offset -= u64::from(segment.len);
        }
        None
    }

    /// Lets `step` at each memory that the bytes lie in, in order: where in it they begin, and which of them they are.
    fn each_run(
        &self,
        place: Place,
        len: u32,
        written: bool,
        mut step: impl FnMut(&Memory, usize, std::ops::Range<usize>) -> Option<()>,
    ) -> Option<()> {
        let mut at = 0;
        while at < len {
            let place = place.advanced(u64::from(at));
            at += self.at(place, len - at, written, |memory, offset, len| {
                step(memory, offset, at as usize..(at + len) as usize)?;
                Some(len)
            })?;
        }
        Some(())
    }

    /// Whether it is of another tag than the VI.
    fn is_foreign(&self, region: &RegionEntry) -> bool {
        let tags = (region.attributes.ptag, self.attributes.ptag);
        matches!(tags, (Some(theirs), Some(ours)) if theirs != ours)
    }

    fn permit(
        &self,
        region: &RegionEntry,
        access: Access,
        to: u64,
        len: u32,
    ) -> Result<Place, Fault> {
        if self.is_foreign(region) {
            return Err(Fault::NotAssociated);
        }
        let (of_region, of_vi) = (region.attributes, self.attributes);
        let written = of_region.enable_rdma_write && of_vi.enable_rdma_write;
        let read = of_region.enable_rdma_read && of_vi.enable_rdma_read;
        let writable = region.memory.writable();
        let permitted = match access {
            Access::RemoteWrite => written && writable,
            Access::RemoteRead => read,
            Access::RemoteAtomic => written && read && writable,
        };
        if !permitted {
            return Err(Fault::NoRight);
        }
        let window = Window {
            base: region.memory.addr(),
            len: region.memory.len() as u64,
        };
        window.offset(to, len)?;
        Ok(Place {
            offset: to,
            ..Lot::Region(region.handle).place()
        })
    }
}

impl Source for Ground<'_> {
    fn show(&self, place: Place, len: u32, mut see: impl FnMut(&[u8])) -> Result<(), SourceLost> {
        // Memory that others may change is not lent out; a page at a time the copy stays in the cache.
        let mut page = [0; PAGE];
        let shown = self.each_run(place, len, false, |memory, offset, bytes| {
            let mut at = 0;
            while at < bytes.len() {
                let piece = page.get_mut(..PAGE.min(bytes.len() - at))?;
                memory.read(offset + at, piece).ok()?;
                see(piece);
                at += piece.len();
            }
            Some(())
        });
        shown.ok_or(SourceLost)
    }

    fn copy(&self, place: Place, into: &mut [u8]) -> Result<(), SourceLost> {
        let len = u32::try_from(into.len()).map_err(|_| SourceLost)?;
        let copied = self.each_run(place, len, false, |memory, offset, bytes| {
            memory.read(offset, into.get_mut(bytes)?).ok()
        });
        copied.ok_or(SourceLost)
    }

    fn digest(&self, place: Place, len: u32, crc: &mut Crc) -> Result<(), SourceLost> {
        let digested = self.each_run(place, len, false, |memory, offset, bytes| {
            memory.digest(offset, bytes.len(), crc.as_mut()).ok()
        });
        digested.ok_or(SourceLost)
    }
}

impl DdpMemory for Ground<'_> {
    fn grant(&self, access: Access, stag: Stag, to: u64, len: u32) -> Result<Place, Fault> {
        if access == Access::RemoteWrite && self.has_refused() {
            // Nothing that comes behind it counts.
            return Ok(Lot::Nowhere.place());
        }
        let mut regions = self.regions.borrow_mut();
        let granted = match regions.get(self.registry, MemHandle(stag.0)) {
            Some(region) => self.permit(region, access, to, len),
            None => Err(Fault::UnknownStag),
        };
        match granted {
            Err(_) if access == Access::RemoteWrite && self.has_immediate => {
                self.refused.set(Some((stag, to)));
                Ok(Lot::Nowhere.place())
            }
            granted => {
                if access == Access::RemoteWrite {
                    self.expected
                        .borrow_mut()
                        .handle_write(MemHandle(stag.0), to);
                }
                granted
            }
        }
    }

    fn unseen(&self, stag: Stag, to: u64) -> u64 {
        self.expected.borrow().free_from(MemHandle(stag.0), to)
    }

    fn handle_told(&mut self) {
        self.expected.get_mut().handle_told();
    }

    fn place(&mut self, place: Place, octets: &[u8]) -> Result<(), SourceLost> {
        let lot = Lot::of(place);
        if lot == Lot::Nowhere {
            return Ok(());
        }
        let len = u32::try_from(octets.len()).map_err(|_| SourceLost)?;
        let placed = self.each_run(place, len, true, |memory, offset, bytes| {
            memory.write(offset, octets.get(bytes)?).ok()
        });
        match (placed, lot) {
            // The receive fails when its message is complete, and nothing else does.
            (None, Lot::Receive(_)) if !self.is_reliable() => Ok(()),
            (placed, _) => placed.ok_or(SourceLost),
        }
    }

    fn place_pieces<'p>(
        &mut self,
        place: Place,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), SourceLost> {
        let mut place = place;
        // Where the next octets belong. Between markers pieces are short, and to look for each costs as much as to copy it.
        let mut known: Option<Run> = None;
        let mut is_first = true;
        for octets in pieces {
            let len = octets.len();
            if !std::mem::take(&mut is_first) && known.is_none() {
                // As far as the region or the segment goes, which is what the placing of the one before has found to be allowed.
                known = self.run(place, LOOK_AHEAD, true);
            }
            match known.as_mut().filter(|run| run.len as usize >= len) {
                Some(run) => {
                    run.memory
                        .write(run.offset, octets)
                        .map_err(|_| SourceLost)?;
                    run.offset += len;
                    run.len -= len as u32;
                }
                None => {
                    known = None;
                    self.place(place, octets)?;
                }
            }
            place = place.advanced(len as u64);
        }
        Ok(())
    }

    fn invalidate(&mut self, stag: Stag) -> Result<(), InvalidateFault> {
        if self.has_immediate {
            return Ok(());
        }
        let mut regions = self.regions.borrow_mut();
        let region = regions.get(self.registry, MemHandle(stag.0));
        // A region of VIPL's is its owner's to take back, also where the tags match.
        Err(match region {
            Some(region) if self.is_foreign(region) => InvalidateFault::NotAssociated,
            _ => InvalidateFault::UnknownStag,
        })
    }

    fn atomic(&mut self, place: Place, change: impl Fn(u64) -> u64) -> Result<u64, SourceLost> {
        let run = self.run(place, 8, true).ok_or(SourceLost)?;
        let _alone = ATOMICS.lock().unwrap_or_else(PoisonError::into_inner);
        let (memory, at) = (&run.memory, run.offset);
        let load = memory.load_u64(at, Ordering::Acquire);
        let original = load.map_err(|_| SourceLost)?;
        let stored = memory.store_u64(at, change(original), Ordering::Release);
        stored.map_err(|_| SourceLost)?;
        Ok(original)
    }
}

impl Ground<'_> {
    fn is_reliable(&self) -> bool {
        self.attributes.reliability.is_reliable()
    }
}

/// Atomics of peers are atomic to each other.
static ATOMICS: Mutex<()> = Mutex::new(());

const PAGE: usize = 4096;
const LOOK_AHEAD: u32 = 16 << 10;
const NUMBER: u64 = (1 << 60) - 1;
const SEND: u64 = 1 << 60;
const RECEIVE: u64 = 2 << 60;
const REGION: u64 = 3 << 60;
