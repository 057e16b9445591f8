//! The thread that looks after VIs that their owner does not look after.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sys::poll::{Interest, Poller};
use sys::quiet;
use sys::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use self::cq::Bed;
use self::place::Place;
use super::device::{Attention, Service};
use crate::Error;
use crate::provider::ViId;

mod cq;
mod duties;
mod place;

pub use self::cq::CqBell;
pub use self::duties::{Duties, Member};

/// The agent of one NIC handle: for devices whose connections are sockets.
///
/// It sleeps on a set of descriptors: the sockets of VIs that have no completion queue, the sets of the completion queues, and what the
/// device adds of its own. What differs between devices is in their [`Duties`].
pub struct Agent<D: Duties> {
    duties: D,
    set: Arc<Poller>,
    service: Mutex<Option<Weak<dyn Service>>>,
    charges: Mutex<Charges<D>>,
    /// The agent looks again by itself before long.
    ticking: AtomicBool,
    stopping: AtomicBool,
    last_id: AtomicU32,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Given back when the NIC closes, whoever still holds on to its objects.
    place: Mutex<Option<Place>>,
}

/// What the agent looks after.
#[derive(Default)]
struct Charges<D: Duties> {
    vis: HashMap<ViId, Charge<D>>,
    /// VIs whose owner may have gone since.
    stirred: HashSet<ViId>,
    /// Where threads sleep on completion queues.
    cqs: HashMap<u32, Arc<Bed>>,
}

struct Charge<D: Duties> {
    connection: D::Connection,
    /// The set that its socket is a member of.
    set: Arc<Poller>,
}

impl<D: Duties> Agent<D> {
    /// An agent whose thread runs [from the first connection on](Agent::attach). `open` counts those of its kind in this process.
    ///
    /// # Errors
    /// [`Error::Resource`] when there are as many as a process may have, or no descriptors.
    pub fn new(open: &'static AtomicUsize) -> Result<Arc<Self>, Error> {
        let place = Place::take(open).ok_or(Error::Resource)?;
        let set = Poller::new().map_err(|_| Error::Resource)?;
        Ok(Arc::new(Self {
            duties: D::default(),
            set: Arc::new(set),
            service: Mutex::default(),
            charges: Mutex::default(),
            ticking: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            last_id: AtomicU32::new(0),
            thread: Mutex::default(),
            place: Mutex::new(Some(place)),
        }))
    }

    /// The device's part.
    pub fn duties(&self) -> &D {
        &self.duties
    }

    /// What the agent sleeps on.
    pub fn set(&self) -> &Arc<Poller> {
        &self.set
    }

    /// A number for a new [`Member`] of the set.
    pub fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The engine is there, for [`Device::started`](super::Device::started).
    pub fn set_service(&self, service: Weak<dyn Service>) {
        *lock(&self.service) = Some(service);
    }

