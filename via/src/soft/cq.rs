//! Completion queues.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::sync::{AtomicU32, Ordering};
use sys::wait::Spinner;

use super::device::{CqWaiter, Device};
use super::nic::Shared;
use super::vi::SoftVi;
use crate::Error;
use crate::provider::{CqEntry, CqHandler, CqId, CqOps, Timeout, ViId};

/// A completion queue of a software NIC.
///
/// Completions are found by looking at the links of its VIs: of all that were active lately ("hot").
/// The others are armed, and ring; the owner's own calls disarm them, and bring them back.
pub(super) struct SoftCq<D: Device> {
    id: CqId,
    nic: Arc<Shared<D>>,
    entries: Mutex<Entries>,
    hot: Mutex<Vec<Hot<D>>>,
    waiter: D::CqWaiter,
    sleepers: AtomicU32,
    spinner: Spinner,
}

#[derive(Default)]
struct Entries {
    queue: VecDeque<CqEntry>,
    /// VIs that are to be hot again.
    readmitted: Vec<ViId>,
    capacity: u32,
    /// Entries beyond the capacity that the consumer promised to keep to; none is lost.
    overruns: u64,
    handlers: VecDeque<CqHandler>,
    /// Who goes on for an owner who has left.
    deputy: Option<Arc<dyn Fn() + Send + Sync>>,
    /// VIs bound to it.
    bound: u32,
    destroyed: bool,
}

struct Hot<D: Device> {
    vi: Arc<SoftVi<D>>,
    /// Fruitless looks since something arrived.
    fruitless: u32,
}

impl<D: Device> SoftCq<D> {
    pub(super) fn new(id: CqId, nic: Arc<Shared<D>>, capacity: u32) -> Result<Self, Error> {
        let waiter = nic.device.cq_waiter().map_err(|_| Error::Resource)?;
        Ok(Self {
            id,
            entries: Mutex::new(Entries {
                capacity,
                ..Entries::default()
            }),
            hot: Mutex::default(),
            waiter,
            sleepers: AtomicU32::new(0),
            spinner: Spinner::new(nic.spin_limits()),
            nic,
        })
    }

    pub(super) fn waiter(&self) -> &D::CqWaiter {
        &self.waiter
    }

    /// Counts a VI that reports to it. Errors: [`Error::InvalidParameter`] once it has been destroyed.
    pub(super) fn bind(&self) -> Result<(), Error> {
        self.enter()?.bound += 1;
        Ok(())
    }

    pub(super) fn unbind(&self, vi: ViId) {
        let mut entries = self.entries();
        entries.bound -= 1;
        entries.queue.retain(|entry| entry.vi != vi);
    }

    /// One more completed descriptor.
    pub(super) fn push(&self, entry: CqEntry) {
        let mut entries = self.entries();
        if let Some(handler) = entries.handlers.pop_front() {
            drop(entries);
            self.nic.dispatcher.entry(self.id, handler, entry);
            return;
        }
        if entries.queue.len() >= entries.capacity as usize {
            entries.overruns += 1;
        }
        entries.queue.push_back(entry);
        drop(entries);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.waiter.wake();
        }
    }

    /// Looks at `vi` from now on. Not with its lock held.
    pub(super) fn heat(&self, vi: &Arc<SoftVi<D>>) {
        let mut hot = self.hot.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever destroys it forgets it next: kept, it would keep this queue for ever.
        if vi.lock().destroyed {
            return;
        }
        match hot.iter_mut().find(|hot| hot.vi.id == vi.id) {
            Some(hot) => hot.fruitless = 0,
            None => hot.push(Hot {
                vi: Arc::clone(vi),
                fruitless: 0,
            }),
        }
    }

    /// No longer looks at a VI that has been destroyed. Not with its lock held.
    pub(super) fn forget(&self, vi: ViId) {
        let mut hot = self.hot.lock().unwrap_or_else(PoisonError::into_inner);
        hot.retain(|hot| hot.vi.id != vi);
    }

    /// The owner of a VI that was left to its bell has called, and does without it: it is hot again from the next look on. Said before it is
    /// asked whether the queue [is awaited](Self::is_awaited): who begins to wait in between finds it.
    pub(super) fn readmit(&self, vi: ViId) {
        self.entries().readmitted.push(vi);
    }

    /// Whether somebody sleeps here, or is to be called with the next entry.
    pub(super) fn is_awaited(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0 || !self.entries().handlers.is_empty()
    }

    /// The NIC has looked after a VI whose owner had left.
    pub(super) fn call_deputy(&self) {
        let entries = self.entries();
        if let (Some(entry), Some(deputy)) = (entries.queue.front(), &entries.deputy) {
            let (entry, deputy) = (*entry, Arc::clone(deputy));
            drop(entries);
            let call = Box::new(move |_| deputy());
            self.nic.dispatcher.entry(self.id, call, entry);
        }
    }

    pub(super) fn end_life(&self) {
        let mut entries = self.entries();
        entries.destroyed = true;
        entries.queue.clear();
        // Dropped without the lock: they may own what comes back here when they go.
        let dropped = (std::mem::take(&mut entries.handlers), entries.deputy.take());
        drop(entries);
        drop(dropped);
        self.hot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.waiter.wake();
    }

    /// Looks at the hot VIs, and lets those cool that have been quiet for long.
    fn look(&self) {
        let Ok(mut hot) = self.hot.try_lock() else {
            return;
        };
        let crowded = hot.len() > ALWAYS_HOT;
        hot.retain_mut(|hot| {
            if hot.vi.poll() {
                hot.fruitless = 0;
                return true;
            }
            hot.fruitless += 1;
            if !crowded || hot.fruitless < FRUITLESS_MAX {
                return true;
            }
            let mut core = hot.vi.lock();
            hot.vi.arm_for_agent(&mut core);
            core.cooled |= core.armed;
            // Armed, it rings; without a link there is nothing to look at.
            !core.armed && core.link.is_some()
        });
    }

    /// Makes sure that a completion on any VI wakes a sleeper. Returns the entry, if one came.
    fn arm(&self) -> Option<CqEntry> {
        self.arm_vis();
        self.entries().queue.pop_front()
    }

    fn arm_vis(&self) {
        let readmitted = std::mem::take(&mut self.entries().readmitted);
        self.heat_all(readmitted);
        let hot: Vec<_> = {
            let hot = self.hot.lock().unwrap_or_else(PoisonError::into_inner);
            hot.iter().map(|hot| Arc::clone(&hot.vi)).collect()
        };
        for vi in hot {
            let mut core = vi.lock();
            vi.arm_for_agent(&mut core);
        }
    }

    fn heat_all(&self, vis: Vec<ViId>) {
        for vi in vis.into_iter().filter_map(|id| self.nic.vi(id)) {
            self.heat(&vi);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> Result<MutexGuard<'_, Entries>, Error> {
        self.nic.check()?;
        let entries = self.entries();
        if entries.destroyed {
            return Err(Error::InvalidParameter);
        }
        Ok(entries)
    }
}

