//! Descriptors that lie in registered memory, in VIPL's layout.

use sys::mem::Memory;
use sys::sync::Ordering;

use super::core::Core;
use super::device::Device;
use super::memory::{RegionCache, Registry};
use super::queue::{Outcome, Request, Ticket};
use super::vi::SoftVi;
use crate::descriptor::Segments;
use crate::{DescriptorAt, Fault, MemHandle, Op, Queue, RemoteSegment, Segment};

impl<D: Device> SoftVi<D> {
    /// Takes over the descriptor at `at`: what it asks for; its segments go to `segments`, which is empty before.
    /// `None` if this VI may not use what lies there.
    #[inline]
    pub(super) fn parse(
        &self,
        core: &mut Core<D>,
        queue: Queue,
        at: DescriptorAt,
        segments: &mut Segments,
    ) -> Option<Request> {
        let region = core.regions.get(&self.nic.registry, at.handle)?;
        let tag = core.attributes.ptag;
        if !at.addr.is_multiple_of(DESCRIPTOR_ALIGNMENT) || !region.memory.writable() {
            return None;
        }
        let offset = region.reach(at.addr, CONTROL_LEN as u32, tag)?;
        let mut control = [0; CONTROL_LEN];
        region.memory.read(offset, &mut control).ok()?;
        let control = Control::read(&control);
        let (op, fault) = control.op(queue);
        let in_limit = u32::from(control.segments)
            <= self.nic.device.attributes().max_segments_per_desc + u32::from(op != Op::SendRecv);
        let mut request = Request {
            ticket: Ticket::At(at),
            op,
            fence: control.flags & CONTROL_QFENCE != 0,
            immediate: (queue == Queue::Send && control.flags & CONTROL_IMMEDIATE != 0)
                .then_some(control.immediate),
            remote: None,
            len: 0,
            fault: if in_limit { fault } else { Some(Fault::Format) },
        };
        if in_limit {
            let len = CONTROL_LEN as u32 + u32::from(control.segments) * SEGMENT_LEN as u32;
            region.reach(at.addr, len, tag)?;
            for n in 0..usize::from(control.segments) {
                let mut raw = [0; SEGMENT_LEN];
                let from = offset + CONTROL_LEN + n * SEGMENT_LEN;
                region.memory.read(from, &mut raw).ok()?;
                let segment = read_segment(&raw);
                if n == 0 && op != Op::SendRecv {
                    request.remote = Some(RemoteSegment {
                        addr: segment.addr,
                        handle: segment.handle,
                    });
                } else {
                    request.len = request.len.saturating_add(segment.len);
                    segments.push(segment);
                }
            }
        }
        if op != Op::SendRecv && request.remote.is_none() {
            request.fault = Some(Fault::Format);
        }
        if queue == Queue::Send && request.fault.is_none() && control.length != request.len {
            request.fault = Some(Fault::Length);
        }
        clear(&region.memory, offset)?;
        Some(request)
    }

    /// Writes into the descriptor before it that this one follows.
    pub(super) fn chain(&self, core: &mut Core<D>, queue: Queue, at: DescriptorAt) {
        let Some(Ticket::At(before)) = core.queue(queue).last().map(|last| last.request.ticket)
        else {
            return;
        };
        let tag = core.attributes.ptag;
        if let Some(region) = core.regions.get(&self.nic.registry, before.handle)
            && let Some(offset) = region.reach(before.addr, CONTROL_LEN as u32, tag)
        {
            let mut link = [0; 12];
            link[..8].copy_from_slice(&at.addr.to_ne_bytes());
            link[8..].copy_from_slice(&at.handle.0.to_ne_bytes());
            let written = region.memory.write(offset, &link);
            debug_assert!(written.is_ok(), "the control segment lies in the region");
        }
    }
}

/// VIPL's control segment, as the consumer filled it in.
struct Control {
    segments: u16,
    flags: u16,
    immediate: u32,
    length: u32,
}

impl Control {
    fn read(raw: &[u8; CONTROL_LEN]) -> Self {
        let u16_at = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
        let u32_at =
            |at: usize| u32::from_ne_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        Self {
            segments: u16_at(12),
            flags: u16_at(14),
            immediate: u32_at(20),
            length: u32_at(24),
        }
    }

    /// The operation, and what is wrong with it on `queue`.
    fn op(&self, queue: Queue) -> (Op, Option<Fault>) {
        let op = match self.flags & CONTROL_OP_MASK {
            0 => Op::SendRecv,
            1 => Op::RdmaWrite,
            2 => Op::RdmaRead,
            _ => return (Op::SendRecv, Some(Fault::Format)),
        };
        let odd = self.flags & CONTROL_RESERVED != 0
            || (queue == Queue::Recv && op != Op::SendRecv)
            || (op == Op::RdmaRead && self.flags & CONTROL_IMMEDIATE != 0);
        (op, odd.then_some(Fault::Format))
    }
}

fn read_segment(raw: &[u8; SEGMENT_LEN]) -> Segment {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *raw;
    Segment {
        addr: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        handle: MemHandle(u32::from_ne_bytes([i, j, k, l])),
        len: u32::from_ne_bytes([m, n, o, p]),
    }
}

/// Takes the descriptor over: no successor, no status.
fn clear(memory: &Memory, offset: usize) -> Option<()> {
    memory.write(offset, &[0; 12]).ok()?;
    memory
        .store_u32(offset + STATUS_AT, 0, Ordering::Relaxed)
        .ok()
}

/// Writes an outcome into the descriptor at `at`, its status last. Fails when its memory is gone.
#[inline]
pub(super) fn write_outcome(
    regions: &mut RegionCache,
    registry: &Registry,
    at: DescriptorAt,
    outcome: &Outcome,
) -> bool {
    let Some(region) = regions.get(registry, at.handle) else {
        return false;
    };
    let Some(offset) = region.reach(at.addr, CONTROL_LEN as u32, None) else {
        return false;
    };
    let memory = &region.memory;
    let words = [
        outcome.immediate.map(|immediate| (IMMEDIATE_AT, immediate)),
        Some((LENGTH_AT, outcome.length)),
    ];
    words.into_iter().flatten().all(|(at, word)| {
        let stored = memory.store_u32(offset + at, word, Ordering::Relaxed);
        stored.is_ok()
    }) && memory
        .store_u32(offset + STATUS_AT, outcome.status.bits(), Ordering::Release)
        .is_ok()
}

const DESCRIPTOR_ALIGNMENT: u64 = 64;
const CONTROL_LEN: usize = 32;
const SEGMENT_LEN: usize = 16;
const IMMEDIATE_AT: usize = 20;
const LENGTH_AT: usize = 24;
const STATUS_AT: usize = 28;
const CONTROL_OP_MASK: u16 = 0x0003;
const CONTROL_IMMEDIATE: u16 = 0x0004;
const CONTROL_QFENCE: u16 = 0x0008;
const CONTROL_RESERVED: u16 = 0xfff0;
