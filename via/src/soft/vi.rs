//! A VI: what its owner calls.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sys::lock::{Guard, Lock};
use sys::mem::Memory;
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use sys::wait::{Limits, Spinner};

use super::core::{Attempt, Core};
use super::cq::SoftCq;
use super::link::{Attention, Device, Goodbye, Link, Pending, Sleeper, Waiter};
use super::memory::{RegionCache, Registry};
use super::nic::Shared;
use super::queue::{Outcome, Plain, Request, Ticket};
use crate::descriptor::Segments;
use crate::provider::{DoneHandler, Export, Timeout, ViId, ViOps};
use crate::{
    AsyncError, Descriptor, DescriptorAt, Done, Error, ErrorCode, Fault, MemHandle, NetAddress, Op,
    Queue, RemoteSegment, Segment, ViAttributes, ViEvent, ViState,
};

/// A VI of a software NIC.
pub(super) struct SoftVi<D: Device> {
    pub(super) id: ViId,
    pub(super) nic: Arc<Shared<D>>,
    cqs: [Option<Arc<SoftCq<D>>>; 2],
    core: Lock<Core<D>>,
    spinner: Spinner,
    /// Its owner has looked after it since the agent last asked.
    attended: AtomicBool,
    /// Counts connection requests, so that a cancelled one is told apart from its successor.
    pub(super) attempts: AtomicU32,
    /// Where threads sleep while there is no link.
    pub(super) idle: IdleBell,
}

impl<D: Device> SoftVi<D> {
    pub(super) fn new(
        id: ViId,
        nic: Arc<Shared<D>>,
        attributes: ViAttributes,
        cqs: [Option<Arc<SoftCq<D>>>; 2],
    ) -> Self {
        Self {
            id,
            nic,
            cqs,
            core: Lock::new(Core::new(attributes)),
            spinner: Spinner::new(Limits::MEMORY),
            attended: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            idle: IdleBell::default(),
        }
    }

    pub(super) fn cq(&self, queue: Queue) -> Option<&Arc<SoftCq<D>>> {
        self.cqs[queue as usize].as_ref()
    }

    /// The completion queues it reports to, each once.
    pub(super) fn bound_cqs(&self) -> impl Iterator<Item = &Arc<SoftCq<D>>> {
        let [send, recv] = &self.cqs;
        let both_same = matches!((send, recv), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        recv.iter().chain(send.iter().filter(move |_| !both_same))
    }

    /// How the completion queue sleeps that this VI's link rings.
    pub(super) fn sleep_cq(&self) -> Option<&D::CqWaiter> {
        self.bound_cqs().next().map(|cq| cq.waiter())
    }

    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, Core<D>> {
        self.core.lock()
    }

    /// The lock, for a call of the owner on a VI that still exists.
    #[inline]
    pub(super) fn enter(&self) -> Result<Guard<'_, Core<D>>, Error> {
        self.nic.check()?;
        let core = self.lock();
        if core.destroyed {
            return Err(Error::InvalidParameter);
        }
        Ok(core)
    }

    /// The owner is here: the agent need not be.
    fn attend(&self, core: &mut Core<D>) {
        if !self.attended.load(Ordering::Relaxed) {
            self.attended.store(true, Ordering::Relaxed);
        }
        if std::mem::take(&mut core.armed)
            && let Some(link) = &mut core.link
        {
            // A caller that sleeps keeps its request: a bell has no other way to tell them apart.
            if core.sleepers == 0 {
                link.disarm();
            }
            self.nic.device.stirred(self.id);
        }
    }

    /// Arms the link for the agent, or for a sleeper on a completion queue, and looks once more.
    pub(super) fn arm_for_agent(&self, core: &mut Core<D>) {
        if let Some(link) = &mut core.link
            && !core.armed
        {
            link.arm(Sleeper::Agent);
            core.armed = true;
        }
        self.progress(core);
    }

    /// A completion queue polls: moves what there is; tells whether frames arrived.
    pub(super) fn poll(&self) -> bool {
        let Some(mut core) = self.core.try_lock() else {
            // Whoever holds it is moving things.
            return true;
        };
        self.attend(&mut core);
        self.progress(&mut core)
    }

