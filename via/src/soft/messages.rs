//! Between the queues and a link that carries messages.

use std::cell::{Cell, RefCell};

use proto::ddp::Stag;
use proto::rdmap::{Action, Operation, Receive, Received, Remote, Work, WorkId};

use super::blame::{RECEIVE_REFUSED, TOLD_WRONGLY, WRITE_REFUSED};
use super::core::{Core, sent_op};
use super::device::Device;
use super::ground::{Ground, Lot};
use super::link::{Goodbye, Link};
use super::queue::{Outcome, Request};
use super::receive::receive_fault;
use super::vi::SoftVi;
use crate::{AsyncError, CompletedOp, ErrorCode, Fault, Op, Queue};

/// What one turn of the link came to.
#[derive(Default)]
struct Turn {
    arrived: bool,
    /// The connection has ended, for this reason.
    ended: Option<Goodbye>,
}

impl<D: Device> SoftVi<D> {
    /// The connection is there: what was posted before becomes room for messages.
    pub(super) fn begin_messages(&self, core: &mut Core<D>) {
        self.offer_receives(core);
        self.pump_messages(core);
    }

    /// Tells the link of the receives that it does not know yet.
    pub(super) fn offer_receives(&self, core: &mut Core<D>) {
        let is_reliable = core.is_reliable();
        let Some(link) = &mut core.link else {
            return;
        };
        while let Some(posted) = core.recv.get(core.recv.next()) {
            let number = core.recv.number(core.recv.next());
            let len = posted.request.len;
            let receive = Receive {
                id: WorkId(number),
                into: Lot::Receive(number).place(),
                // Where messages may be lost, one that is too long costs its own receive and nothing else.
                capacity: if is_reliable { len } else { u32::MAX },
            };
            if posted.outcome.is_none() && link.post_receive(receive).is_err() {
                // It has ended, and the next look at it says so.
                return;
            }
            core.recv.begin_next();
        }
    }

    /// Sends what there is to send, as far as the link takes it.
    pub(super) fn pump_messages(&self, core: &mut Core<D>) {
        loop {
            let begun = self.begin_works(core);
            let turn = self.with_ground(core, |link, ground| {
                link.push(ground);
                false
            });
            if let Some(why) = turn.ended {
                return self.lose(core, why);
            }
            if !begun || core.send.next() >= core.send.len() {
                return;
            }
        }
    }

    /// The connection is about to end at its owner's wish: what was put off is sent, as far as the link takes it.
    pub(super) fn hurry(&self, core: &mut Core<D>) {
        if D::Link::MESSAGES {
            // Whatever it has come to, it ends.
            let _turn = self.with_ground(core, |link, ground| {
                link.hurry(ground);
                false
            });
        }
    }

    /// Moves what there is to move in both directions. Returns whether anything arrived.
    pub(super) fn progress_messages(&self, core: &mut Core<D>) -> bool {
        let mut arrived = false;
        for _ in 0..TURNS_AT_A_TIME {
            if core.link.is_none() {
                break;
            }
            let turn = self.with_ground(core, |link, ground| link.turn(ground));
            if let Some(why) = turn.ended {
                self.lose(core, why);
                return true;
            }
            let drained = self.drain_blocked(core);
            if !turn.arrived && !drained {
                // No immediate data has come with it that its refusal could be told by.
                self.tell_refused(core);
                break;
            }
            arrived = true;
        }
        if core.link.is_some() && core.send.next() < core.send.len() {
            self.pump_messages(core);
        }
        arrived
    }

