//! The thread that looks after VIs that their owner does not look after.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sys::mem::Memory;
use sys::poll::{Event, Interest, Poller};
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use via::provider::ViId;
use via::soft::{Attention, Goodbye, Service};
use via::{Error, MemHandle};

use crate::cq::CqBell;
use crate::peer::{Heard, Peer};
use crate::peering::Offers;

/// The agent of one NIC handle.
pub(crate) struct Agent {
    shared: Arc<AgentShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What other threads use of the agent.
pub(crate) struct AgentShared {
    pub(crate) poller: Poller,
    pub(crate) offers: Offers,
    service: Mutex<Option<Weak<dyn Service>>>,
    charges: Mutex<Charges>,
    /// The agent looks again by itself before long.
    ticking: AtomicBool,
    stopping: AtomicBool,
    last_token: AtomicU32,
}

/// What the agent looks after.
#[derive(Default)]
struct Charges {
    peers: HashMap<ViId, Charge>,
    /// VIs whose owner may have gone since.
    stirred: HashSet<ViId>,
    cqs: HashMap<u32, Weak<CqBell>>,
    processes: HashMap<u32, Process>,
}

/// A VI's connection.
#[derive(Clone)]
struct Charge {
    peer: Arc<Peer>,
    /// Which of the VI's connections it is.
    connection: u32,
}

/// A process at the other end of some connections.
struct Process {
    pidfd: OwnedFd,
    vis: HashMap<ViId, u32>,
}

/// What a member of the poller is, in the upper half of its token.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Member {
    Vi = 0,
    Cq = 1,
    Process = 2,
    Offer = 3,
}

impl Member {
    pub(crate) fn token(self, id: u32) -> u64 {
        u64::from(self as u32) << 32 | u64::from(id)
    }

    fn of(token: u64) -> Option<(Self, u32)> {
        let member = match token >> 32 {
            0 => Self::Vi,
            1 => Self::Cq,
            2 => Self::Process,
            3 => Self::Offer,
            _ => return None,
        };
        Some((member, token as u32))
    }
}

impl Agent {
    pub(crate) fn new() -> io::Result<Self> {
        let shared = AgentShared {
            poller: Poller::new()?,
            offers: Offers::default(),
            service: Mutex::default(),
            charges: Mutex::default(),
            ticking: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            last_token: AtomicU32::new(0),
        };
        Ok(Self {
            shared: Arc::new(shared),
            thread: Mutex::default(),
        })
    }

    pub(crate) fn shared(&self) -> &Arc<AgentShared> {
        &self.shared
    }

    /// Starts the thread, with the first connection.
    pub(crate) fn start(&self) -> Result<(), Error> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let spawned = thread::Builder::new()
                .name("shm-agent".into())
                .stack_size(STACK)
                .spawn(move || shared.run());
            *thread = Some(spawned.map_err(|_| Error::Resource)?);
        }
        Ok(())
    }

    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.poller.wake();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the agent does not panic");
        }
        self.shared.offers.clear();
    }
}

impl AgentShared {
    pub(crate) fn set_service(&self, service: Weak<dyn Service>) {
        *lock(&self.service) = Some(service);
    }

    pub(crate) fn service(&self) -> Option<Arc<dyn Service>> {
        lock(&self.service).as_ref()?.upgrade()
    }