    /// The agent, or a completion queue's sleeper, was rung.
    pub(super) fn serve(&self) -> Attention {
        let mut core = self.lock();
        self.progress(&mut core);
        if core.link.is_none() {
            return Attention::Gone;
        }
        if core.armed {
            // Its bell has rung and is silent until armed again.
            core.armed = false;
            self.arm_for_agent(&mut core);
        }
        if core.armed {
            Attention::Armed
        } else {
            Attention::Attended
        }
    }

    /// Arms the link for the agent unless the owner has been here since the last time.
    pub(super) fn tend(&self) -> Attention {
        let attended = self.attended.swap(false, Ordering::Relaxed);
        let mut core = self.lock();
        if core.link.is_none() {
            return Attention::Gone;
        }
        if attended {
            self.progress(&mut core);
            return Attention::Attended;
        }
        // A thread asleep on the VI itself is rung directly.
        if core.sleepers == 0 {
            self.arm_for_agent(&mut core);
        }
        if core.link.is_none() {
            Attention::Gone
        } else {
            Attention::Armed
        }
    }

    /// Drops what the lock protects from a change of the registry.
    pub(super) fn quiesce(&self) {
        self.lock().regions.clear();
    }

    fn enqueue(
        &self,
        queue: Queue,
        request: Request,
        segments: &Segments,
        core: &mut Core<D>,
    ) -> Result<(), Error> {
        let limit = self.nic.device.attributes().max_descriptors_per_queue as usize;
        if core.queue(queue).len() >= limit {
            self.report(AsyncError {
                descriptor: Some(request.ticket.token()),
                ..AsyncError::of_vi(ErrorCode::ViOverrun, self.id)
            });
            if core.state == ViState::Connected && core.is_reliable() {
                self.break_off(core);
            }
            return Err(Error::Resource);
        }
        if queue == Queue::Recv && core.state == ViState::Connected {
            // What arrived before this descriptor does not get it.
            self.progress(core);
        }
        let malformed = request.fault;
        core.queue_mut(queue).push(request, segments);
        match (queue, core.state) {
            (Queue::Send, ViState::Connected) => self.pump(core),
            (Queue::Send, _) | (Queue::Recv, ViState::Error) => self.flush_new(core, queue),
            (Queue::Recv, _) => {
                if let Some(fault) = malformed {
                    let index = core.recv.len() - 1;
                    let op = crate::CompletedOp::Receive;
                    self.end(core, Queue::Recv, index, Outcome::failed(op, fault, 0));
                    if core.state == ViState::Connected && core.is_reliable() {
                        self.break_off(core);
                    }
                }
            }
        }
        Ok(())
    }

    /// A descriptor was posted to a VI that cannot process it.
    fn flush_new(&self, core: &mut Core<D>, queue: Queue) {
        core.queue_mut(queue).end_all(|posted| {
            let op = match queue {
                Queue::Send => super::core::sent_op(posted.request.op),
                Queue::Recv => crate::CompletedOp::Receive,
            };
            Outcome::failed(op, Fault::Flushed, 0)
        });
        self.settle(core, queue);
    }

    #[inline(always)]
    fn take(&self, core: &mut Core<D>, queue: Queue) -> Done {
        if let Some(completion) = core.queue_mut(queue).take() {
            return Done::Completed(completion);
        }
        self.progress(core);
        match core.queue_mut(queue).take() {
            Some(completion) => Done::Completed(completion),
            None if core.queue(queue).has_open() => Done::NotDone,
            None => Done::Empty,
        }
    }

    /// Sleeps once, unless there is something to take already.
    fn sleep(&self, queue: Queue, deadline: Option<Instant>) -> Result<Option<Done>, Error> {
        let mut core = self.enter()?;
        let link = core
            .link
            .as_mut()
            .map(|link| (link.arm(Sleeper::Caller), link.waiter()));
        let ticket = self.idle.ticket();
        let done = self.take(&mut core, queue);
        if done != Done::NotDone {
            disarm(&mut core);
            return Ok(Some(done));
        }
        if link.is_some() && core.link.is_none() {
            return Ok(None);
        }
        core.sleepers += 1;
        drop(core);
        match &link {
            Some((ticket, waiter)) => waiter.sleep(*ticket, deadline),
            None => self.idle.sleep(ticket, deadline, &self.nic.device),
        }
        let mut core = self.lock();
        core.sleepers -= 1;
        disarm(&mut core);
        drop(core);
        self.nic.device.stirred(self.id);
        Ok(None)
    }

