//! One message or frame, out of the descriptor's segments.

use proto::frame::{Head, Kind};

use super::super::core::{Core, Leaving, sent_op};
use super::super::device::Device;
use super::super::link::Link;
use super::super::memory::Reach;
use super::super::queue::{Cursor, Outcome, WorkQueue};
use super::super::vi::SoftVi;
use super::Step;
use crate::{Fault, Op, Queue, Segment};

impl<D: Device> SoftVi<D> {
    /// Writes into the peer's memory without its help, if the link can.
    pub(super) fn write_directly(
        &self,
        core: &mut Core<D>,
        index: usize,
        seq: u32,
    ) -> Option<Step> {
        let request = core.send.get(index)?.request;
        let remote = request.remote?;
        let link = core.link.as_mut()?;
        // With immediate data the frame that tells of it must have room before the data is there.
        if request.immediate.is_some() && !link.reserve(0) {
            return Some(Step::Idle);
        }
        if !link.enter(remote, request.len) {
            return None;
        }
        let reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let put = put(link, &core.send, index, reach);
        link.leave();
        put?;
        if let Some(immediate) = request.immediate {
            link.commit(&Head {
                immediate: Some(immediate),
                placed: true,
                msg_len: request.len,
                handle: remote.handle.0,
                addr: remote.addr,
                ..Head::bare(Kind::RdmaWrite, seq)
            });
        }
        core.outbound.seq = seq;
        core.send.begin_next();
        if let Some(posted) = core.send.get_mut(index) {
            posted.seq = seq;
        }
        if !(core.awaits_acks() && request.immediate.is_some()) {
            let outcome = Outcome::done(sent_op(request.op), request.len, None);
            self.end(core, Queue::Send, index, outcome);
        }
        Some(Step::Moved)
    }

    pub(super) fn send_frame(
        &self,
        core: &mut Core<D>,
        index: usize,
        mut leaving: Leaving,
    ) -> Step {
        let (Some(posted), Some(link)) = (core.send.get(index), &mut core.link) else {
            return Step::Idle;
        };
        let request = posted.request;
        let piece = (request.len - leaving.offset).min(link.frame_max());
        if !link.reserve(piece) {
            return Step::Idle;
        }
        let reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let segment = |n| core.send.segment(index, n);
        let filled = fill(link, segment, &mut leaving.cursor, piece, reach);
        if filled.is_none() {
            // A region went while its message was leaving.
            core.outbound.message = None;
            core.send.begin_next();
            let outcome = Outcome::failed(sent_op(request.op), Fault::Protection, leaving.offset);
            self.end(core, Queue::Send, index, outcome);
            if core.is_reliable() {
                self.break_off(core);
                return Step::Lost;
            }
            return Step::Moved;
        }
        let (kind, handle, addr) = match request.remote {
            Some(remote) => (Kind::RdmaWrite, remote.handle.0, remote.addr),
            None => (Kind::Send, 0, 0),
        };
        link.commit(&Head {
            kind,
            immediate: request.immediate,
            placed: false,
            len: piece,
            msg_len: request.len,
            offset: leaving.offset,
            seq: leaving.seq,
            handle,
            addr,
        });
        core.outbound.seq = leaving.seq;
        let awaits_ack = core.awaits_acks();
        // From its first frame on: it may be refused before the last one has left.
        if awaits_ack && let Some(posted) = core.send.get_mut(index) {
            posted.seq = leaving.seq;
        }
        leaving.offset += piece;
        if leaving.offset < request.len {
            core.outbound.message = Some(leaving);
            return Step::Moved;
        }
        core.outbound.message = None;
        core.send.begin_next();
        if !awaits_ack {
            let outcome = Outcome::done(sent_op(request.op), request.len, None);
            self.end(core, Queue::Send, index, outcome);
        }
        Step::Moved
    }

    /// What is wrong with the send at `index`, now that its turn has come.
    pub(in crate::soft) fn send_fault(&self, core: &mut Core<D>, index: usize) -> Option<Fault> {
        let request = core.send.get(index)?.request;
        let level = core.attributes.reliability;
        if request.fault.is_some() {
            return request.fault;
        }
        let reads = request.op == Op::RdmaRead;
        if reads && !self.nic.device.attributes().rdma_read.contains(level) {
            return Some(Fault::Format);
        }
        if request.len > core.attributes.max_transfer_size {
            return Some(Fault::Length);
        }
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let mut n = 0;
        while let Some(Segment { addr, handle, len }) = core.send.segment(index, n) {
            n += 1;
            let reached = len == 0
                || if reads {
                    reach.writable(handle, addr, len).is_some()
                } else {
                    reach.local(handle, addr, len).is_some()
                };
            if !reached {
                return Some(Fault::Protection);
            }
        }
        None
    }
}

/// Writes the whole message at `index` into the range that was entered.
fn put<L: Link>(link: &mut L, queue: &WorkQueue, index: usize, mut reach: Reach<'_>) -> Option<()> {
    let mut at = 0;
    let mut n = 0;
    while let Some(Segment { addr, handle, len }) = queue.segment(index, n) {
        n += 1;
        if len > 0 {
            let (memory, offset) = reach.local(handle, addr, len)?;
            link.put(at, memory, offset, len as usize).ok()?;
            at += len;
        }
    }
    Some(())
}

/// Fills a reserved frame with the next `len` bytes of the segments.
pub(super) fn fill<L: Link>(
    link: &mut L,
    segment: impl Fn(u32) -> Option<Segment>,
    cursor: &mut Cursor,
    len: u32,
    mut reach: Reach<'_>,
) -> Option<()> {
    let mut at = 0;
    while at < len {
        let segment = segment(cursor.segment)?;
        let piece = (segment.len - cursor.offset).min(len - at);
        if piece > 0 {
            let addr = segment.addr + u64::from(cursor.offset);
            let (memory, offset) = reach.local(segment.handle, addr, piece)?;
            link.fill(at, memory, offset, piece as usize).ok()?;
        }
        at += piece;
        cursor.offset += piece;
        if cursor.offset == segment.len {
            cursor.segment += 1;
            cursor.offset = 0;
        }
    }
    Some(())
}
