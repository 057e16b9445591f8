//! A VI, and who looks after it.

use std::collections::VecDeque;
use std::sync::Arc;

use sys::lock::{Guard, Lock};
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use sys::wait::Spinner;

use super::core::Core;
use super::cq::SoftCq;
use super::device::{Attention, Device};
use super::idle::IdleBell;
use super::link::{Link, Sleeper};
use super::nic::Shared;
use crate::provider::{DoneHandler, ViId};
use crate::{Error, Queue, ViAttributes};

/// A VI of a software NIC.
pub(super) struct SoftVi<D: Device> {
    pub(super) id: ViId,
    pub(super) nic: Arc<Shared<D>>,
    cqs: [Option<Arc<SoftCq<D>>>; 2],
    core: Lock<Core<D>>,
    pub(super) spinner: Spinner,
    /// Its owner has looked after it since the agent last asked.
    attended: AtomicBool,
    /// Counts connection requests, so that a cancelled one is told apart from its successor.
    pub(super) attempts: AtomicU32,
    /// Where threads sleep while there is no link.
    pub(super) idle: IdleBell<D>,
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
            cqs,
            core: Lock::new(Core::new(attributes)),
            spinner: Spinner::new(nic.spin_limits()),
            attended: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            idle: IdleBell::new(),
            nic,
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
    #[inline]
    pub(super) fn attend(&self, core: &mut Core<D>) {
        if !self.attended.load(Ordering::Relaxed) {
            self.attended.store(true, Ordering::Relaxed);
        }
        if core.armed {
            self.relieve_agent(core);
        }
    }

    #[cold]
    fn relieve_agent(&self, core: &mut Core<D>) {
        if std::mem::take(&mut core.cooled) {
            self.bound_cqs().for_each(|cq| cq.readmit(self.id));
        }
        if !self.is_awaited(core)
            && let Some(link) = &mut core.link
        {
            core.armed = false;
            // A caller that sleeps keeps its request: a bell has no other way to tell them apart.
            if core.sleepers == 0 {
                link.disarm();
            }
            self.nic.device.stirred(self.id);
        }
    }

    /// Whether somebody is to be called with the next completion, or sleeps on a completion queue: whatever is done here, that is done elsewhere.
    fn is_awaited(&self, core: &Core<D>) -> bool {
        core.notify.iter().any(|handlers| !handlers.is_empty())
            || self.bound_cqs().any(|cq| cq.is_awaited())
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
            if !core.armed
                && let Some(link) = &mut core.link
            {
                link.unwatch();
            }
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
}

impl<D: Device> SoftVi<D> {
    /// Ends the VI itself, whatever it still holds. Returns the handlers that are not called any more, to be dropped without the lock: one may
    /// own what calls this VI, or takes other locks, when it goes.
    #[must_use]
    pub(super) fn end_life(&self, core: &mut Core<D>) -> [VecDeque<DoneHandler>; 2] {
        core.destroyed = true;
        core.regions.clear();
        self.nic.registry.unuse_ptag(core.attributes.ptag);
        for cq in self.bound_cqs() {
            cq.unbind(self.id);
        }
        self.wake(core);
        std::mem::take(&mut core.notify)
    }
}

/// Takes back what a caller asked of the link's bell, unless somebody else still wants it.
pub(super) fn disarm<D: Device>(core: &mut Core<D>) {
    if core.sleepers == 0
        && !core.armed
        && let Some(link) = &mut core.link
    {
        link.disarm();
    }
}
