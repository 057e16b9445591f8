//! The NIC as the engine sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use sys::mem::Memory;
use sys::sync::{AtomicUsize, Ordering};
use via::provider::{Driver, Export, NicOps, OpenOptions, ViId};
use via::soft::{Ask, Device, Established, Service, SoftNic};
use via::window::Windows;
use via::{
    Capabilities, Error, MemHandle, NetAddress, NicAttributes, ReliabilitySet, ViAttributes,
};

use crate::agent::Agent;
use crate::connect::{Request, ShmIncoming};
use crate::cq::ShmCqWaiter;
use crate::link::ShmLink;
use crate::window::WINDOWS;
use crate::{name, peering};

/// Opens the NIC `shm`.
pub static DRIVER: ShmDriver = ShmDriver {
    open: AtomicUsize::new(0),
};

/// The driver of the NIC `shm`.
#[derive(Debug)]
pub struct ShmDriver {
    /// NIC handles open in this process.
    open: AtomicUsize,
}

impl Driver for ShmDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error> {
        let place = Place::take(&DRIVER.open).ok_or(Error::Resource)?;
        let agent = Agent::new().map_err(|_| Error::Resource)?;
        let device = ShmDevice {
            attributes: attributes(),
            agent,
            place: Mutex::new(Some(place)),
        };
        SoftNic::open(device, options)
    }

    fn windows(&self) -> Option<&'static dyn Windows> {
        Some(&WINDOWS)
    }
}

/// One of the NIC handles that a process may have.
struct Place(&'static AtomicUsize);

impl Place {
    fn take(open: &'static AtomicUsize) -> Option<Self> {
        let place = Self(open);
        (open.fetch_add(1, Ordering::Relaxed) < HANDLES_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct ShmDevice {
    attributes: NicAttributes,
    agent: Agent,
    /// Given back when the NIC closes, whoever still holds on to its objects.
    place: Mutex<Option<Place>>,
}

impl Device for ShmDevice {
    type Link = ShmLink;
    type Incoming = ShmIncoming;
    type Pending = Request;
    type CqWaiter = ShmCqWaiter;

    fn attributes(&self) -> &NicAttributes {
        &self.attributes
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            engine: via::Engine::Software,
            send_copies: 2,
            rdma_write_copies: 1,
            rdma_write_copies_foreign: (1, 2),
            registration_pays: false,
            buffers_sends: true,
            buffer_bytes: crate::link::DATA_LEN as u32,
            flow_control: true,
            appendable: false,
            integrity: via::Integrity::Memory,
            wait: via::WaitOn::FutexAndFd,
            immediate_data: true,
        }
    }

    fn started(&self, service: Weak<dyn Service>) {
        self.agent.shared().set_service(service);
    }

    fn stop(&self) {
        self.agent.stop();
        self.place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    fn stirred(&self, vi: ViId) {
        self.agent.shared().stirred(vi);
    }

    fn now(&self) -> Instant {
        sys::time::now()
    }

    fn request(&self, ask: &Ask) -> Result<Request, Error> {
        if ask.remote.host != self.attributes.local_address {
            return Err(Error::NotReachable);
        }
        Request::to_waiter(ask)
    }

    fn peer_request(&self, ask: &Ask) -> Result<Request, Error> {
        if ask.remote.host != self.attributes.local_address {
            return Err(Error::NotReachable);
        }
        self.agent.start()?;
        peering::offer(self.agent.shared(), ask).map(Request::Offer)
    }

    fn listen(&self, local: &NetAddress, deadline: Option<Instant>) -> Result<ShmIncoming, Error> {
        crate::listen::wait(local, deadline)
    }

    fn export(&self, attributes: &ViAttributes) -> Result<(ShmLink, Export), Error> {
        crate::export::export(attributes)
    }

    fn import(
        &self,
        _attributes: &ViAttributes,
        blob: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Established<ShmLink>, Error> {
        crate::export::import(blob, fds)
    }

    fn cq_waiter(&self) -> io::Result<ShmCqWaiter> {
        self.agent.start().map_err(io::Error::other)?;
        ShmCqWaiter::new(self.agent.shared())
    }

    fn attach(
        &self,
        vi: ViId,
        connection: u32,
        link: &ShmLink,
        cq: Option<&ShmCqWaiter>,
    ) -> Result<(), Error> {
        self.agent.start()?;
        self.agent
            .shared()
            .attach(vi, connection, link.peer(), cq.map(ShmCqWaiter::bell))
            .map_err(|_| Error::Resource)
    }

    fn detach(&self, vi: ViId, link: &ShmLink, cq: Option<&ShmCqWaiter>) {
        self.agent
            .shared()
            .detach(vi, link.peer(), cq.map(ShmCqWaiter::bell));
    }

    fn revoke(&self, handle: MemHandle, memory: &Memory) {
        self.agent.shared().revoke(handle, memory);
    }
}

fn attributes() -> NicAttributes {
    NicAttributes {
        name: NAME.to_owned(),
        hardware_version: 0,
        provider_version: 1,
        local_address: name::host_address(),
        thread_safe: true,
        max_discriminator_len: via::DISCRIMINATOR_MAX as u16,
        max_register_bytes: 1 << 36,
        max_register_regions: 65536,
        max_register_block_bytes: 1 << 32,
        max_vi: 16384,
        max_descriptors_per_queue: 4096,
        max_segments_per_desc: 252,
        max_cq: 1024,
        max_cq_entries: 65536,
        max_transfer_size: 16 << 20,
        native_mtu: crate::link::FRAME_MAX,
        max_ptags: 4096,
        reliability: ReliabilitySet::ALL,
        rdma_read: ReliabilitySet::RELIABLE,
    }
}

const NAME: &str = "shm";
const HANDLES_MAX: usize = 64;
