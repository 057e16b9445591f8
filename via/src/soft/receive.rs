//! From the link to where it belongs.

use proto::frame::{Head, Kind, Refusal};

use super::core::{Core, Inbound, Into, Response, sent_op};
use super::link::{Device, Garbage, Goodbye, Link};
use super::memory::Reach;
use super::queue::{Cursor, Outcome};
use super::vi::SoftVi;
use crate::{AsyncError, CompletedOp, ErrorCode, Fault, MemHandle, Op, Queue, Segment};

impl<D: Device> SoftVi<D> {
    /// Moves what there is to move in both directions, within a bound, and notices an end of the
    /// connection. Returns whether frames arrived.
    #[inline]
    pub(super) fn progress(&self, core: &mut Core<D>) -> bool {
        if D::Link::MESSAGES {
            return self.progress_messages(core);
        }
        let Some(link) = &mut core.link else {
            return false;
        };
        // The end is looked at first and acted on last: what was sent before it still counts.
        let ended = link.ended();
        if link.ready() || ended.is_some() || core.ending.is_some() {
            return self.move_frames(core, ended.or(core.ending));
        }
        if Self::has_to_send(core) {
            self.pump(core);
        }
        false
    }

    fn move_frames(&self, core: &mut Core<D>, ended: Option<Goodbye>) -> bool {
        let mut arrived = false;
        for _ in 0..FRAMES_A_TIME {
            let Some(link) = &mut core.link else {
                return arrived;
            };
            let accepted = match link.peek() {
                Ok(None) => {
                    if let Some(why) = ended {
                        self.lose(core, why);
                    }
                    break;
                }
                Ok(Some(head)) if Self::is_held(core, &head) => {
                    if let Some(why) = ended {
                        self.give_up_sends(core, why);
                    }
                    break;
                }
                Ok(Some(head)) => self.accept_frame(core, &head),
                Err(garbage) => Err(garbage),
            };
            arrived = true;
            match (accepted, &mut core.link) {
                (Ok(()), Some(link)) => link.release(),
                (Err(Garbage), Some(link)) => {
                    link.close(Goodbye::Broken);
                    self.lose(core, Goodbye::Transport);
                    return true;
                }
                (_, None) => {}
            }
        }
        if Self::has_to_send(core) {
            self.pump(core);
        }
        arrived
    }

    /// Breaks the connection because the peer's message `seq` cannot be taken.
    pub(super) fn refuse(&self, core: &mut Core<D>, seq: u32, refusal: Refusal) {
        if let Some(link) = &mut core.link {
            link.close(Goodbye::Refused { seq, refusal });
        }
        self.lose(core, Goodbye::Broken);
    }

    #[inline]
    fn accept_frame(&self, core: &mut Core<D>, head: &Head) -> Result<(), Garbage> {
        match head.kind {
            Kind::Send | Kind::RdmaWrite => self.accept_message(core, head),
            Kind::ReadRequest => self.accept_read(core, head),
            Kind::ReadResponse => self.accept_response(core, head),
            Kind::Ack => self.accept_ack(core, head.seq),
            Kind::Refused | Kind::Disconnect => Err(Garbage),
        }
    }

    /// A piece of a send or an RDMA write.
    #[inline]
    fn accept_message(&self, core: &mut Core<D>, head: &Head) -> Result<(), Garbage> {
        let inbound = if head.offset == 0 {
            if core.inbound.is_some() && core.is_reliable() {
                return Err(Garbage);
            }
            let into = self.place_for(core, head);
            if core.link.is_none() {
                return Ok(());
            }
            Inbound {
                seq: head.seq,
                got: 0,
                msg_len: head.msg_len,
                into,
            }
        } else {
            match core.inbound {
                Some(inbound)
                    if (inbound.seq, inbound.got, inbound.msg_len)
                        == (head.seq, head.offset, head.msg_len) =>
                {
                    inbound
                }
                // The beginning was lost: so is the rest.
                _ if !core.is_reliable() => return Ok(()),
                _ => return Err(Garbage),
            }
        };
        self.place(core, head, inbound)
    }

