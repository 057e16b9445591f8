//! From the link to where it belongs.

mod place;

use proto::frame::{Head, Kind, Refusal};

pub(super) use place::receive_fault;
use place::scatter;

use super::core::{Core, Inbound, Response, sent_op};
use super::device::Device;
use super::link::{Garbage, Goodbye, Link};
use super::memory::Reach;
use super::queue::{Cursor, Outcome};
use super::vi::SoftVi;
use crate::{AsyncError, CompletedOp, ErrorCode, Fault, MemHandle, Op, Queue};

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

/// Frames taken before a thread looks at its own business again.
const FRAMES_A_TIME: u32 = 64;
/// Reads of a peer that may wait for their answers: as many as an honest queue can hold.
const RESPONSES_MAX: usize = 8192;
