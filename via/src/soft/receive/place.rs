//! Where a message goes, and what is wrong with that place.

use proto::frame::{Head, Kind, Refusal};

use super::super::core::{Core, Inbound, Into};
use super::super::device::Device;
use super::super::link::{Garbage, Link};
use super::super::memory::{Reach, Registry};
use super::super::queue::{Cursor, Outcome};
use super::super::vi::SoftVi;
use crate::{AsyncError, CompletedOp, ErrorCode, Fault, MemHandle, Queue, Segment};

impl<D: Device> SoftVi<D> {
    /// Decides where a message that begins with `head` goes; it may refuse and break off.
    #[inline]
    pub(super) fn place_for(&self, core: &mut Core<D>, head: &Head) -> Into {
        if head.kind == Kind::RdmaWrite {
            return self.place_for_write(core, head);
        }
        let Some(index) = core.recv.first_open() else {
            self.run_dry(core, head.seq, CompletedOp::Receive);
            return Into::Nowhere;
        };
        match receive_fault(&self.nic.registry, core, index, head.msg_len) {
            None => Into::Receive(Cursor::default()),
            Some(fault) => {
                self.fail_receive(core, index, CompletedOp::Receive, fault);
                if core.is_reliable() {
                    self.refuse(core, head.seq, Refusal::Descriptor);
                }
                Into::Nowhere
            }
        }
    }

    fn place_for_write(&self, core: &mut Core<D>, head: &Head) -> Into {
        let handle = MemHandle(head.handle);
        // Also of one that is in its place already, as its sender says: no other than these could have been put there.
        let permitted = head.msg_len == 0
            || (core.attributes.enable_rdma_write
                && Reach {
                    regions: &mut core.regions,
                    registry: &self.nic.registry,
                    ptag: core.attributes.ptag,
                }
                .remotely_writable(handle, head.addr, head.msg_len)
                .is_some());
        if permitted {
            return Into::Region {
                handle,
                addr: head.addr,
            };
        }
        match head.immediate.and_then(|_| core.recv.first_open()) {
            Some(index) => {
                let op = CompletedOp::RemoteRdmaWrite;
                self.fail_receive(core, index, op, Fault::RdmaProtection);
            }
            None => self.report(AsyncError {
                op: Some(CompletedOp::RemoteRdmaWrite),
                ..AsyncError::of_vi(ErrorCode::RdmawProt, self.id)
            }),
        }
        if core.is_reliable() {
            self.refuse(core, head.seq, Refusal::Protection);
        }
        Into::Nowhere
    }

    /// Copies the frame's payload to its place and ends the message with its last frame.
    #[inline]
    pub(super) fn place(
        &self,
        core: &mut Core<D>,
        head: &Head,
        mut inbound: Inbound,
    ) -> Result<(), Garbage> {
        let Some(link) = &mut core.link else {
            return Ok(());
        };
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let placed = match &mut inbound.into {
            _ if head.len == 0 => Some(()),
            Into::Nowhere => Some(()),
            Into::Region { handle, addr } => {
                let addr = *addr + u64::from(head.offset);
                reach
                    .remotely_writable(*handle, addr, head.len)
                    .and_then(|(memory, offset)| {
                        link.read(0, memory, offset, head.len as usize).ok()
                    })
            }
            Into::Receive(cursor) => core.recv.first_open().and_then(|index| {
                let segment = |n| core.recv.segment(index, n);
                scatter(link, segment, cursor, head.len, reach)
            }),
        };
        if placed.is_none() {
            // The memory was deregistered while the message arrived.
            return self.place_gone(core, head, inbound);
        }
        inbound.got += head.len;
        if !head.is_last() {
            core.inbound = Some(inbound);
            return Ok(());
        }
        core.inbound = None;
        self.finish(core, head, inbound.into);
        Ok(())
    }

