//! The thread that looks after VIs that their owner does not look after, and sees ended connections off.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sys::poll::{Interest, Poller};
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use via::Error;
use via::provider::ViId;
use via::soft::{Attention, Service};

use crate::cq::CqBell;
use crate::departure::Departure;
use crate::wire::Wire;

/// The agent of one NIC handle.
pub(crate) struct Agent {
    shared: Arc<AgentShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What other threads use of the agent.
pub(crate) struct AgentShared {
    poller: Poller,
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
    wires: HashMap<ViId, Arc<Wire>>,
    /// VIs whose owner may have gone since.
    stirred: HashSet<ViId>,
    cqs: HashMap<u32, Weak<CqBell>>,
    departures: HashMap<u32, Departure>,
}

/// A readiness set of the agent's or of a completion queue.
#[derive(Clone)]
pub(crate) enum Set {
    Agent(Arc<AgentShared>),
    Cq(Arc<CqBell>),
}

impl Set {
    pub(crate) fn poller(&self) -> &Poller {
        match self {
            Self::Agent(agent) => &agent.poller,
            Self::Cq(bell) => &bell.poller,
        }
    }
}

/// What a member of the poller is, in the upper half of its token.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Member {
    Vi = 0,
    Cq = 1,
    Departure = 2,
}

impl Member {
    pub(crate) fn token(self, id: u32) -> u64 {
        u64::from(self as u32) << 32 | u64::from(id)
    }

    fn of(token: u64) -> Option<(Self, u32)> {
        let member = match token >> 32 {
            0 => Self::Vi,
            1 => Self::Cq,
            2 => Self::Departure,
            _ => return None,
        };
        Some((member, token as u32))
    }
}