    /// Starts the thread, if it does not run yet.
    ///
    /// # Errors
    /// [`Error::Resource`]: no thread can be had.
    pub fn start(self: &Arc<Self>) -> Result<(), Error> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let agent = Arc::clone(self);
            let spawned = quiet::spawn(D::THREAD, Some(STACK), move || agent.run());
            *thread = Some(spawned.map_err(|_| Error::Resource)?);
        }
        Ok(())
    }

    /// Ends the thread and gives its place back, for [`Device::stop`](super::Device::stop).
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.set.wake();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the agent does not panic");
        }
        lock(&self.place).take();
    }

    /// Whether the NIC closes.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Looks after `connection` of `vi`, whose completion queue, if any, sleeps on `cq`. Starts the thread.
    ///
    /// # Errors
    /// [`Error::Resource`]: no thread can be had, or no room in the set.
    pub fn attach(
        self: &Arc<Self>,
        vi: ViId,
        connection: D::Connection,
        cq: Option<&CqBell<D>>,
    ) -> Result<(), Error> {
        self.start()?;
        let set = Arc::clone(cq.map_or(&self.set, CqBell::set));
        let mut charges = self.charges();
        self.duties
            .join(self, vi, &connection, &set)
            .map_err(|_| Error::Resource)?;
        charges.vis.insert(vi, Charge { connection, set });
        charges.stirred.insert(vi);
        drop(charges);
        self.rouse();
        Ok(())
    }

    /// The connection of `vi`, attached before, ends.
    pub fn detach(&self, vi: ViId) {
        let mut charges = self.charges();
        charges.stirred.remove(&vi);
        let charge = charges.vis.remove(&vi);
        debug_assert!(charge.is_some(), "attached before");
        if let Some(Charge { connection, set }) = charge {
            self.duties.leave(self, vi, &connection, &set);
        }
    }

    /// All that is looked after.
    pub fn connections(&self) -> Vec<D::Connection> {
        let charges = self.charges();
        let connections = charges.vis.values().map(|charge| &charge.connection);
        connections.cloned().collect()
    }

    /// The owner of `vi` looks after it, or just stopped: look again later.
    pub fn stirred(&self, vi: ViId) {
        self.charges().stirred.insert(vi);
        self.rouse();
    }

    /// There is something new to do: a thread that sleeps for good wakes up.
    pub fn rouse(&self) {
        if !self.ticking.load(Ordering::SeqCst) {
            self.set.wake();
        }
    }

    /// The engine, unless it has gone.
    pub fn service(&self) -> Option<Arc<dyn Service>> {
        lock(&self.service).as_ref()?.upgrade()
    }

    /// Deals with what rang on `vi`'s socket.
    fn hear(&self, vi: ViId, service: &dyn Service) {
        let connection = {
            let charges = self.charges();
            charges.vis.get(&vi).map(|charge| charge.connection.clone())
        };
        if let Some(connection) = connection {
            self.duties.hear(vi, &connection, service);
        }
    }

    fn run(&self) {
        let mut events = Vec::new();
        let mut quiet = 0;
        while !self.is_stopping() {
            let ticking = quiet < QUIET_TICKS;
            self.ticking.store(ticking, Ordering::SeqCst);
            // Stirred between the last look and the store: nobody would say so again.
            let ticking = ticking || !self.charges().stirred.is_empty();
            let patience = if ticking {
                Some(TICK)
            } else {
                self.duties.patience()
            };
            if self.set.wait(&mut events, patience).is_err() {
                return;
            }
            let Some(service) = self.service() else {
                return;
            };
            for event in &events {
                self.handle(Member::of(event.token), &*service);
            }
            self.duties.go_round(self);
            if self.tend(&*service) {
                quiet = 0;
            } else {
                quiet += 1;
            }
        }
        self.duties.finish(self);
    }

    fn handle(&self, member: Member, service: &dyn Service) {
        match member {
            Member::Vi(vi) => self.hear(vi, service),
            Member::Cq(id) => {
                let bed = self.charges().cqs.get(&id).cloned();
                for vi in bed.iter().flat_map(|bed| bed.rung_for_agent()) {
                    self.hear(vi, service);
                }
            }
            Member::Own(kind, id) => self.duties.rang(self, kind, id, service),
        }
    }

    /// Looks which VIs have been left by their owners; whether any owner was there.
    fn tend(&self, service: &dyn Service) -> bool {
        let stirred: Vec<_> = self.charges().stirred.iter().copied().collect();
        for &vi in &stirred {
            // Taken out first: an owner who comes while it is being armed puts it back in.
            self.charges().stirred.remove(&vi);
            let attention = service.tend(vi);
            let mut charges = self.charges();
            let again = match attention {
                Attention::Attended => true,
                Attention::Armed => charges
                    .vis
                    .get(&vi)
                    .is_some_and(|charge| D::must_look_again(&charge.connection)),
                Attention::Gone => false,
            };
            if again {
                charges.stirred.insert(vi);
            }
        }
        !stirred.is_empty()
    }

    fn add_cq(&self, id: u32, bed: &Arc<Bed>) -> io::Result<()> {
        let token = Member::Cq(id).token();
        self.set.add(bed.set(), token, Interest::Read)?;
        self.charges().cqs.insert(id, Arc::clone(bed));
        Ok(())
    }

    fn remove_cq(&self, id: u32, set: &Poller) {
        self.charges().cqs.remove(&id);
        let removed = self.set.remove(set);
        debug_assert!(removed.is_ok(), "added before");
    }

    fn charges(&self) -> MutexGuard<'_, Charges<D>> {
        lock(&self.charges)
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