    /// A number for a new member of the poller.
    pub(crate) fn next_token(&self) -> u32 {
        self.last_token.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn attach(
        &self,
        vi: ViId,
        connection: u32,
        peer: &Arc<Peer>,
        cq: Option<&Arc<CqBell>>,
    ) -> io::Result<()> {
        let mut charges = self.charges();
        let poller = cq.map_or(&self.poller, |cq| &cq.poller);
        poller.add(&peer.conn, Member::Vi.token(vi.0), Interest::Read)?;
        charges.watch_process(&self.poller, peer, vi, connection);
        let charge = Charge {
            peer: Arc::clone(peer),
            connection,
        };
        charges.peers.insert(vi, charge);
        charges.stirred.insert(vi);
        drop(charges);
        self.rouse();
        Ok(())
    }

    pub(crate) fn detach(&self, vi: ViId, peer: &Peer, cq: Option<&Arc<CqBell>>) {
        let mut charges = self.charges();
        charges.peers.remove(&vi);
        charges.stirred.remove(&vi);
        charges.forget_process(&self.poller, peer.pid, vi);
        let poller = cq.map_or(&self.poller, |cq| &cq.poller);
        let removed = poller.remove(&peer.conn);
        debug_assert!(removed.is_ok(), "attached before");
    }

    pub(crate) fn add_cq(&self, id: u32, cq: &Arc<CqBell>) -> io::Result<()> {
        self.charges().cqs.insert(id, Arc::downgrade(cq));
        self.poller
            .add(&cq.poller, Member::Cq.token(id), Interest::Read)
    }

    pub(crate) fn remove_cq(&self, id: u32, cq: &CqBell) {
        self.charges().cqs.remove(&id);
        let removed = self.poller.remove(&cq.poller);
        debug_assert!(removed.is_ok(), "added before");
    }

    /// The owner of `vi` looks after it, or just stopped: look again later.
    pub(crate) fn stirred(&self, vi: ViId) {
        self.charges().stirred.insert(vi);
        self.rouse();
    }

    /// Takes back what peers were granted of a region.
    pub(crate) fn revoke(&self, handle: MemHandle, memory: &Memory) {
        let peers: Vec<_> = self.charges().peers.values().cloned().collect();
        let mut granted = false;
        for charge in peers {
            granted |= charge.peer.revoke(handle);
        }
        if granted && memory.try_clone_fd().is_ok() {
            // A hostile peer keeps its mapping: from here on of other pages than ours.
            let moved = memory.unshare();
            debug_assert!(moved.is_ok(), "there is memory for a copy");
        }
    }

    /// Deals with what rang on `vi`'s socket.
    pub(crate) fn hear(&self, vi: ViId, service: &dyn Service) {
        let charge = self.charges().peers.get(&vi).cloned();
        let Some(Charge { peer, connection }) = charge else {
            return;
        };
        let heard = peer.hear(vi, service);
        service.serve(vi);
        if heard == Heard::Closed {
            let last = crate::peer::goodbye(peer.control.peer_state(), 0);
            service.ended(vi, connection, last.unwrap_or(Goodbye::Died));
        }
    }

    fn rouse(&self) {
        if !self.ticking.load(Ordering::SeqCst) {
            self.poller.wake();
        }
    }

    fn run(&self) {
        let mut events = Vec::new();
        let mut quiet = 0;
        while !self.stopping.load(Ordering::Acquire) {
            let ticking = quiet < QUIET_TICKS;
            self.ticking.store(ticking, Ordering::SeqCst);
            // Stirred between the last look and the store: nobody would say so again.
            let ticking = ticking || !self.charges().stirred.is_empty();
            if self
                .poller
                .wait(&mut events, ticking.then_some(TICK))
                .is_err()
            {
                return;
            }
            let Some(service) = self.service() else {
                return;
            };
            for event in &events {
                self.handle(*event, &*service);
            }
            if self.tend(&*service) {
                quiet = 0;
            } else {
                quiet += 1;
            }
        }
    }

    fn handle(&self, event: Event, service: &dyn Service) {
        match Member::of(event.token) {
            Some((Member::Vi, id)) => self.hear(ViId(id), service),
            Some((Member::Cq, id)) => {
                let cq = self.charges().cqs.get(&id).and_then(Weak::upgrade);
                if let Some(cq) = cq {
                    for vi in cq.rung(Some(Duration::ZERO)) {
                        self.hear(vi, service);
                    }
                }
            }
            Some((Member::Process, pid)) => {
                let vis = self.charges().bury(&self.poller, pid);
                for (vi, connection) in vis {
                    service.ended(vi, connection, Goodbye::Died);
                }
            }
            Some((Member::Offer, id)) => self.offers.hear(self, id),
            None => {}
        }
    }

    /// Looks which VIs have been left by their owners; whether any owner was there.
    fn tend(&self, service: &dyn Service) -> bool {
        let stirred: Vec<_> = self.charges().stirred.iter().copied().collect();
        for &vi in &stirred {
            // Taken out first: an owner who comes while it is being armed puts it back in.
            self.charges().stirred.remove(&vi);
            if service.tend(vi) == Attention::Attended {
                self.charges().stirred.insert(vi);
            }
        }
        !stirred.is_empty()
    }

    fn charges(&self) -> MutexGuard<'_, Charges> {
        lock(&self.charges)
    }
}

impl Charges {
    /// Its death ends the connection, even while a child of its holds the socket open.
    fn watch_process(&mut self, poller: &Poller, peer: &Peer, vi: ViId, connection: u32) {
        if peer.pid == 0 {
            return;
        }
        if let Some(process) = self.processes.get_mut(&peer.pid) {
            process.vis.insert(vi, connection);
            return;
        }
        // Without a pidfd the closing socket alone tells.
        let Ok(pidfd) = peer.conn.peer_pidfd() else {
            return;
        };
        let token = Member::Process.token(peer.pid);
        if poller.add(&pidfd, token, Interest::Read).is_ok() {
            let vis = HashMap::from([(vi, connection)]);
            self.processes.insert(peer.pid, Process { pidfd, vis });
        }
    }

    fn forget_process(&mut self, poller: &Poller, pid: u32, vi: ViId) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.vis.remove(&vi);
        if process.vis.is_empty() {
            self.bury(poller, pid);
        }
    }

    fn bury(&mut self, poller: &Poller, pid: u32) -> HashMap<ViId, u32> {
        let Some(process) = self.processes.remove(&pid) else {
            return HashMap::new();
        };
        let removed = poller.remove(&process.pidfd);
        debug_assert!(removed.is_ok(), "added before");
        process.vis
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const STACK: usize = 128 * 1024;
/// How often the agent looks whether an owner has left.
const TICK: Duration = Duration::from_millis(2);
/// Ticks without any such VI after which it sleeps until it is woken.
const QUIET_TICKS: u32 = 10;
