//! A byte stream over a VI.
//!
//! Packets are taken in by whoever waits, in the course of its own call, unless there is a handler thread (SOVIA_HANDLER). What has come stays in the
//! buffer that it came into until the program has read it; then the buffer's descriptor is posted again, and that is what is acknowledged: so the window bounds
//! what a peer can make us keep. Small messages are copied into buffers of ours; larger ones are sent from where they are, if the NIC
//! gains by it, and the call ends when the NIC has them. Over a NIC that copies there are no such buffers on the way: it copies from the program's memory, and
//! into it where the program waits for what comes.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proto::packet::{Combiner, Conversation, Settings, WAKEUP_LEN, Wakeup};
use sys::errno::Errno;
use sys::lock::{Guard, Lock};
use sys::relay::unguessable;
use sys::sync::mapped::AtomicU32;
use sys::sync::{AtomicBool, Ordering};
use via::provider::Received;
use via::{Access, Descriptor, Done, Memory, NetAddress, Region, Vi};

use self::flow::{Inner, Taken};
use super::adapter::Adapter;
use super::handler;
use super::variant::{Flow, Waiting};
use super::wait::{Changed, left};
use crate::conn::Origin;
use crate::stat::{self, Tally};

mod end;
mod flow;
mod hand_over;
mod low_water;
mod receive;
pub mod relay;
mod send;
mod stash;
mod urgent;
mod watch;

/// One end of a connection.
pub struct Stream {
    // Before the regions: a VI is destroyed before its memory is deregistered.
    vi: Vi,
    incoming: Region,
    outgoing: Region,
    adapter: Arc<Adapter>,
    /// From one buffer to the next.
    stride: u32,
    mtu: u32,
    begun: Instant,
    inner: Lock<Inner>,
    /// A packet was taken in, or the stream ended.
    moved: Changed,
    /// Whether somebody polls.
    watched: AtomicBool,
    /// SO_RCVLOWAT.
    low_water: AtomicU32,
    /// A thread that waits in the NIC for one of its queues is to look at what has changed here.
    rung: [AtomicBool; 2],
    /// Somebody who has the lock breaks the connection, and waits for the NIC's notify functions to end.
    losing: AtomicBool,
}

/// Who has a stream, for its peer's WAKEUP.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// The descriptor.
    pub descriptor: u32,
    /// The IPv4 address.
    pub address: [u8; 4],
    /// The port.
    pub port: u16,
}

/// How long one who asks for a connection waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For somebody to listen: between two requests a listener is away for a moment.
    refusal: Duration,
    /// For his answer, which he gives when his backlog has room.
    answer: Duration,
}

impl Patience {
    pub(super) const FULL: Self = Self {
        refusal: REFUSAL_TIME,
        answer: CONNECT_TIME,
    };
    /// A listener with room answers within that.
    pub(super) const NONE: Self = Self {
        refusal: Duration::ZERO,
        answer: Duration::from_millis(5),
    };
}

impl Stream {
    /// Asks whoever listens at `remote`.
    ///
    /// # Errors
    /// `ECONNREFUSED`, `ETIMEDOUT`, `ENOBUFS`.
    pub fn connect(
        adapter: &Arc<Adapter>,
        remote: &NetAddress,
        identity: Identity,
    ) -> Result<Arc<Self>, Errno> {
        Self::connect_within(adapter, remote, identity, Patience::FULL)
    }

    /// As [`Stream::connect`], and no longer than that.
    pub(super) fn connect_within(
        adapter: &Arc<Adapter>,
        remote: &NetAddress,
        identity: Identity,
        patience: Patience,
    ) -> Result<Arc<Self>, Errno> {
        let stream = Self::prepare(adapter, identity)?;
        let local = adapter.nic.address(&[]).map_err(|_| Errno::INVAL)?;
        let deadline = Instant::now() + patience.refusal;
        loop {
            match stream.vi.connect(&local, remote, Some(patience.answer)) {
                Ok(_) => break,
                Err(via::Error::NoMatch) if Instant::now() < deadline => thread::yield_now(),
                Err(via::Error::NoMatch | via::Error::Reject) => return Err(Errno::CONNREFUSED),
                Err(via::Error::Timeout) => return Err(Errno::TIMEDOUT),
                Err(via::Error::NotReachable) => return Err(Errno::HOSTUNREACH),
                Err(_) => return Err(Errno::NOBUFS),
            }
        }
        Ok(stream.begin())
    }

    /// Takes a request that came.
    ///
    /// # Errors
    /// `ECONNABORTED`, `ENOBUFS`.
    pub fn accept(
        adapter: &Arc<Adapter>,
        mut request: via::Incoming,
        identity: Identity,
    ) -> Result<Arc<Self>, Errno> {
        let stream = Self::prepare(adapter, identity)?;
        // A NIC that was given another largest transfer takes the asker's answer for ours.
        request.accept(&stream.vi).map_err(|_| Errno::CONNABORTED)?;
        Ok(stream.begin())
    }

