//! A NIC: what belongs to one handle.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sys::mem::Memory;
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use sys::wait::Limits;

use super::core::Attempt;
use super::cq::SoftCq;
use super::device::{Attention, Device, Pending, Service};
use super::dispatch::Dispatcher;
use super::link::{Goodbye, Link};
use super::memory::Registry;
use super::vi::SoftVi;
use crate::WaitOn;
use crate::provider::{
    ConnOps, CqId, CqOps, ErrorHandler, NicOps, OpenOptions, PtagId, Timeout, ViId, ViOps,
};
use crate::{
    Capabilities, Error, MemAttributes, MemHandle, NetAddress, NicAttributes, ViAttributes, ViState,
};

/// A NIC handle over a device without VI hardware.
pub struct SoftNic<D: Device> {
    shared: Arc<Shared<D>>,
}

/// What everything made under one NIC handle refers to.
pub(super) struct Shared<D: Device> {
    pub(super) device: D,
    pub(super) registry: Registry,
    pub(super) dispatcher: Dispatcher,
    pub(super) options: OpenOptions,
    fork_generation: u32,
    closed: AtomicBool,
    last_id: AtomicU32,
    objects: Mutex<Objects<D>>,
}

struct Objects<D: Device> {
    vis: HashMap<ViId, Arc<SoftVi<D>>>,
    cqs: HashMap<CqId, Arc<SoftCq<D>>>,
}

