//! From the send queue to the link.

mod frame;

use frame::fill;

use super::core::{Core, Leaving, Response, sent_op};
use super::device::Device;
use super::link::Link;
use super::memory::Reach;
use super::messages::seq_of;
use super::queue::{Cursor, Outcome, Plain, Ticket};
use super::vi::SoftVi;
use crate::descriptor::Segments;
use crate::{CompletedOp, Op, Queue};

use proto::frame::{Head, Kind};

/// What an attempt to send something came to.
#[derive(PartialEq, Eq)]
pub(super) enum Step {
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

    /// Sends a message that fits in one frame, or is short, and need not wait, straight from its descriptor.
    #[inline(always)]
    pub(super) fn send_now(&self, core: &mut Core<D>, plain: Plain, segments: &Segments) -> bool {
        let Some(link) = &mut core.link else {
            return false;
        };
        let now = core.send.next() == core.send.len()
            && core.send.len() < self.nic.device.attributes().max_descriptors_per_queue as usize
            && (D::Link::MESSAGES || plain.len <= link.frame_max())
            && plain.len <= core.attributes.max_transfer_size;
        let seq = core.outbound.next_seq();
        let sent = now
            && if D::Link::MESSAGES {
                match self.send_message_now(core, plain, segments) {
                    None => false,
                    Some(true) => true,
                    Some(false) => {
                        self.push_partly_sent(core, plain, segments);
                        return true;
                    }
                }
            } else {
                self.send_brief(core, seq, plain, segments)
                    || self.send_only_frame(core, seq, plain, segments)
            };
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

    /// `None` if it was not sent, else whether it is complete.
    #[inline(always)]
    fn send_message_now(
        &self,
        core: &mut Core<D>,
        plain: Plain,
        segments: &Segments,
    ) -> Option<bool> {
        if self.send_short(core, plain, segments) {
            return Some(true);
        }
        self.send_lone(core, plain, segments)
    }

    /// The link knows of the message already, and tells when the rest of it has left.
    #[cold]
    fn push_partly_sent(&self, core: &mut Core<D>, plain: Plain, segments: &Segments) {
        let index = core.send.len();
        let seq = seq_of(core.send.number(index));
        core.send.push(plain.begun(), segments);
        core.send.begin_next();
        if let Some(posted) = core.send.get_mut(index) {
            posted.seq = seq;
        }
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