    /// A VI with all its descriptors posted.
    fn prepare(adapter: &Arc<Adapter>, identity: Identity) -> Result<Self, Errno> {
        let variant = adapter.variant;
        let mtu = adapter.mtu();
        let vi = adapter.nic.create_vi(&adapter.config());
        let vi = vi.map_err(|_| Errno::NOBUFS)?;
        // Where the NIC holds a sender back, a window would do it once more.
        let needs_none = adapter.capabilities.flow_control && variant.flow == Flow::AsTheNicSays;
        let settings = if needs_none && vi.hold_back().is_ok() {
            Settings::without_window(mtu)
        } else {
            Settings::new(variant.settings.window, variant.settings.threshold, mtu)
        };
        let settings = settings.map_err(|_| Errno::INVAL)?;
        // An odd number of cache lines, or the first bytes of all buffers would compete for a few places of the cache.
        let stride = (mtu.div_ceil(LINE) | 1) * LINE;
        let region = |slots: u32| {
            let bytes = slots as usize * stride as usize;
            let memory = Memory::private(bytes).map_err(|_| Errno::NOBUFS)?;
            let region = adapter.nic.register(memory, &adapter.tag, Access::Local);
            region.map_err(|_| Errno::NOBUFS)
        };
        let stream = Self {
            incoming: region(settings.slots())?,
            outgoing: region(SEND_SLOTS)?,
            vi,
            adapter: Arc::clone(adapter),
            stride,
            mtu,
            begun: Instant::now(),
            inner: Lock::new(Inner::new(
                Conversation::new(settings),
                Combiner::new(variant.combine, variant.copy_max, mtu),
                Wakeup {
                    descriptor: identity.descriptor,
                    address: identity.address,
                    port: identity.port,
                    settings,
                    place: unguessable().map_err(|_| Errno::NOBUFS)?,
                },
                SEND_SLOTS,
            )),
            moved: Changed::default(),
            watched: AtomicBool::new(false),
            low_water: AtomicU32::new(1),
            rung: Default::default(),
            losing: AtomicBool::new(false),
        };
        (0..settings.pre_posted())
            .try_for_each(|slot| stream.post_recv(slot))
            .map_err(|_| Errno::NOBUFS)?;
        Ok(stream)
    }

    fn begin(self) -> Arc<Self> {
        let stream = Arc::new(self);
        let mut inner = stream.lock();
        inner.me = Arc::downgrade(&stream);
        stream.transmit(&mut inner);
        drop(inner);
        if stream.adapter.variant.handler {
            handler::start(&stream);
        }
        stream
    }

    /// Waits for the peer's first packet for a moment: it is on its way, unless the peer has been stopped, and before it comes nothing can be sent.
    pub(super) fn meet(&self, time: Duration) {
        let limit = Instant::now() + time;
        let mut inner = self.lock();
        while inner.peer.is_none() && !inner.lost && Instant::now() < limit {
            if !self.take_in(&mut inner) {
                inner = self.wait(inner, &mut [], Some(limit)).0;
            }
        }
    }

    /// Who the peer said it is, if it has said so yet.
    pub fn peer(&self) -> Option<Wakeup> {
        self.lock().peer
    }

    /// The program has it now: others may see it, at these ends.
    pub(super) fn tell(&self, origin: Origin, ends: Option<[SocketAddr; 2]>) {
        let nic = &self.adapter.nic.attributes().name;
        let tally = Tally::begin(stat::Kind::Packet, nic, origin, ends);
        self.lock().tally = tally;
    }

    /// The program knows it by that descriptor.
    pub(super) fn set_number(&self, fd: u32) {
        self.lock().tally.set_number(fd);
    }

    /// Whether the peer's first packet has come.
    pub(super) fn is_met(&self) -> bool {
        let mut inner = self.lock();
        if inner.peer.is_none() {
            self.take_in(&mut inner);
        }
        inner.peer.is_some()
    }

    /// TCP_NODELAY: holds nothing back from now on, or as the version does.
    pub fn set_nodelay(&self, nodelay: bool) {
        let mut inner = self.lock();
        let delays = !nodelay && inner.shown.is_none();
        let delay = self.adapter.variant.combine.filter(|_| delays);
        inner.combiner.set_delay(delay);
        if nodelay {
            self.flush_now(&mut inner);
        }
    }

    /// Bytes that have come and have not been read.
    pub fn readable(&self) -> usize {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        inner.readable()
    }

    /// Bytes of the largest packet that both ends can take.
    pub(super) fn largest(&self) -> u32 {
        self.lock().talk.mtu()
    }

