//! Why a connection that carries messages fails, in VIPL's terms, and who is to blame for it.

use proto::ddp::{Header, QN_SEND, Stag};
use proto::frame::Refusal;
use proto::rdmap::{Code, Failure, Opcode, Terminate};

use super::core::{Core, sent_op};
use super::device::Device;
use super::link::{Goodbye, Link};
use super::queue::{Outcome, Request};
use super::receive::receive_fault;
use super::vi::SoftVi;
use crate::{AsyncError, CompletedOp, ErrorCode, Fault, Op, Queue, Reliability};

impl<D: Device> SoftVi<D> {
    /// Breaks the connection because a message cannot be taken, and tells the peer.
    pub(super) fn refuse_message(
        &self,
        core: &mut Core<D>,
        (layer, etype, code): (u8, u8, u8),
        written: Option<(Stag, u64)>,
    ) {
        self.on_ground(core, |link, ground| {
            link.refuse(Code::new(layer, etype, code), written, ground);
        });
        self.lose(core, Goodbye::Broken);
    }

    pub(super) fn tell_refused(&self, core: &mut Core<D>) {
        let refused = core.refused_write.take();
        if refused.is_none() {
            return;
        }
        self.report(AsyncError {
            op: Some(CompletedOp::RemoteRdmaWrite),
            ..AsyncError::of_vi(ErrorCode::RdmawProt, self.id)
        });
        if core.is_reliable() {
            self.refuse_message(core, WRITE_REFUSED, refused);
        }
    }

    /// Why the connection fails, in VIPL's terms; ends the descriptors that are to blame for it.
    pub(super) fn explain(&self, core: &mut Core<D>, failure: Failure) -> Goodbye {
        match failure {
            Failure::Violation { code, opcode } => self.blame_peer(core, code, opcode),
            Failure::Terminated(terminate) => refused(core, &terminate).unwrap_or(Goodbye::Broken),
            Failure::Lost => {
                self.blame_memory(core);
                Goodbye::Died
            }
            Failure::Timeout => Goodbye::Transport,
        }
    }

    fn blame_peer(&self, core: &mut Core<D>, code: Code, opcode: Option<Opcode>) -> Goodbye {
        let protection = |code, op| AsyncError {
            op: Some(op),
            ..AsyncError::of_vi(code, self.id)
        };
        let is_for_receive = opcode.is_some_and(|opcode| opcode.row().queue == Some(QN_SEND));
        match (code.layer, code.etype, code.code) {
            NO_BUFFER if is_for_receive => {
                core.dry = true;
                let error = AsyncError {
                    op: Some(CompletedOp::Receive),
                    ..AsyncError::of_vi(ErrorCode::RecvqEmpty, self.id)
                };
                self.report(error);
            }
            TOO_LONG if is_for_receive => {
                if let Some(index) = core.recv.first_open() {
                    self.fail_receive(core, index, CompletedOp::Receive, Fault::Length);
                }
            }
            // What else is wrong with a Write, or is no Write, was not refused for want of a right.
            (1, 1, 0..=3) if opcode == Some(Opcode::Write) => {
                self.report(protection(
                    ErrorCode::RdmawProt,
                    CompletedOp::RemoteRdmaWrite,
                ));
            }
            (0, 1, 0..=4) if opcode == Some(Opcode::ReadRequest) => {
                self.report(protection(ErrorCode::RdmarProt, CompletedOp::RdmaRead));
            }
            (0 | 1, 0, _) => self.blame_memory(core),
            _ => return Goodbye::Transport,
        }
        Goodbye::Broken
    }

    /// Memory of ours has gone under a message.
    fn blame_memory(&self, core: &mut Core<D>) {
        if let Some(index) = core.recv.first_open()
            && let Some(fault) = receive_fault(&self.nic.registry, core, index, 0)
        {
            self.fail_receive(core, index, CompletedOp::Receive, fault);
        }
        let open = core.send.first_open().unwrap_or(core.send.len());
        for index in open..core.send.next() {
            let Some(posted) = core.send.get(index).filter(|p| p.outcome.is_none()) else {
                continue;
            };
            let op = sent_op(posted.request.op);
            if let Some(fault) = self.send_fault(core, index) {
                self.end(core, Queue::Send, index, Outcome::failed(op, fault, 0));
                return;
            }
        }
    }
}

/// What the peer says it cannot take, among what it may mean.
fn refused<D: Device>(core: &Core<D>, terminate: &Terminate) -> Option<Goodbye> {
    let code = terminate.code;
    let header = terminate.header.as_ref();
    let header = header.and_then(|header| Header::decode(header).ok());
    // Without a header the code has to do.
    let is_of =
        |opcode| header.is_none_or(|header| Opcode::from_control(header.ulp()) == Ok(opcode));
    let (at, is_for_receive) = match header {
        Some(Header::Tagged(tagged)) => (Some((tagged.stag.0, tagged.to)), false),
        Some(Header::Untagged(untagged)) => (None, untagged.queue == QN_SEND),
        None => (None, true),
    };
    let (op, refusal) = match (code.layer, code.etype) {
        (1, 2) if is_for_receive => (None, Refusal::Descriptor),
        (1, 1) if is_of(Opcode::Write) => (Some(Op::RdmaWrite), Refusal::Protection),
        (0, 1) if is_of(Opcode::ReadRequest) => (Some(Op::RdmaRead), Refusal::Protection),
        // Of an answer, a request to confirm or a request that is one too many no descriptor of ours was refused.
        _ => return None,
    };
    let candidates = || {
        let open = core.send.first_open().unwrap_or(core.send.len());
        (open..core.send.next()).filter_map(|index| core.send.get(index))
    };
    let meant = |request: &Request| match op {
        None => request.op == Op::SendRecv || request.immediate.is_some(),
        Some(op) => request.op == op,
    };
    let hit = |request: &Request| match (at, request.remote) {
        (Some((stag, to)), Some(remote)) => {
            let end = remote.addr.saturating_add(u64::from(request.len));
            remote.handle.0 == stag && (remote.addr..=end).contains(&to)
        }
        _ => true,
    };
    let open = || candidates().filter(|posted| posted.outcome.is_none() && meant(&posted.request));
    let posted = open()
        .find(|posted| hit(&posted.request))
        .or_else(|| open().next())?;
    // Where done means arrived, whatever comes before what was refused has.
    let seq = match core.attributes.reliability {
        Reliability::Unreliable => return None,
        _ => posted.seq,
    };
    Some(Goodbye::Refused { seq, refusal })
}

const NO_BUFFER: (u8, u8, u8) = (1, 2, 2);
const TOO_LONG: (u8, u8, u8) = (1, 2, 5);
pub(super) const WRITE_REFUSED: (u8, u8, u8) = (1, 1, 0);
/// Immediate data tell of more than was written.
pub(super) const TOLD_WRONGLY: (u8, u8, u8) = (0, 2, 0xff);
/// The buffer is there, and is none.
pub(super) const RECEIVE_REFUSED: (u8, u8, u8) = (1, 2, 2);
