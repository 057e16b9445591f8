//! The NIC as the engine sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Instant;

use sys::mem::Memory;
use sys::sync::AtomicUsize;
use via::provider::{Driver, Export, NicOps, OpenOptions, ViId};
use via::soft::{Agent, Ask, CqBell, Device, Established, Service, SoftNic};
use via::window::Windows;
use via::{
    Capabilities, Error, MemHandle, NetAddress, NicAttributes, ReliabilitySet, ViAttributes,
};

use crate::agent::{Connection, ShmDuties};
use crate::connect::{Request, ShmIncoming};
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
        SoftNic::open(device()?, options)
    }

    fn windows(&self) -> Option<&'static dyn Windows> {
        Some(&WINDOWS)
    }
}

/// The NIC `shm` as the engine takes it, for who puts something in between; [`SoftNic::open`] makes an open NIC of it.
///
/// # Errors
/// [`Error::Resource`] if its agent cannot be started.
pub fn device() -> Result<impl Device, Error> {
    Ok(ShmDevice {
        agent: Agent::new(&DRIVER.open)?,
        attributes: attributes(),
    })
}

pub(crate) struct ShmDevice {
    attributes: NicAttributes,
    agent: Arc<Agent<ShmDuties>>,
}

impl Device for ShmDevice {
    type Link = ShmLink;
    type Incoming = ShmIncoming;
    type Pending = Request;
    type CqWaiter = CqBell<ShmDuties>;

    fn attributes(&self) -> &NicAttributes {
        &self.attributes
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            engine: via::Engine::Software,
            send_copies: 2,
            short_send_copies: 2,
            short_max: 0,
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
            discovers: true,
        }
    }

    fn started(&self, service: Weak<dyn Service>) {
        self.agent.set_service(service);
    }

    fn stop(&self) {
        self.agent.stop();
        self.agent.duties().offers.clear();
        self.agent.duties().lending.end();
        crate::listen::look_again();
    }

    fn stirred(&self, vi: ViId) {
        self.agent.stirred(vi);
    }

    fn now(&self) -> Instant {
        sys::time::now()
    }

    /// The host is all the network that there is.
    fn discover(&self, _hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        Ok(vec![self.attributes.local_address])
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
        peering::offer(&self.agent, ask).map(Request::Offer)
    }

    fn listen(
        &self,
        local: &NetAddress,
        deadline: Option<Instant>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<ShmIncoming, Error> {
        crate::listen::wait(local, deadline, is_over)
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

    fn cq_waiter(&self) -> io::Result<CqBell<ShmDuties>> {
        CqBell::new(&self.agent)
    }

    fn attach(
        &self,
        vi: ViId,
        connection: u32,
        link: &ShmLink,
        cq: Option<&CqBell<ShmDuties>>,
    ) -> Result<(), Error> {
        let connection = Connection {
            peer: Arc::clone(link.peer()),
            no: connection,
        };
        self.agent.attach(vi, connection, cq)
    }

    fn detach(&self, vi: ViId, _link: &ShmLink, _cq: Option<&CqBell<ShmDuties>>) {
        self.agent.detach(vi);
    }

    fn revoke(&self, handle: MemHandle, memory: &Memory) {
        let connections = || self.agent.connections().into_iter();
        let peers = || connections().map(|connection| connection.peer).collect();
        let service = self.agent.service();
        let lending = &self.agent.duties().lending;
        lending.revoke(peers, handle, memory, service.as_deref());
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
        max_register_block_bytes: REGION_MAX,
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
/// Bytes of a region, at most.
pub(crate) const REGION_MAX: u64 = 1 << 32;