    /// Decides where a message that begins with `head` goes; it may refuse and break off.
    #[inline]
    fn place_for(&self, core: &mut Core<D>, head: &Head) -> Into {
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
        let permitted = head.placed
            || head.msg_len == 0
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
    fn place(&self, core: &mut Core<D>, head: &Head, mut inbound: Inbound) -> Result<(), Garbage> {
        let Some(link) = &mut core.link else {
            return Ok(());
        };
        let mut reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let placed = match &mut inbound.into {
            _ if head.len == 0 || head.placed => Some(()),
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
    pub(super) fn run_dry(&self, core: &mut Core<D>, seq: u32, op: CompletedOp) {
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

    pub(super) fn fail_receive(
        &self,
        core: &mut Core<D>,
        index: usize,
        op: CompletedOp,
        fault: Fault,
    ) {
        self.end(core, Queue::Recv, index, Outcome::failed(op, fault, 0));
    }

    fn accept_read(&self, core: &mut Core<D>, head: &Head) -> Result<(), Garbage> {
        let level = core.attributes.reliability;
        if !self.nic.device.attributes().rdma_read.contains(level)
            || core.outbound.responses.len() >= RESPONSES_MAX
        {
            return Err(Garbage);
        }
        let permitted = head.msg_len == 0
            || (core.attributes.enable_rdma_read
                && Reach {
                    regions: &mut core.regions,
                    registry: &self.nic.registry,
                    ptag: core.attributes.ptag,
                }
                .remotely_readable(MemHandle(head.handle), head.addr, head.msg_len)
                .is_some());
        if !permitted {
            self.report(AsyncError {
                op: Some(CompletedOp::RdmaRead),
                ..AsyncError::of_vi(ErrorCode::RdmarProt, self.id)
            });
            self.refuse(core, head.seq, Refusal::Protection);
            return Ok(());
        }
        core.outbound.responses.push_back(Response {
            seq: head.seq,
            handle: MemHandle(head.handle),
            addr: head.addr,
            len: head.msg_len,
            sent: 0,
        });
        Ok(())
    }

    /// A piece of what our oldest unanswered read asked for.
    fn accept_response(&self, core: &mut Core<D>, head: &Head) -> Result<(), Garbage> {
        let oldest = (0..core.send.next()).find(|&i| {
            core.send
                .get(i)
                .is_some_and(|posted| posted.outcome.is_none() && posted.request.op == Op::RdmaRead)
        });
        let (Some(index), Some(link)) = (oldest, &mut core.link) else {
            return Err(Garbage);
        };
        let expected = core.send.get(index).map(|p| (p.seq, p.request.len));
        if expected != Some((head.seq, head.msg_len)) || head.offset != core.outbound.read_got {
            return Err(Garbage);
        }
        let reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let segment = |n| core.send.segment(index, n);
        let cursor = &mut core.outbound.read_cursor;
        let outcome = match scatter(link, segment, cursor, head.len, reach) {
            Some(()) => {
                core.outbound.read_got += head.len;
                if !head.is_last() {
                    return Ok(());
                }
                Outcome::done(sent_op(Op::RdmaRead), head.msg_len, None)
            }
            None => {
                let got = core.outbound.read_got;
                Outcome::failed(sent_op(Op::RdmaRead), Fault::Protection, got)
            }
        };
        core.outbound.reads -= 1;
        core.outbound.read_got = 0;
        core.outbound.read_cursor = Cursor::default();
        self.end(core, Queue::Send, index, outcome);
        if outcome.status.fault().is_some() {
            self.break_off(core);
        }
        Ok(())
    }

    /// Everything up to message `seq` is in the peer's memory.
    fn accept_ack(&self, core: &mut Core<D>, seq: u32) -> Result<(), Garbage> {
        let unsent = core.outbound.seq.wrapping_sub(seq) > u32::MAX / 2;
        if unsent || !core.awaits_acks() {
            return Err(Garbage);
        }
        let next = core.send.next();
        let first = core.send.first_open().unwrap_or(next);
        for index in first..next {
            let Some(posted) = core.send.get(index) else {
                break;
            };
            if posted.outcome.is_some() || posted.request.op == Op::RdmaRead {
                continue;
            }
            let later = posted.seq == 0 || seq.wrapping_sub(posted.seq) > u32::MAX / 2;
            if later {
                break;
            }
            let (op, len) = (sent_op(posted.request.op), posted.request.len);
            core.send.end(index, Outcome::done(op, len, None));
        }
        self.settle(core, Queue::Send);
        Ok(())
    }
}

/// What is wrong with the receive at `index` for a message of `len` bytes.
#[inline]
pub(super) fn receive_fault<D: Device>(
    registry: &super::memory::Registry,
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
fn scatter<L: Link>(
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

/// Frames taken before a thread looks at its own business again.
const FRAMES_A_TIME: u32 = 64;
/// Reads of a peer that may wait for their answers: as many as an honest queue can hold.
const RESPONSES_MAX: usize = 8192;