impl<D: Device> CqOps for SoftCq<D> {
    fn id(&self) -> CqId {
        self.id
    }

    fn done(&self) -> Result<Option<CqEntry>, Error> {
        let mut entries = self.enter()?;
        let entry = entries.queue.pop_front();
        if entry.is_some() {
            return Ok(entry);
        }
        let readmitted = std::mem::take(&mut entries.readmitted);
        drop(entries);
        self.heat_all(readmitted);
        self.look();
        Ok(self.entries().queue.pop_front())
    }

    fn wait(&self, timeout: Timeout) -> Result<CqEntry, Error> {
        let deadline = self.nic.deadline(timeout);
        let mut spin = self.spinner.begin();
        loop {
            if let Some(entry) = self.done()? {
                spin.hit();
                return Ok(entry);
            }
            if timeout == Some(Duration::ZERO) {
                return Err(Error::Timeout);
            }
            if !spin.again() {
                break;
            }
        }
        let mut rung = Vec::new();
        loop {
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let entry = self.arm();
            if entry.is_none() {
                self.waiter.sleep(deadline, &mut rung);
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            for vi in rung.drain(..).filter_map(|id| self.nic.vi(id)) {
                vi.serve();
                self.heat(&vi);
            }
            let entry = match entry {
                // It is over for the others, too, and a wake-up wakes one.
                None => self.done().inspect_err(|_| self.waiter.wake())?,
                entry => entry,
            };
            if let Some(entry) = entry {
                spin.hit();
                // One wake-up may have stood for several entries.
                let more = !self.entries().queue.is_empty();
                if more && self.sleepers.load(Ordering::SeqCst) > 0 {
                    self.waiter.wake();
                }
                return Ok(entry);
            }
            if self.nic.expired(deadline) {
                return Err(Error::Timeout);
            }
        }
    }

    fn notify(&self, handler: CqHandler) -> Result<(), Error> {
        self.look();
        let mut entries = self.enter()?;
        match entries.queue.pop_front() {
            Some(entry) => {
                drop(entries);
                self.nic.dispatcher.entry(self.id, handler, entry);
            }
            None => {
                entries.handlers.push_back(handler);
                drop(entries);
                // Whoever asks to be called does not stay to poll.
                self.arm_vis();
            }
        }
        Ok(())
    }

    fn look_after(&self, deputy: Arc<dyn Fn() + Send + Sync>) {
        let before = self.entries().deputy.replace(deputy);
        drop(before);
    }

    fn resize(&self, capacity: u32) -> Result<(), Error> {
        let mut entries = self.enter()?;
        if capacity == 0 {
            return Err(Error::InvalidParameter);
        }
        let too_small = entries.queue.len() > capacity as usize;
        if too_small || capacity > self.nic.device.attributes().max_cq_entries {
            return Err(Error::Resource);
        }
        entries.capacity = capacity;
        Ok(())
    }

    fn destroy(&self) -> Result<(), Error> {
        let mut entries = self.enter()?;
        if entries.bound > 0 {
            return Err(Error::Resource);
        }
        // No VI is bound to it from here on.
        entries.destroyed = true;
        drop(entries);
        self.end_life();
        self.nic.forget_cq(self.id);
        self.nic.dispatcher.quiesce_cq(self.id);
        Ok(())
    }
}

/// So few VIs are looked at for ever: arming them would cost more.
const ALWAYS_HOT: usize = 4;
/// Fruitless looks after which a VI is left to its bell.
const FRUITLESS_MAX: u32 = 4096;