impl<D: Device> SoftNic<D> {
    /// Makes a NIC of a device.
    ///
    /// # Errors
    /// [`Error::Resource`] when the process cannot watch for forks.
    pub fn open(device: D, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error> {
        sys::fork::watch().map_err(|_| Error::Resource)?;
        let shared = Arc::new(Shared {
            registry: Registry::new(device.attributes(), options.strict),
            device,
            dispatcher: Dispatcher::default(),
            options,
            fork_generation: sys::fork::generation(),
            closed: AtomicBool::new(false),
            last_id: AtomicU32::new(0),
            objects: Mutex::new(Objects {
                vis: HashMap::new(),
                cqs: HashMap::new(),
            }),
        });
        let service = Arc::downgrade(&shared);
        shared.device.started(service);
        Ok(Arc::new(Self { shared }))
    }
}

impl<D: Device> Drop for SoftNic<D> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<D: Device> Shared<D> {
    /// Whether calls may still be made: not after closing, not in a forked child.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_over() {
            return Err(Error::InvalidParameter);
        }
        Ok(())
    }

    pub(super) fn is_over(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || self.is_forked()
    }

    pub(super) fn is_forked(&self) -> bool {
        sys::fork::generation() != self.fork_generation
    }

    /// How long to poll before sleeping; real time means nothing where time is virtual.
    pub(super) fn spin_limits(&self) -> Limits {
        match self.device.capabilities().wait {
            _ if self.options.sleeps_at_once => Limits::NONE,
            WaitOn::VirtualTime => Limits::NONE,
            WaitOn::FutexAndFd => Limits::MEMORY,
            WaitOn::Fd => Limits::SOCKET,
        }
    }

    pub(super) fn deadline(&self, timeout: Timeout) -> Option<Instant> {
        timeout.and_then(|timeout| self.device.now().checked_add(timeout))
    }

    pub(super) fn expired(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.device.now() >= deadline)
    }

    pub(super) fn vi(&self, id: ViId) -> Option<Arc<SoftVi<D>>> {
        self.objects().vis.get(&id).cloned()
    }

    pub(super) fn forget_vi(&self, id: ViId) {
        let vi = self.objects().vis.remove(&id);
        if let Some(vi) = vi {
            for cq in vi.bound_cqs() {
                cq.forget(id);
            }
        }
    }

    pub(super) fn forget_cq(&self, id: CqId) {
        self.objects().cqs.remove(&id);
    }

    pub(super) fn check_vi_attributes(&self, vi: &ViAttributes) -> Result<(), Error> {
        let nic = self.device.attributes();
        if !nic.reliability.contains(vi.reliability) {
            return Err(Error::InvalidReliabilityLevel);
        }
        if vi.max_transfer_size == 0 || vi.max_transfer_size > nic.max_transfer_size {
            return Err(Error::InvalidMtu);
        }
        if vi.qos != 0 {
            return Err(Error::InvalidQos);
        }
        if vi.enable_rdma_read && !nic.rdma_read.contains(vi.reliability) {
            return Err(Error::InvalidRdmaRead);
        }
        Ok(())
    }

    /// After this no VI uses what the registry held before.
    fn quiesce(&self) {
        let vis: Vec<_> = self.objects().vis.values().cloned().collect();
        for vi in vis {
            vi.quiesce();
        }
    }

    fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The objects, to add to. Closing takes out what is there, once: what came later would hold the NIC, and be held by it, for ever.
    fn open_objects(&self) -> Result<MutexGuard<'_, Objects<D>>, Error> {
        let objects = self.objects();
        self.check()?;
        Ok(objects)
    }

    fn objects(&self) -> MutexGuard<'_, Objects<D>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Device> NicOps for SoftNic<D> {
    fn attributes(&self) -> &NicAttributes {
        self.shared.device.attributes()
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.device.capabilities()
    }

    fn is_closed(&self) -> bool {
        self.shared.is_over()
    }

    fn is_strict(&self) -> bool {
        self.shared.options.strict
    }

    fn create_ptag(&self) -> Result<PtagId, Error> {
        self.shared.check()?;
        self.shared.registry.create_ptag()
    }

    fn destroy_ptag(&self, ptag: PtagId) -> Result<(), Error> {
        self.shared.check()?;
        self.shared.registry.destroy_ptag(ptag)
    }

    fn register_mem(
        &self,
        memory: Arc<Memory>,
        attributes: MemAttributes,
    ) -> Result<MemHandle, Error> {
        self.shared.check()?;
        let shared = &self.shared;
        let seed = || shared.device.handle_seed();
        shared.registry.register(memory, attributes, seed)
    }

    fn deregister_mem(&self, addr: u64, handle: MemHandle) -> Result<(), Error> {
        self.shared.check()?;
        let memory = self.shared.registry.deregister(addr, handle)?;
        self.shared.quiesce();
        self.shared.device.revoke(handle, &memory);
        Ok(())
    }

    fn set_mem_attributes(
        &self,
        addr: u64,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), Error> {
        self.shared.check()?;
        let memory = self
            .shared
            .registry
            .set_attributes(addr, handle, attributes)?;
        self.shared.quiesce();
        self.shared.device.revoke(handle, &memory);
        Ok(())
    }

    fn query_mem(&self, addr: u64, handle: MemHandle) -> Result<MemAttributes, Error> {
        self.shared.check()?;
        self.shared.registry.query(addr, handle)
    }

    fn create_vi(
        &self,
        attributes: ViAttributes,
        send_cq: Option<CqId>,
        recv_cq: Option<CqId>,
    ) -> Result<Arc<dyn ViOps>, Error> {
        self.shared.check()?;
        self.shared.check_vi_attributes(&attributes)?;
        let mut objects = self.shared.open_objects()?;
        let cq = |id: Option<CqId>| match id {
            None => Ok(None),
            Some(id) => match objects.cqs.get(&id) {
                Some(cq) => Ok(Some(Arc::clone(cq))),
                None => Err(Error::InvalidParameter),
            },
        };
        let cqs = [cq(send_cq)?, cq(recv_cq)?];
        if objects.vis.len() >= self.attributes().max_vi as usize {
            return Err(Error::Resource);
        }
        self.shared.registry.use_ptag(attributes.ptag)?;
        let id = ViId(self.shared.next_id());
        let vi = Arc::new(SoftVi::new(id, Arc::clone(&self.shared), attributes, cqs));
        for (bound, cq) in vi.bound_cqs().enumerate() {
            if let Err(error) = cq.bind() {
                vi.bound_cqs().take(bound).for_each(|cq| cq.unbind(id));
                self.shared.registry.unuse_ptag(attributes.ptag);
                return Err(error);
            }
        }
        objects.vis.insert(id, Arc::clone(&vi));
        Ok(vi)
    }

    fn create_cq(&self, entries: u32) -> Result<Arc<dyn CqOps>, Error> {
        self.shared.check()?;
        if entries == 0 {
            return Err(Error::InvalidParameter);
        }
        let mut objects = self.shared.open_objects()?;
        let nic = self.attributes();
        if entries > nic.max_cq_entries || objects.cqs.len() >= nic.max_cq as usize {
            return Err(Error::Resource);
        }
        let id = CqId(self.shared.next_id());
        let cq = Arc::new(SoftCq::new(id, Arc::clone(&self.shared), entries)?);
        objects.cqs.insert(id, Arc::clone(&cq));
        Ok(cq)
    }

    fn connect_wait(
        &self,
        local: &NetAddress,
        timeout: Timeout,
    ) -> Result<Box<dyn ConnOps>, Error> {
        super::connect::wait(&self.shared, local, timeout)
    }

    fn set_error_handler(&self, handler: Option<ErrorHandler>) -> Result<(), Error> {
        self.shared.check()?;
        self.shared.dispatcher.set_handler(handler)
    }

    fn import(&self, vi: &dyn ViOps, blob: &[u8], fds: Vec<OwnedFd>) -> Result<(), Error> {
        self.shared.check()?;
        super::connect::import(&self.shared, vi, blob, fds)
    }

    fn discover(&self, hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        self.shared.check()?;
        self.shared.device.discover(hops)
    }

    fn close(&self) {
        let shared = &self.shared;
        if shared.is_forked() || shared.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (vis, cqs) = {
            let mut objects = shared.objects();
            let vis: Vec<_> = objects.vis.drain().map(|(_, vi)| vi).collect();
            let cqs: Vec<_> = objects.cqs.drain().map(|(_, cq)| cq).collect();
            (vis, cqs)
        };
        for vi in vis {
            let mut core = vi.lock();
            if core.destroyed {
                // By its owner, who is about to say so.
                continue;
            }
            if let Attempt::Client {
                pending: Some(pending),
                ..
            }
            | Attempt::Peer { pending, .. } = &core.attempt
            {
                pending.cancel();
            }
            core.attempt = Attempt::None;
            vi.hurry(&mut core);
            if let Some(link) = &mut core.link {
                link.close(Goodbye::Disconnected);
            }
            core.state = ViState::Idle;
            vi.flush(&mut core, None);
            vi.unlink(&mut core);
            let cancelled = vi.end_life(&mut core);
            drop(core);
            drop(cancelled);
        }
        for cq in cqs {
            cq.end_life();
        }
        shared.registry.clear();
        shared.device.stop();
        shared.dispatcher.stop();
    }
}