    fn parse(
        &self,
        core: &mut Core<D>,
        queue: Queue,
        at: DescriptorAt,
    ) -> Option<(Request, Segments)> {
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
            fault: fault.or((!in_limit).then_some(Fault::Format)),
        };
        let mut segments = Segments::default();
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
        Some((request, segments))
    }

    /// Writes into the descriptor before it that this one follows.
    fn chain(&self, core: &mut Core<D>, queue: Queue, at: DescriptorAt) {
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

impl<D: Device> ViOps for SoftVi<D> {
    fn id(&self) -> ViId {
        self.id
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn state(&self) -> Result<ViState, Error> {
        let mut core = self.enter()?;
        self.progress(&mut core);
        Ok(core.state)
    }

    fn attributes(&self) -> Result<ViAttributes, Error> {
        Ok(self.enter()?.attributes)
    }

    fn is_empty(&self, queue: Queue) -> Result<bool, Error> {
        Ok(self.enter()?.queue(queue).len() == 0)
    }

    fn set_attributes(&self, attributes: ViAttributes) -> Result<(), Error> {
        let mut core = self.enter()?;
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        self.nic.check_vi_attributes(&attributes)?;
        self.nic.registry.use_ptag(attributes.ptag)?;
        self.nic.registry.unuse_ptag(core.attributes.ptag);
        core.attributes = attributes;
        Ok(())
    }

    fn connect_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<ViAttributes, Error> {
        self.request(local, remote, timeout)
    }

    fn peer_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<(), Error> {
        self.offer(local, remote, timeout)
    }

    fn peer_done(&self) -> Result<Option<ViAttributes>, Error> {
        self.offer_outcome(false)
    }

    fn peer_wait(&self) -> Result<ViAttributes, Error> {
        self.offer_outcome(true)?.ok_or(Error::Timeout)
    }

    fn export(&self) -> Result<Export, Error> {
        self.export_end()
    }

    fn disconnect(&self) -> Result<(), Error> {
        let mut core = self.enter()?;
        match std::mem::replace(&mut core.attempt, Attempt::None) {
            Attempt::Client {
                pending: Some(pending),
                ..
            }
            | Attempt::Peer { pending, .. } => pending.cancel(),
            Attempt::Client { pending: None, .. } | Attempt::None => {}
        }
        if let Some(link) = &mut core.link {
            link.close(Goodbye::Disconnected);
        }
        core.step(ViEvent::Disconnect);
        self.flush(&mut core, None);
        self.unlink(&mut core);
        drop(core);
        self.nic.dispatcher.quiesce_vi(self.id);
        Ok(())
    }

    fn destroy(&self) -> Result<(), Error> {
        let mut core = self.enter()?;
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        let strict = self.nic.options.strict;
        if [Queue::Send, Queue::Recv].into_iter().any(|queue| {
            let queue = core.queue(queue);
            queue.has_open() || (strict && queue.len() > 0)
        }) {
            return Err(Error::Resource);
        }
        self.end_life(&mut core);
        drop(core);
        self.nic.forget_vi(self.id);
        self.nic.dispatcher.quiesce_vi(self.id);
        Ok(())
    }

    fn post(&self, queue: Queue, descriptor: &Descriptor<'_>, token: u64) -> Result<(), Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        let plain = Plain {
            ticket: Ticket::Named(token),
            immediate: descriptor.immediate,
            len: descriptor.len,
        };
        let limit = self.nic.device.attributes().max_segments_per_desc as usize;
        if queue == Queue::Send
            && descriptor.op == Op::SendRecv
            && !descriptor.fence
            && descriptor.segments.len() <= limit
            && self.send_now(&mut core, plain, &descriptor.segments)
        {
            return Ok(());
        }
        let too_many = descriptor.segments.len() > limit;
        let misplaced = queue == Queue::Recv && descriptor.op != Op::SendRecv;
        let odd = descriptor.op == Op::RdmaRead && descriptor.immediate.is_some();
        let request = Request {
            ticket: Ticket::Named(token),
            op: descriptor.op,
            fence: descriptor.fence,
            immediate: descriptor.immediate.filter(|_| queue == Queue::Send),
            remote: descriptor.remote,
            len: descriptor.len,
            fault: (too_many || misplaced || odd).then_some(Fault::Format),
        };
        self.enqueue(queue, request, &descriptor.segments, &mut core)
    }

    fn post_at(&self, queue: Queue, at: DescriptorAt) -> Result<(), Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        let Some((request, segments)) = self.parse(&mut core, queue, at) else {
            self.report(AsyncError {
                descriptor: Some(at.addr),
                ..AsyncError::of_vi(ErrorCode::PostDesc, self.id)
            });
            if core.state == ViState::Connected && core.is_reliable() {
                self.break_off(&mut core);
            }
            return Ok(());
        };
        self.chain(&mut core, queue, at);
        let plain = Plain {
            ticket: request.ticket,
            immediate: request.immediate,
            len: request.len,
        };
        if queue == Queue::Send
            && request.op == Op::SendRecv
            && !request.fence
            && request.fault.is_none()
            && self.send_now(&mut core, plain, &segments)
        {
            return Ok(());
        }
        self.enqueue(queue, request, &segments, &mut core)
    }

    fn done(&self, queue: Queue) -> Result<Done, Error> {
        let mut core = self.enter()?;
        self.attend(&mut core);
        Ok(self.take(&mut core, queue))
    }

    fn wait(&self, queue: Queue, timeout: Timeout) -> Result<Done, Error> {
        if self.cq(queue).is_some() {
            self.nic.check()?;
            return Err(Error::InvalidParameter);
        }
        let deadline = self.nic.deadline(timeout);
        let mut spin = self.spinner.begin();
        loop {
            let done = self.done(queue)?;
            if done != Done::NotDone {
                spin.hit();
                return Ok(done);
            }
            if timeout == Some(Duration::ZERO) {
                return Err(Error::Timeout);
            }
            if !spin.again() {
                break;
            }
        }
        loop {
            if let Some(done) = self.sleep(queue, deadline)? {
                spin.hit();
                return Ok(done);
            }
            let done = self.done(queue)?;
            if done != Done::NotDone {
                spin.hit();
                return Ok(done);
            }
            if self.nic.expired(deadline) {
                return Err(Error::Timeout);
            }
        }
    }

    fn notify(&self, queue: Queue, handler: DoneHandler) -> Result<(), Error> {
        let mut core = self.enter()?;
        if self.cq(queue).is_some() {
            return Err(Error::InvalidParameter);
        }
        self.progress(&mut core);
        match core.queue_mut(queue).take() {
            Some(completion) => self.nic.dispatcher.done(self.id, handler, completion),
            None => core.notify[queue as usize].push_back(handler),
        }
        Ok(())
    }
}

