//! The state of a VI, and how descriptors and connections end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use proto::ddp::Stag;
use proto::frame::Refusal;

use super::device::Device;
use super::expected::Expected;
use super::link::{Goodbye, Link, Waiter};
use super::memory::RegionCache;
use super::queue::{Cursor, Outcome, Posted, Ticket, WorkQueue};
use super::vi::SoftVi;
use crate::provider::DoneHandler;
use crate::{
    AsyncError, CompletedOp, CqEntry, ErrorCode, Fault, MemHandle, Op, Queue, Reliability,
    ViAttributes, ViEvent, ViState,
};

/// What the lock of a VI guards.
pub(super) struct Core<D: Device> {
    pub(super) state: ViState,
    pub(super) attributes: ViAttributes,
    pub(super) destroyed: bool,
    pub(super) link: Option<D::Link>,
    /// Counts connections: news of an earlier one must not end this one.
    pub(super) connection: u32,
    pub(super) attempt: Attempt<D>,
    pub(super) send: WorkQueue,
    pub(super) recv: WorkQueue,
    pub(super) outbound: Outbound,
    pub(super) inbound: Option<Inbound>,
    /// The last number of a message that was placed and not yet acknowledged.
    pub(super) ack_due: Option<u32>,
    /// A message without a receive waits in the link.
    pub(super) holds: bool,
    /// The device has said that the connection is over, and is detached from it; some of what came before is still in the link.
    pub(super) ending: Option<Goodbye>,
    /// Somebody ends the wait on this queue.
    pub(super) interrupted: [bool; 2],
    /// The receive queue was found empty and that has been reported.
    pub(super) dry: bool,
    /// A peer's write was not allowed; its immediate data may follow.
    pub(super) refused_write: Option<(Stag, u64)>,
    /// Where the peer is expected to write.
    pub(super) expected: Expected,
    /// The link rings the agent.
    pub(super) armed: bool,
    /// A completion queue has left it to its bell.
    pub(super) cooled: bool,
    /// Threads asleep on this VI.
    pub(super) sleepers: u32,
    pub(super) regions: RegionCache,
    pub(super) notify: [VecDeque<DoneHandler>; 2],
}

/// A connection request under way.
pub(super) enum Attempt<D: Device> {
    None,
    /// `VipConnectRequest`; there may be nothing to cancel yet.
    Client {
        number: u32,
        pending: Option<Arc<D::Pending>>,
    },
    Peer {
        pending: Arc<D::Pending>,
        deadline: Option<Instant>,
    },
}

/// Messages on their way out.
#[derive(Default)]
pub(super) struct Outbound {
    /// The number of the next message.
    pub(super) seq: u32,
    /// The message at the send queue's `next`, if part of it has left.
    pub(super) message: Option<Leaving>,
    /// RDMA reads that wait for their data.
    pub(super) reads: u32,
    /// Bytes of the oldest of them that have come.
    pub(super) read_got: u32,
    pub(super) read_cursor: Cursor,
    /// Reads of the peer that wait for ours.
    pub(super) responses: VecDeque<Response>,
}

impl Outbound {
    /// Numbers begin at 1: a descriptor with 0 has not begun.
    #[inline]
    pub(super) fn next_seq(&self) -> u32 {
        self.seq.checked_add(1).unwrap_or(1)
    }
}

/// A message, part of which has left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub(super) seq: u32,
    pub(super) offset: u32,
    pub(super) cursor: Cursor,
}

/// A peer's read, and how much of it has been answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Response {
    pub(super) seq: u32,
    pub(super) handle: MemHandle,
    pub(super) addr: u64,
    pub(super) len: u32,
    pub(super) sent: u32,
}

/// A message, part of which has arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inbound {
    pub(super) seq: u32,
    pub(super) got: u32,
    pub(super) msg_len: u32,
    pub(super) into: Into,
}

/// Where an arriving message goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Into {
    /// The first open receive descriptor.
    Receive(Cursor),
    /// A region, by RDMA.
    Region { handle: MemHandle, addr: u64 },
    /// Nowhere: it was dropped.
    Nowhere,
}