    /// Lets the link work on the VI's memory, and carries out what came of it.
    fn with_ground(
        &self,
        core: &mut Core<D>,
        work: impl FnOnce(&mut D::Link, &mut Ground<'_>) -> bool,
    ) -> Turn {
        let mut turn = Turn::default();
        let Some(arrived) = self.on_ground(core, work) else {
            return turn;
        };
        turn.arrived = arrived;
        while let Some(action) = core.link.as_mut().and_then(Link::poll_action) {
            match action {
                Action::Completed(completion) => {
                    if completion.outcome.is_ok() {
                        self.end_work(core, completion.id);
                    }
                }
                Action::Received(received) => self.take_message(core, &received),
                Action::Failed(failure) => {
                    turn.ended = Some(self.explain(core, failure));
                }
                Action::ReceiveFlushed(_) => {}
                Action::ShutdownWrite | Action::Close => {
                    turn.ended = turn.ended.or(Some(Goodbye::Disconnected));
                }
            }
        }
        turn
    }

    /// Lets the link, if there is one, work on the VI's memory.
    pub(super) fn on_ground<T>(
        &self,
        core: &mut Core<D>,
        work: impl FnOnce(&mut D::Link, &mut Ground<'_>) -> T,
    ) -> Option<T> {
        let link = core.link.as_mut()?;
        let mut ground = Ground {
            send: &core.send,
            recv: &core.recv,
            regions: RefCell::new(&mut core.regions),
            expected: RefCell::new(&mut core.expected),
            registry: &self.nic.registry,
            attributes: core.attributes,
            refused: Cell::new(core.refused_write),
            has_immediate: link.has_immediate(),
        };
        let done = work(link, &mut ground);
        core.refused_write = ground.refused.get();
        Some(done)
    }

    /// Hands the link what is posted; whether there was any.
    fn begin_works(&self, core: &mut Core<D>) -> bool {
        let mut begun = false;
        while core.link.is_some() && core.send.next() < core.send.len() {
            let index = core.send.next();
            let Some(request) = core.send.get(index).map(|posted| posted.request) else {
                break;
            };
            if let Some(fault) = self.work_fault(core, index, &request) {
                // It breaks the connection; what was posted before it comes to its own end first.
                if core.is_reliable() && core.send.first_open().is_some_and(|open| open < index) {
                    break;
                }
                core.send.begin_next();
                let op = sent_op(request.op);
                self.end(core, Queue::Send, index, Outcome::failed(op, fault, 0));
                if core.is_reliable() {
                    self.break_off(core);
                    return false;
                }
                begun = true;
                continue;
            }
            let number = core.send.number(index);
            let awaits = core.awaits_acks();
            let Some(link) = &mut core.link else {
                break;
            };
            for work in works(number, &request, awaits) {
                if link.post(work).is_err() {
                    // It has ended, and the next look at it says so.
                    return false;
                }
            }
            core.send.begin_next();
            if let Some(posted) = core.send.get_mut(index) {
                posted.seq = seq_of(number);
            }
            begun = true;
        }
        begun
    }

    fn work_fault(&self, core: &mut Core<D>, index: usize, request: &Request) -> Option<Fault> {
        let fault = self.send_fault(core, index);
        let beyond = core.link.as_ref().is_some_and(|link| {
            (request.immediate.is_some() && !link.has_immediate())
                || (request.op == Op::RdmaRead && !link.takes_reads())
        });
        fault.or_else(|| beyond.then_some(Fault::Format))
    }

    fn end_work(&self, core: &mut Core<D>, id: WorkId) {
        if id.0 & LAST == 0 {
            return;
        }
        let Some(index) = core.send.index_of(id.0 >> 1) else {
            return;
        };
        let open = core
            .send
            .get(index)
            .filter(|posted| posted.outcome.is_none());
        if let Some(request) = open.map(|posted| posted.request) {
            let outcome = Outcome::done(sent_op(request.op), request.len, None);
            self.end(core, Queue::Send, index, outcome);
        }
    }

    /// A message that needed a receive is complete.
    fn take_message(&self, core: &mut Core<D>, received: &Received) {
        let written = received.immediate.map(|octets| {
            let [a, b, c, d, e, f, g, h] = octets;
            let len = u32::from_be_bytes([a, b, c, d]);
            (len, u32::from_be_bytes([e, f, g, h]))
        });
        let (op, len, immediate) = match (written, received.invalidated) {
            (Some((len, word)), _) => (CompletedOp::RemoteRdmaWrite, len, Some(word)),
            (None, stag) => {
                let word = stag.map(|stag| stag.0);
                (CompletedOp::Receive, received.len, word)
            }
        };
        if written.is_none() && core.refused_write.is_some() {
            self.tell_refused(core);
            if core.link.is_none() {
                return;
            }
        }
        let refused = core.refused_write.take();
        let index = core.recv.index_of(received.id.0);
        let open = index.filter(|&index| {
            let posted = core.recv.get(index);
            posted.is_some_and(|posted| posted.outcome.is_none())
        });
        let Some(index) = open.filter(|_| received.id != NOBODY) else {
            return self.run_dry(core, 0, op);
        };
        core.dry = false;
        let fault = match written {
            Some(_) if refused.is_some() => Some(Fault::RdmaProtection),
            // The length is the peer's word; what it wrote has been counted.
            Some((len, _)) if u64::from(len) > received.written => Some(Fault::RdmaProtection),
            Some(_) => None,
            None => receive_fault(&self.nic.registry, core, index, len),
        };
        match fault {
            None => self.end(core, Queue::Recv, index, Outcome::done(op, len, immediate)),
            Some(fault) => {
                self.fail_receive(core, index, op, fault);
                if core.is_reliable() {
                    let code = match written {
                        _ if refused.is_some() => WRITE_REFUSED,
                        Some(_) => TOLD_WRONGLY,
                        None => RECEIVE_REFUSED,
                    };
                    self.refuse_message(core, code, refused);
                }
            }
        }
    }

    /// A message waits for a receive, and there is none. Where messages may be lost it is, else the
    /// connection breaks. Returns whether there was one.
    fn drain_blocked(&self, core: &mut Core<D>) -> bool {
        if !core.link.as_ref().is_some_and(Link::is_blocked) {
            return false;
        }
        if core.is_reliable() {
            self.tell_refused(core);
            if core.link.is_some() {
                core.dry = true;
                self.report(AsyncError {
                    op: Some(CompletedOp::Receive),
                    ..AsyncError::of_vi(ErrorCode::RecvqEmpty, self.id)
                });
                self.on_ground(core, |link, ground| link.refuse_blocked(ground));
                self.lose(core, Goodbye::Broken);
            }
            return true;
        }
        let bin = Receive {
            id: NOBODY,
            into: Lot::Nowhere.place(),
            capacity: u32::MAX,
        };
        let link = core.link.as_mut();
        link.is_some_and(|link| link.post_receive(bin).is_ok())
    }
}

/// The works that carry out a descriptor. Only the last one's end counts.
fn works(number: u64, request: &Request, awaits: bool) -> impl Iterator<Item = Work> {
    let from = Lot::Send(number).place();
    let len = u64::from(request.len);
    let remote = request.remote.map_or(NO_REMOTE, |remote| Remote {
        stag: Stag(remote.handle.0),
        to: remote.addr,
    });
    let first = match request.op {
        Op::SendRecv => Operation::Send {
            from,
            len,
            solicited: false,
            invalidate: request.immediate.map(Stag),
        },
        Op::RdmaWrite => Operation::Write {
            from,
            len,
            to: remote,
        },
        Op::RdmaRead => Operation::Read {
            into: from,
            len,
            sink: sink(number),
            source: remote,
        },
    };
    let told = request.immediate.filter(|_| request.op == Op::RdmaWrite);
    let told = told.map(|word| {
        let [a, b, c, d] = request.len.to_be_bytes();
        let [e, f, g, h] = word.to_be_bytes();
        Operation::Immediate {
            data: [a, b, c, d, e, f, g, h],
            solicited: false,
        }
    });
    // A Read is answered behind everything that was sent before it: then that is in place.
    let asked = (awaits && request.op != Op::RdmaRead).then(|| Operation::Read {
        into: Lot::Nowhere.place(),
        len: 0,
        sink: sink(number),
        source: NO_REMOTE,
    });
    let last = usize::from(told.is_some()) + usize::from(asked.is_some());
    let fence = request.fence;
    [Some(first), told, asked]
        .into_iter()
        .flatten()
        .enumerate()
        .map(move |(at, operation)| Work {
            id: WorkId(number << 1 | if at == last { LAST } else { 0 }),
            operation,
            fence: fence && at == 0,
        })
}

/// The work of a send of `len` bytes that nothing else is to be said of.
pub(super) fn send_work(number: u64, len: u32) -> Work {
    Work {
        id: WorkId(number << 1 | LAST),
        operation: Operation::Send {
            from: Lot::Send(number).place(),
            len: len.into(),
            solicited: false,
            invalidate: None,
        },
        fence: false,
    }
}

/// Never 0, which is a descriptor that has not begun.
pub(super) fn seq_of(number: u64) -> u32 {
    (number % u64::from(u32::MAX)) as u32 + 1
}

/// Under what name the answer to a Read comes.
fn sink(number: u64) -> Remote {
    Remote {
        stag: Stag(number as u32 | 1 << 31),
        to: 0,
    }
}

const NO_REMOTE: Remote = Remote {
    stag: Stag(1),
    to: 0,
};
const LAST: u64 = 1;
/// A receive that no descriptor stands for.
const NOBODY: WorkId = WorkId(u64::MAX);
/// Turns before a thread looks at its own business again.
const TURNS_AT_A_TIME: u32 = 16;