impl<D: Device> Service for Shared<D> {
    fn serve(&self, id: ViId) -> Attention {
        let Some(vi) = self.vi(id) else {
            return Attention::Gone;
        };
        let attention = vi.serve();
        for cq in vi.bound_cqs() {
            cq.heat(&vi);
            cq.call_deputy();
        }
        attention
    }

    fn tend(&self, id: ViId) -> Attention {
        let Some(vi) = self.vi(id) else {
            return Attention::Gone;
        };
        let attention = vi.tend();
        if attention != Attention::Attended {
            vi.bound_cqs().for_each(|cq| cq.call_deputy());
        }
        attention
    }

    fn ended(&self, id: ViId, connection: u32, why: Goodbye) {
        if let Some(vi) = self.vi(id) {
            let mut core = vi.lock();
            if core.connection != connection {
                return;
            }
            vi.wind_up(&mut core, why);
        }
    }

    fn exposed(&self, id: ViId, handle: MemHandle) -> Option<(Arc<Memory>, bool)> {
        let vi = self.vi(id)?;
        let core = vi.lock();
        let region = self.registry.find(handle)?;
        let attributes = region.attributes;
        let whole = region
            .reach(region.memory.addr(), 1, core.attributes.ptag)
            .is_some();
        let write = core.attributes.enable_rdma_write && attributes.enable_rdma_write;
        let read = core.attributes.enable_rdma_read && attributes.enable_rdma_read;
        (core.link.is_some() && whole && write).then(|| (Arc::clone(&region.memory), read))
    }
}