impl Agent {
    pub(crate) fn new() -> io::Result<Self> {
        let shared = AgentShared {
            poller: Poller::new()?,
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
                .name("iwarp-agent".into())
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
        self: &Arc<Self>,
        vi: ViId,
        wire: &Arc<Wire>,
        cq: Option<&Arc<CqBell>>,
    ) -> io::Result<()> {
        let set = cq.map_or_else(
            || Set::Agent(Arc::clone(self)),
            |cq| Set::Cq(Arc::clone(cq)),
        );
        let mut charges = self.charges();
        wire.join(set, Member::Vi.token(vi.0))?;
        charges.wires.insert(vi, Arc::clone(wire));
        charges.stirred.insert(vi);
        drop(charges);
        self.rouse();
        Ok(())
    }

    pub(crate) fn detach(&self, vi: ViId, wire: &Wire) {
        let mut charges = self.charges();
        charges.wires.remove(&vi);
        charges.stirred.remove(&vi);
        wire.leave();
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

    /// Whether the agent looks at the VIs of completion queue `id`, or one who sleeps on it does.
    pub(crate) fn leave_cq(&self, id: u32, cq: &CqBell, interest: Interest) {
        let token = Member::Cq.token(id);
        let modified = self.poller.modify(&cq.poller, token, interest);
        debug_assert!(modified.is_ok(), "a member since it was made");
    }

    /// The owner of `vi` looks after it, or just stopped: look again later.
    pub(crate) fn stirred(&self, vi: ViId) {
        self.charges().stirred.insert(vi);
        self.rouse();
    }

    /// Writes `last`, says FIN, and waits a while for the peer's.
    pub(crate) fn see_off(&self, wire: &Arc<Wire>, last: Vec<u8>) {
        let mut departure = Departure::new(Arc::clone(wire), last);
        if departure.go_on() || self.stopping.load(Ordering::Acquire) {
            return;
        }
        let id = self.next_token();
        let token = Member::Departure.token(id);
        let mut charges = self.charges();
        // Without a place in the set the connection ends as it is.
        let added = self
            .poller
            .add(wire.tcp().as_fd(), token, departure.interest());
        if added.is_ok() {
            charges.departures.insert(id, departure);
            drop(charges);
            self.rouse();
        }
    }

    /// Deals with what rang on `vi`'s socket.
    pub(crate) fn hear(&self, vi: ViId, service: &dyn Service) {
        let wire = self.charges().wires.get(&vi).cloned();
        if let Some(wire) = wire {
            wire.rang();
            service.serve(vi);
        }
    }

    fn rouse(&self) {
        if !self.ticking.load(Ordering::SeqCst) {
            self.poller.wake();
        }
    }

    fn run(self: Arc<Self>) {
        let mut events = Vec::new();
        let mut quiet = 0;
        while !self.stopping.load(Ordering::Acquire) {
            let ticking = quiet < QUIET_TICKS;
            self.ticking.store(ticking, Ordering::SeqCst);
            // Stirred between the last look and the store: nobody would say so again.
            let ticking = ticking || !self.charges().stirred.is_empty();
            let patience = if ticking {
                Some(TICK)
            } else {
                self.charges().patience()
            };
            if self.poller.wait(&mut events, patience).is_err() {
                return;
            }
            let Some(service) = self.service() else {
                return;
            };
            for event in &events {
                self.handle(event.token, &*service);
            }
            self.bury();
            if self.tend(&*service) {
                quiet = 0;
            } else {
                quiet += 1;
            }
        }
        self.hurry();
    }

    fn handle(&self, token: u64, service: &dyn Service) {
        match Member::of(token) {
            Some((Member::Vi, id)) => self.hear(ViId(id), service),
            Some((Member::Cq, id)) => {
                let cq = self.charges().cqs.get(&id).and_then(Weak::upgrade);
                if let Some(cq) = cq {
                    for vi in cq.rung(Some(Duration::ZERO)) {
                        self.hear(vi, service);
                    }
                }
            }
            Some((Member::Departure, id)) => self.depart(id),
            None => {}
        }
    }

    fn depart(&self, id: u32) {
        let mut charges = self.charges();
        let Some(departure) = charges.departures.get_mut(&id) else {
            return;
        };
        let over = departure.go_on();
        let tcp = departure.wire().tcp();
        if over {
            let removed = self.poller.remove(tcp);
            debug_assert!(removed.is_ok(), "added before");
            charges.departures.remove(&id);
        } else {
            let token = Member::Departure.token(id);
            let modified = self.poller.modify(tcp, token, departure.interest());
            debug_assert!(modified.is_ok(), "added before");
        }
    }

    /// Ends the departures that take too long.
    fn bury(&self) {
        let now = Instant::now();
        self.charges().departures.retain(|_, departure| {
            let keep = departure.until() > now;
            if !keep {
                let removed = self.poller.remove(departure.wire().tcp());
                debug_assert!(removed.is_ok(), "added before");
            }
            keep
        });
    }

    /// The NIC closes: a moment for those who are just saying good-bye.
    fn hurry(&self) {
        let end = Instant::now() + LAST_MOMENT;
        let mut events = Vec::new();
        while !self.charges().departures.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let waited = self.poller.wait(&mut events, Some(left));
            if waited.is_err() || left.is_zero() {
                break;
            }
            for event in &events {
                if let Some((Member::Departure, id)) = Member::of(event.token) {
                    self.depart(id);
                }
            }
        }
        self.charges().departures.clear();
    }

    /// Looks which VIs have been left by their owners; whether any owner was there.
    fn tend(&self, service: &dyn Service) -> bool {
        let stirred: Vec<_> = self.charges().stirred.iter().copied().collect();
        for &vi in &stirred {
            // Taken out first: an owner who comes while it is being armed puts it back in.
            self.charges().stirred.remove(&vi);
            let attention = service.tend(vi);
            let mut charges = self.charges();
            let unheard = charges.wires.get(&vi).is_some_and(|wire| wire.is_unheard());
            if attention == Attention::Attended || (attention == Attention::Armed && unheard) {
                charges.stirred.insert(vi);
            }
        }
        !stirred.is_empty()
    }

    fn charges(&self) -> MutexGuard<'_, Charges> {
        lock(&self.charges)
    }
}

impl Charges {
    /// How long until the first departure has taken too long.
    fn patience(&self) -> Option<Duration> {
        let first = self.departures.values().map(Departure::until).min()?;
        Some(first.saturating_duration_since(Instant::now()))
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
/// How long a NIC that closes waits for the ends of its connections.
const LAST_MOMENT: Duration = Duration::from_millis(200);