impl<D: Device> Core<D> {
    pub(super) fn new(attributes: ViAttributes) -> Self {
        Self {
            state: ViState::Idle,
            attributes,
            destroyed: false,
            link: None,
            connection: 0,
            attempt: Attempt::None,
            send: WorkQueue::default(),
            recv: WorkQueue::default(),
            outbound: Outbound::default(),
            inbound: None,
            ack_due: None,
            holds: false,
            ending: None,
            interrupted: [false; 2],
            dry: false,
            refused_write: None,
            expected: Expected::default(),
            armed: false,
            cooled: false,
            sleepers: 0,
            regions: RegionCache::default(),
            notify: Default::default(),
        }
    }

    pub(super) fn queue(&self, queue: Queue) -> &WorkQueue {
        match queue {
            Queue::Send => &self.send,
            Queue::Recv => &self.recv,
        }
    }

    pub(super) fn queue_mut(&mut self, queue: Queue) -> &mut WorkQueue {
        match queue {
            Queue::Send => &mut self.send,
            Queue::Recv => &mut self.recv,
        }
    }

    /// Whether the wait on that queue is to end, once.
    pub(super) fn take_interruption(&mut self, queue: Queue) -> bool {
        let interrupted = &mut self.interrupted[queue as usize];
        *interrupted && std::mem::take(interrupted)
    }

    pub(super) fn is_reliable(&self) -> bool {
        self.attributes.reliability.is_reliable()
    }

    pub(super) fn awaits_acks(&self) -> bool {
        self.attributes.reliability == Reliability::ReliableReception
    }

    /// Takes the step that `event` makes; `false` if there is none from here.
    pub(super) fn step(&mut self, event: ViEvent) -> bool {
        match self.state.after(event) {
            Some(state) => {
                self.state = state;
                true
            }
            None => false,
        }
    }
}

impl<D: Device> SoftVi<D> {
    /// Ends the descriptor at `index` and passes on every completion whose turn has come.
    #[inline]
    pub(super) fn end(&self, core: &mut Core<D>, queue: Queue, index: usize, outcome: Outcome) {
        core.queue_mut(queue).end(index, outcome);
        self.settle(core, queue);
    }

    /// Passes on the completions of `queue` whose turn has come: to memory, to a handler, to the
    /// completion queue, to sleepers.
    #[inline]
    pub(super) fn settle(&self, core: &mut Core<D>, queue: Queue) {
        let mut settled = false;
        while let Some((ticket, outcome)) = core.queue_mut(queue).next_ready() {
            settled = true;
            self.write_outcome(core, ticket, &outcome);
            if let Some(cq) = self.cq(queue) {
                cq.push(CqEntry { vi: self.id, queue });
            } else if let Some(handler) = core.notify[queue as usize].pop_front()
                && let Some(completion) = core.queue_mut(queue).take()
            {
                self.nic.dispatcher.done(self.id, handler, completion);
            }
        }
        if settled && core.sleepers > 0 {
            self.wake(core);
        }
    }

    /// Writes the outcome into a descriptor that lies in memory.
    #[inline]
    pub(super) fn write_outcome(&self, core: &mut Core<D>, ticket: Ticket, outcome: &Outcome) {
        let registry = &self.nic.registry;
        if let Ticket::At(at) = ticket
            && !super::layout::write_outcome(&mut core.regions, registry, at, outcome)
        {
            self.report(AsyncError {
                descriptor: Some(at.addr),
                op: Some(outcome.status.op()),
                ..AsyncError::of_vi(ErrorCode::CompProt, self.id)
            });
        }
    }

    /// Wakes the threads asleep on this VI.
    pub(super) fn wake(&self, core: &Core<D>) {
        if let Some(link) = &core.link {
            link.waiter().wake();
        }
        self.idle.wake();
    }

    pub(super) fn report(&self, error: AsyncError) {
        self.nic.dispatcher.error(error);
    }

    /// The connection has ended from the other side, or for a fault: T8 and T9.
    pub(super) fn lose(&self, core: &mut Core<D>, why: Goodbye) {
        if !core.step(ViEvent::Lost) {
            return;
        }
        self.report(AsyncError::of_vi(ErrorCode::ConnLost, self.id));
        self.flush(core, Some(why));
        self.unlink(core);
    }