    /// Sends what waits to be combined, as far as the window allows.
    pub fn release(&self) {
        self.flush_now(&mut self.lock());
    }

    /// Bytes that wait to be combined with others.
    pub fn held(&self) -> usize {
        self.lock().combiner.held() as usize
    }

    fn post_recv(&self, slot: u32) -> Result<(), via::Error> {
        let start = slot * self.stride;
        let descriptor = Descriptor::recv().segment(&self.incoming, start..start + self.mtu);
        self.vi.post_recv(&descriptor, slot.into())
    }

    fn lock(&self) -> Guard<'_, Inner> {
        self.inner.lock()
    }

    /// The lock, for a notify function of the NIC; `None` if the connection is being broken by who has it: he waits for the function to end.
    fn lock_unless_losing(&self) -> Option<Guard<'_, Inner>> {
        let mut tries = 0u32;
        loop {
            if let Some(inner) = self.inner.try_lock() {
                return Some(inner);
            }
            if self.losing.load(Ordering::Acquire) {
                return None;
            }
            tries += 1;
            if tries < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(NAP);
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Waits until something may have come, a signal, or the limit; takes in what has come, DATA to `into` if it can. The lock is not held
    /// meanwhile.
    fn wait<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        into: &mut [u8],
        limit: Option<Instant>,
    ) -> (Guard<'a, Inner>, Taken) {
        self.settle(&mut inner);
        // One waits in the NIC, and the others for it.
        if self.adapter.variant.handler || inner.is_awaited || inner.is_noticed {
            let (inner, interrupted) = self.wait_for_others(inner, limit);
            let taken = if interrupted {
                Taken::Interrupted
            } else {
                Taken::Nothing
            };
            return (inner, taken);
        }
        inner.is_awaited = true;
        let acquainted = inner.peer.is_some();
        drop(inner);
        let received = match self.adapter.variant.waiting {
            Waiting::Polling => self.poll(acquainted, into, POLLS_A_YIELD, limit),
            Waiting::Blocking if acquainted && self.adapter.copies => {
                self.vi.receive(into, left(limit))
            }
            Waiting::Blocking => {
                let waited = self.vi.ops().wait_or_signal(via::Queue::Recv, left(limit));
                waited.map(Received::Posted)
            }
        };
        let mut inner = self.lock();
        inner.is_awaited = false;
        let taken = match received {
            Ok(Received::Posted(Done::NotDone)) if self.was_rung(via::Queue::Recv) => {
                Taken::Nothing
            }
            Ok(Received::Posted(Done::NotDone)) => Taken::Interrupted,
            Err(via::Error::Timeout) => Taken::Nothing,
            received => self.absorb_received(&mut inner, received),
        };
        if inner.shown.is_some()
            && let Some(me) = inner.me.upgrade()
        {
            me.attend(&mut inner);
        }
        self.show(&inner, true);
        if inner.waiters > 0 {
            self.moved.notify_all();
        }
        (inner, taken)
    }

    /// Waits until another thread is back from the NIC, or what it waits for has changed here. Whether a signal came.
    fn wait_for_others<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        limit: Option<Instant>,
    ) -> (Guard<'a, Inner>, bool) {
        inner.waiters += 1;
        let ticket = self.moved.ticket();
        drop(inner);
        let interrupted = self.moved.wait(ticket, limit);
        let mut inner = self.lock();
        inner.waiters -= 1;
        (inner, interrupted)
    }

    /// Looks until there is something or [`Stream::ring`] is called, and lets others have the CPU after so many looks.
    fn poll(
        &self,
        acquainted: bool,
        into: &mut [u8],
        looks: u32,
        limit: Option<Instant>,
    ) -> Result<Received, via::Error> {
        let mut fruitless = 0u32;
        loop {
            let received = self.look(acquainted, into)?;
            if received != Received::Posted(Done::NotDone) {
                return Ok(received);
            }
            fruitless = fruitless.wrapping_add(1);
            if fruitless.is_multiple_of(looks) {
                if limit.is_some_and(|limit| Instant::now() >= limit) {
                    return Err(via::Error::Timeout);
                }
                if self.rung[via::Queue::Recv as usize].load(Ordering::Relaxed) {
                    return Ok(received);
                }
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.vi).finish()
    }
}

/// Buffers for what is sent.
const SEND_SLOTS: u32 = 16;
const LINE: u32 = 64;
/// How long nobody may listen before the connection is refused.
const REFUSAL_TIME: Duration = Duration::from_millis(100);
const CONNECT_TIME: Duration = Duration::from_secs(60);
/// Looks between two turns of others at the CPU.
const POLLS_A_YIELD: u32 = 1024;
/// Who waits for the lock in a notify function yields so often, then naps.
const YIELDS: u32 = 100;
const NAP: Duration = Duration::from_micros(50);

const _: () = assert!(WAKEUP_LEN <= 64);