impl<D: Device> SoftVi<D> {
    /// Ends the VI itself, whatever it still holds.
    pub(super) fn end_life(&self, core: &mut Core<D>) {
        core.destroyed = true;
        core.notify = Default::default();
        core.regions.clear();
        self.nic.registry.unuse_ptag(core.attributes.ptag);
        for cq in self.bound_cqs() {
            cq.unbind(self.id);
        }
        self.wake(core);
    }
}

/// Takes back what a caller asked of the link's bell, unless somebody else still wants it.
fn disarm<D: Device>(core: &mut Core<D>) {
    if core.sleepers == 0
        && !core.armed
        && let Some(link) = &mut core.link
    {
        link.disarm();
    }
}

/// Where threads sleep on a VI that has no link.
#[derive(Default)]
pub(super) struct IdleBell {
    word: Mutex<u32>,
    rung: std::sync::Condvar,
}

impl IdleBell {
    fn ticket(&self) -> u32 {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<D: Device>(&self, ticket: u32, deadline: Option<Instant>, device: &D) {
        let word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        if *word != ticket {
            return;
        }
        let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
            deadline.saturating_duration_since(device.now())
        });
        // Woken, timed out or neither: the caller looks again.
        drop(self.rung.wait_timeout(word, left));
    }

    pub(super) fn wake(&self) {
        let mut word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        *word = word.wrapping_add(1);
        self.rung.notify_all();
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
