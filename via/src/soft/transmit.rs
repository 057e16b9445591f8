//! From the send queue to the link.

use super::core::{Core, Leaving, Response, sent_op};
use super::link::{Device, Link};
use super::memory::Reach;
use super::queue::{Cursor, Outcome, Plain, Ticket, WorkQueue};
use super::vi::SoftVi;
use crate::descriptor::Segments;
use crate::{CompletedOp, Fault, Op, Queue, Segment};

use proto::frame::{Head, Kind};

/// What an attempt to send something came to.
#[derive(PartialEq, Eq)]
enum Step {
    Moved,
    /// There is nothing to send, or it has to wait.
    Idle,
    /// The connection is gone.
    Lost,
}

impl<D: Device> SoftVi<D> {
    /// Sends what there is to send, as far as the link takes it.
    pub(super) fn pump(&self, core: &mut Core<D>) {
        if D::Link::MESSAGES {
            return self.pump_messages(core);
        }
        let mut sent = false;
        let mut unflushed = false;
        loop {
            let acked = self.send_ack(core);
            let answered = self.send_response(core);
            let moved = match self.send_message(core) {
                Step::Lost => return,
                step => step == Step::Moved,
            };
            if !(acked || answered || moved) {
                break;
            }
            // The first frame wakes a sleeping receiver, so that it copies while we do.
            if !sent && let Some(link) = &mut core.link {
                link.flush();
            }
            unflushed = sent;
            sent = true;
        }
        if unflushed && let Some(link) = &mut core.link {
            link.flush();
        }
    }

    /// Sends a message that fits in one frame and need not wait, straight from its descriptor.
    #[inline(always)]
    pub(super) fn send_now(&self, core: &mut Core<D>, plain: Plain, segments: &Segments) -> bool {
        let Some(link) = &mut core.link else {
            return false;
        };
        let now = core.send.next() == core.send.len()
            && core.send.len() < self.nic.device.attributes().max_descriptors_per_queue as usize
            && plain.len <= link.frame_max()
            && plain.len <= core.attributes.max_transfer_size;
        let seq = core.outbound.next_seq();
        let sent = now
            && (self.send_brief(core, seq, plain, segments)
                || self.send_only_frame(core, seq, plain, segments));
        if !sent {
            return false;
        }
        core.outbound.seq = seq;
        let outcome = Outcome::done(CompletedOp::Send, plain.len, None);
        let done = (!core.awaits_acks()).then_some(outcome);
        let ready = core.send.push_begun(plain, seq, done);
        let unheard = ready && core.sleepers == 0 && self.cq(Queue::Send).is_none();
        let unheard = unheard && core.notify[Queue::Send as usize].is_empty();
        if unheard && matches!(plain.ticket, Ticket::Named(_)) {
            core.send.skip_ready();
        } else if done.is_some() {
            self.settle(core, Queue::Send);
        }
        true
    }

    #[inline]
    fn send_only_frame(
        &self,
        core: &mut Core<D>,
        seq: u32,
        plain: Plain,
        segments: &Segments,
    ) -> bool {
        let Plain { immediate, len, .. } = plain;
        let Some(link) = &mut core.link else {
            return false;
        };
        if !link.reserve(len) {
            return false;
        }
        let reach = Reach {
            regions: &mut core.regions,
            registry: &self.nic.registry,
            ptag: core.attributes.ptag,
        };
        let mut cursor = Cursor::default();
        let segment = |n| segments.get(n);
        // What is wrong is found again, and told, the long way.
        let filled = fill(link, segment, &mut cursor, len, reach);
        if filled.is_some() {
            commit_whole(link, seq, immediate, len);
        }
        filled.is_some()
    }

    /// Whether [`SoftVi::pump`] could have something to do.
    pub(super) fn has_to_send(core: &Core<D>) -> bool {
        core.ack_due.is_some()
            || !core.outbound.responses.is_empty()
            || core.send.next() < core.send.len()
    }

    fn send_ack(&self, core: &mut Core<D>) -> bool {
        let (Some(seq), Some(link)) = (core.ack_due, &mut core.link) else {
            return false;
        };
        if !link.reserve(0) {
            return false;
        }
        link.commit(&Head::bare(Kind::Ack, seq));
        core.ack_due = None;
        true
    }

