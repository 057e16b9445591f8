//! How a stream begins.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proto::packet::{Combiner, Conversation, Settings, Wakeup};
use sys::errno::Errno;
use sys::lock::Lock;
use sys::relay::unguessable;
use sys::section;
use sys::sync::AtomicBool;
use sys::sync::mapped::AtomicU32;
use via::{Access, Memory, NetAddress};

use super::Stream;
use super::inner::Inner;
use crate::packet::adapter::Adapter;
use crate::packet::handler;
use crate::packet::variant::Flow;
use crate::packet::wait::Changed;

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
pub(in crate::packet) struct Patience {
    /// For somebody to listen: between two requests a listener is away for a moment.
    refusal: Duration,
    /// Or so often, where each takes long.
    attempts: u32,
    /// For his answer, which he gives when his backlog has room.
    answer: Duration,
}

impl Patience {
    pub(in crate::packet) const FULL: Self = Self {
        refusal: REFUSAL_TIME,
        attempts: ATTEMPTS_LEAST,
        answer: CONNECT_TIME,
    };
    /// A listener with room answers within that.
    pub(in crate::packet) const NONE: Self = Self {
        refusal: Duration::ZERO,
        attempts: 0,
        answer: Duration::from_millis(5),
    };

    /// Whether one who was refused so often in that time asks again.
    fn goes_on(&self, time: Duration, attempts: u32) -> bool {
        time < self.refusal || (attempts < self.attempts && time < REFUSAL_TIME_MOST)
    }
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
    pub(in crate::packet) fn connect_within(
        adapter: &Arc<Adapter>,
        remote: &NetAddress,
        identity: Identity,
        patience: Patience,
    ) -> Result<Arc<Self>, Errno> {
        let stream = Self::prepare(adapter, identity)?;
        let local = adapter.nic.address(&[]).map_err(|_| Errno::INVAL)?;
        let begun = Instant::now();
        let (mut attempts, mut nap) = (0, NAP_LEAST);
        loop {
            attempts += 1;
            // It takes long, and may be left: nobody else has the stream yet.
            let connect = || stream.vi.connect(&local, remote, Some(patience.answer));
            match section::paused(connect) {
                Ok(_) => break,
                Err(via::Error::NoMatch) if patience.goes_on(begun.elapsed(), attempts) => {
                    if !adapter.reaches_others() && begun.elapsed() < NAP_LEAST {
                        thread::yield_now();
                        continue;
                    }
                    // tidy: sleep because nothing tells that somebody listens again; over a network each attempt is a connection of TCP.
                    section::paused(|| thread::sleep(nap));
                    nap = (nap * 2).min(NAP_MOST);
                }
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
        let mut stream = Self::prepare(adapter, identity)?;
        stream.origin = Some(adapter.origin(&request.remote_address()));
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
            origin: None,
            stride,
            mtu,
            begun: Instant::now(),
            inner: Lock::new(Inner::new(
                Conversation::new(settings),
                Combiner::new(variant.combine, variant.copy_max, mtu.min(COMBINED_MAX)),
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
    pub(in crate::packet) fn meet(&self, time: Duration) {
        let limit = Instant::now() + time;
        let mut inner = self.lock();
        let waits = || Instant::now() < limit && !section::is_pending();
        while inner.peer.is_none() && !inner.lost && waits() {
            if !self.take_in(&mut inner) {
                inner = self.wait(inner, &mut [], Some(limit)).0;
            }
        }
    }
}

/// Bytes of a packet of small messages, which so stays in the near cache while it is filled and emptied (decision 28).
const COMBINED_MAX: u32 = 16 << 10;
/// Buffers for what is sent.
const SEND_SLOTS: u32 = 16;
const LINE: u32 = 64;
/// How long nobody may listen before the connection is refused.
const REFUSAL_TIME: Duration = Duration::from_millis(100);
/// What a listener has for each of many who ask at once, however far they are; and no longer than this.
const ATTEMPTS_LEAST: u32 = 8;
const REFUSAL_TIME_MOST: Duration = Duration::from_secs(3);
/// Between two attempts.
const NAP_LEAST: Duration = Duration::from_millis(1);
const NAP_MOST: Duration = Duration::from_millis(16);
const CONNECT_TIME: Duration = Duration::from_secs(60);