    /// The device says that the connection is over. What came before still counts: it goes to its place now, or where a message waits for its
    /// receive, when there is one; then the connection is lost.
    pub(super) fn wind_up(&self, core: &mut Core<D>, why: Goodbye) {
        let Some(link) = core.link.as_mut().filter(|_| core.ending.is_none()) else {
            return;
        };
        // What the peer said itself is more than what the device has seen.
        let why = link.ended().unwrap_or(why);
        core.ending = Some(why);
        self.nic.device.detach(self.id, link, self.sleep_cq());
        // More than a link holds: who still sends is not listened to for ever.
        for _ in 0..PASSES_MAX {
            if !self.progress(core) {
                break;
            }
        }
        if core.link.is_some() && !self.holds_back(core) {
            self.lose(core, why);
        }
    }

    /// Ends everything queued because the VI is not connected any more.
    pub(super) fn flush(&self, core: &mut Core<D>, why: Option<Goodbye>) {
        Self::end_sends(core, why);
        let partly = match core.inbound.take() {
            Some(Inbound {
                got,
                into: Into::Receive(_),
                ..
            }) if got > 0 => core.recv.first_open().map(|index| (index, got)),
            Some(Inbound {
                got,
                into: Into::Region { .. },
                ..
            }) if got > 0 && why.is_some() => {
                self.report(AsyncError {
                    op: Some(CompletedOp::RemoteRdmaWrite),
                    ..AsyncError::of_vi(ErrorCode::RdmawAbort, self.id)
                });
                None
            }
            _ => None,
        };
        if let Some((index, got)) = partly {
            let outcome = Outcome::failed(CompletedOp::Receive, Fault::Partial, got);
            core.recv.end(index, outcome);
        }
        core.recv
            .end_all(|_| Outcome::failed(CompletedOp::Receive, Fault::Flushed, 0));
        self.settle(core, Queue::Send);
        self.settle(core, Queue::Recv);
    }

    /// Ends the sends, as far as they have not ended; [`SoftVi::settle`] follows.
    pub(super) fn end_sends(core: &mut Core<D>, why: Option<Goodbye>) {
        let mut transport = why == Some(Goodbye::Transport);
        let level = core.attributes.reliability;
        core.send.end_all(|posted| {
            let fault = match why {
                Some(Goodbye::Refused { seq, refusal }) => refused(posted, level, seq, refusal),
                _ if std::mem::take(&mut transport) => Some(Fault::Transport),
                _ => Some(Fault::Flushed),
            };
            let op = sent_op(posted.request.op);
            match fault {
                None => Outcome::done(op, posted.request.len, None),
                Some(fault) => Outcome::failed(op, fault, 0),
            }
        });
    }

    /// Lets go of the link and of all that belongs to one connection.
    pub(super) fn unlink(&self, core: &mut Core<D>) {
        self.wake(core);
        let was_detached = core.ending.take().is_some();
        if let Some(link) = core.link.take()
            && !was_detached
        {
            self.nic.device.detach(self.id, &link, self.sleep_cq());
        }
        core.outbound = Outbound::default();
        core.inbound = None;
        core.ack_due = None;
        core.dry = false;
        core.refused_write = None;
        core.expected = Expected::default();
        core.armed = false;
        core.cooled = false;
    }

    /// This end breaks the connection because our own descriptor was bad.
    pub(super) fn break_off(&self, core: &mut Core<D>) {
        self.hurry(core);
        if let Some(link) = &mut core.link {
            link.close(Goodbye::Broken);
        }
        self.lose(core, Goodbye::Broken);
    }
}

/// What becomes of a send when the peer refuses message `refused`: everything before that message
/// is in place.
fn refused(posted: &Posted, level: Reliability, refused: u32, refusal: Refusal) -> Option<Fault> {
    let begun = posted.seq != 0;
    let ahead = refused.wrapping_sub(posted.seq);
    if !begun || ahead > u32::MAX / 2 {
        return Some(Fault::Flushed);
    }
    if ahead == 0 {
        return Some(match refusal {
            Refusal::Descriptor => Fault::RemoteDescriptor,
            Refusal::Protection => Fault::RdmaProtection,
        });
    }
    let placed = level == Reliability::ReliableReception && posted.request.op != Op::RdmaRead;
    if placed { None } else { Some(Fault::Flushed) }
}

/// How often as many frames as are taken at a time may still come from a connection that is over.
const PASSES_MAX: u32 = 1024;

pub(super) fn sent_op(op: Op) -> CompletedOp {
    match op {
        Op::SendRecv => CompletedOp::Send,
        Op::RdmaWrite => CompletedOp::RdmaWrite,
        Op::RdmaRead => CompletedOp::RdmaRead,
    }
}