    /// Sends one frame of the oldest unanswered read.
    fn send_response(&self, core: &mut Core<D>) -> bool {
        let (Some(response), Some(link)) = (core.outbound.responses.front_mut(), &mut core.link)
        else {
            return false;
        };
        let Response {
            seq,
            handle,
            addr,
            len,
            sent,
        } = *response;
        let piece = (len - sent).min(link.frame_max());
        if !link.reserve(piece) {
            return false;
        }
        if piece > 0 {
            // A region that has gone since the request was checked leaves a hole in the answer,
            // which the reader takes for garbage and breaks off.
            let mut reach = Reach {
                regions: &mut core.regions,
                registry: &self.nic.registry,
                ptag: core.attributes.ptag,
            };
            let filled = reach
                .remotely_readable(handle, addr + u64::from(sent), piece)
                .and_then(|(memory, offset)| link.fill(0, memory, offset, piece as usize).ok());
            if filled.is_none() {
                self.refuse(core, seq, proto::frame::Refusal::Protection);
                return false;
            }
        }
        link.commit(&Head {
            len: piece,
            msg_len: len,
            offset: sent,
            ..Head::bare(Kind::ReadResponse, seq)
        });
        response.sent += piece;
        if response.sent == len {
            core.outbound.responses.pop_front();
        }
        true
    }

    /// Sends one frame of the message whose turn it is, or begins and ends it.
    fn send_message(&self, core: &mut Core<D>) -> Step {
        let index = core.send.next();
        if core.link.is_none() || index >= core.send.len() {
            return Step::Idle;
        }
        match core.outbound.message {
            Some(leaving) => self.send_frame(core, index, leaving),
            None => self.begin_message(core, index),
        }
    }

    fn begin_message(&self, core: &mut Core<D>, index: usize) -> Step {
        let Some(posted) = core.send.get(index) else {
            return Step::Idle;
        };
        let request = posted.request;
        if request.fence && core.outbound.reads > 0 {
            return Step::Idle;
        }
        let op = sent_op(request.op);
        if let Some(fault) = self.send_fault(core, index) {
            // It breaks the connection; what was posted before it comes to its own end first.
            if core.is_reliable() && core.send.first_open().is_some_and(|open| open < index) {
                return Step::Idle;
            }
            core.send.begin_next();
            self.end(core, Queue::Send, index, Outcome::failed(op, fault, 0));
            if core.is_reliable() {
                self.break_off(core);
                return Step::Lost;
            }
            return Step::Moved;
        }
        let Some(link) = &mut core.link else {
            return Step::Idle;
        };
        let seq = core.outbound.next_seq();
        if request.op == Op::RdmaRead {
            if !link.reserve(0) {
                return Step::Idle;
            }
            let Some(remote) = request.remote else {
                return Step::Idle;
            };
            link.commit(&Head {
                msg_len: request.len,
                handle: remote.handle.0,
                addr: remote.addr,
                ..Head::bare(Kind::ReadRequest, seq)
            });
            core.outbound.reads += 1;
            core.outbound.seq = seq;
            core.send.begin_next();
            if let Some(posted) = core.send.get_mut(index) {
                posted.seq = seq;
            }
            return Step::Moved;
        }
        let leaving = Leaving {
            seq,
            offset: 0,
            cursor: Cursor::default(),
        };
        if request.op == Op::RdmaWrite
            && request.len > 0
            && let Some(step) = self.write_directly(core, index, seq)
        {
            return step;
        }
        self.send_frame(core, index, leaving)
    }

    /// Writes into the peer's memory without its help, if the link can.
    fn write_directly(&self, core: &mut Core<D>, index: usize, seq: u32) -> Option<Step> {
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

    fn send_frame(&self, core: &mut Core<D>, index: usize, mut leaving: Leaving) -> Step {
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
        leaving.offset += piece;
        if leaving.offset < request.len {
            core.outbound.message = Some(leaving);
            return Step::Moved;
        }
        core.outbound.message = None;
        core.send.begin_next();
        if core.awaits_acks() {
            if let Some(posted) = core.send.get_mut(index) {
                posted.seq = leaving.seq;
            }
        } else {
            let outcome = Outcome::done(sent_op(request.op), request.len, None);
            self.end(core, Queue::Send, index, outcome);
        }
        Step::Moved
    }

    /// What is wrong with the send at `index`, now that its turn has come.
    pub(super) fn send_fault(&self, core: &mut Core<D>, index: usize) -> Option<Fault> {
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

/// Sends the reserved frame as a message of its own, and wakes who waits for it.
#[inline(always)]
pub(super) fn commit_whole<L: Link>(link: &mut L, seq: u32, immediate: Option<u32>, len: u32) {
    link.commit(&Head {
        immediate,
        len,
        msg_len: len,
        ..Head::bare(Kind::Send, seq)
    });
    link.flush();
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
fn fill<L: Link>(
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