    fn place_gone(&self, core: &mut Core<D>, head: &Head, inbound: Inbound) -> Result<(), Garbage> {
        core.inbound = None;
        let refusal = match (inbound.into, core.recv.first_open()) {
            (Into::Receive(_), Some(index)) => {
                self.fail_receive(core, index, CompletedOp::Receive, Fault::Protection);
                Refusal::Descriptor
            }
            _ => {
                self.report(AsyncError::of_vi(ErrorCode::RdmawProt, self.id));
                Refusal::Protection
            }
        };
        if core.is_reliable() {
            self.refuse(core, head.seq, refusal);
        }
        Ok(())
    }

    /// The whole message is in place.
    #[inline]
    fn finish(&self, core: &mut Core<D>, head: &Head, into: Into) {
        let op = match (into, head.immediate) {
            (Into::Receive(_), _) => Some(CompletedOp::Receive),
            (Into::Region { .. }, Some(_)) => Some(CompletedOp::RemoteRdmaWrite),
            (Into::Region { .. }, None) | (Into::Nowhere, _) => None,
        };
        if let Some(op) = op {
            let Some(index) = core.recv.first_open() else {
                return self.run_dry(core, head.seq, op);
            };
            core.dry = false;
            let outcome = Outcome::done(op, head.msg_len, head.immediate);
            self.end(core, Queue::Recv, index, outcome);
        }
        if core.awaits_acks() {
            core.ack_due = Some(head.seq);
        }
    }

    /// No receive is posted for a message that needs one.
    pub(in crate::soft) fn run_dry(&self, core: &mut Core<D>, seq: u32, op: CompletedOp) {
        if !std::mem::replace(&mut core.dry, true) {
            self.report(AsyncError {
                op: Some(op),
                ..AsyncError::of_vi(ErrorCode::RecvqEmpty, self.id)
            });
        }
        if core.is_reliable() {
            self.refuse(core, seq, Refusal::Descriptor);
        }
    }

    pub(in crate::soft) fn fail_receive(
        &self,
        core: &mut Core<D>,
        index: usize,
        op: CompletedOp,
        fault: Fault,
    ) {
        self.end(core, Queue::Recv, index, Outcome::failed(op, fault, 0));
    }
}

/// What is wrong with the receive at `index` for a message of `len` bytes.
#[inline]
pub(in crate::soft) fn receive_fault<D: Device>(
    registry: &Registry,
    core: &mut Core<D>,
    index: usize,
    len: u32,
) -> Option<Fault> {
    let request = core.recv.get(index)?.request;
    if request.fault.is_some() {
        return request.fault;
    }
    let mut reach = Reach {
        regions: &mut core.regions,
        registry,
        ptag: core.attributes.ptag,
    };
    let mut n = 0;
    while let Some(Segment { addr, handle, len }) = core.recv.segment(index, n) {
        n += 1;
        if len > 0 && reach.writable(handle, addr, len).is_none() {
            return Some(Fault::Protection);
        }
    }
    (request.len < len).then_some(Fault::Length)
}

/// Copies the next `len` bytes of the frame at the front into the segments.
#[inline]
pub(super) fn scatter<L: Link>(
    link: &mut L,
    segment: impl Fn(u32) -> Option<Segment>,
    cursor: &mut Cursor,
    len: u32,
    mut reach: Reach<'_>,
) -> Option<()> {
    let mut at = 0;
    while at < len {
        let Segment {
            addr,
            handle,
            len: room,
        } = segment(cursor.segment)?;
        let piece = (room - cursor.offset).min(len - at);
        if piece > 0 {
            let addr = addr + u64::from(cursor.offset);
            let (memory, offset) = reach.writable(handle, addr, piece)?;
            link.read(at, memory, offset, piece as usize).ok()?;
        }
        at += piece;
        cursor.offset += piece;
        if cursor.offset == room {
            cursor.segment += 1;
            cursor.offset = 0;
        }
    }
    Some(())
}
