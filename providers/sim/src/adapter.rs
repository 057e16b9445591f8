//! A simulated NIC: the device behind the engine.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use via::provider::{Export, ViId};
use via::soft::{Ask, CqWaiter, Device, Established, Service};
use via::{
    Capabilities, Engine, Error, Integrity, NetAddress, NicAttributes, ReliabilitySet,
    ViAttributes, WaitOn,
};

use crate::connect::{Call, Offer};
use crate::core::Core;
use crate::endpoint::Endpoint;
use crate::event::HostNo;
use crate::state::{Nic, Sleepers};

/// An open NIC of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NicNo(u64);

/// A completion queue of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CqNo(u64);

/// A NIC of a simulated host.
///
/// [`via::soft::SoftNic::open`] makes an open NIC of it, with [`Tapped`](crate::Tapped) in between
/// if its frames are to be seen or tampered with.
pub struct Adapter {
    core: Arc<Core>,
    no: NicNo,
    host: HostNo,
    attributes: NicAttributes,
}

/// Sleeps on a completion queue.
pub struct CqBell {
    core: Arc<Core>,
    no: CqNo,
}

impl Adapter {
    pub(crate) fn new(core: &Arc<Core>, host: HostNo) -> Result<Self, Error> {
        let no = core.act(|state| {
            if state.medium.is_alive(host) != Some(true) || state.nics.len() >= NICS_MAX {
                return Err(Error::Resource);
            }
            let no = NicNo(state.number());
            state.nics.insert(no, Nic::default());
            Ok(no)
        })?;
        Ok(Self {
            core: Arc::clone(core),
            no,
            host,
            attributes: attributes(host, core.config.frame_max),
        })
    }
}

impl Device for Adapter {
    type Link = Endpoint;
    type Incoming = Call;
    type Pending = Offer;
    type CqWaiter = CqBell;

    fn attributes(&self) -> &NicAttributes {
        &self.attributes
    }

    fn capabilities(&self) -> Capabilities {
        let config = &self.core.config;
        Capabilities {
            engine: Engine::Software,
            // Into the frame, into the packet, and out of it.
            send_copies: 3,
            short_send_copies: 3,
            short_max: 0,
            rdma_write_copies: 3,
            rdma_write_copies_foreign: (3, 3),
            registration_pays: false,
            buffers_sends: true,
            buffer_bytes: config.window.saturating_mul(config.frame_max),
            flow_control: true,
            appendable: false,
            integrity: Integrity::Checksum,
            wait: WaitOn::VirtualTime,
            immediate_data: true,
            discovers: true,
        }
    }

    fn started(&self, service: Weak<dyn Service>) {
        self.core.act(|state| {
            if let Some(nic) = state.nics.get_mut(&self.no) {
                nic.service = Some(service);
            }
        });
    }

    fn stop(&self) {
        let last = self.core.act(|state| {
            state.deafen(self.no);
            state.nics.remove(&self.no).is_some() && state.nics.is_empty()
        });
        if last {
            self.core.stop_agent();
        }
    }

    fn stirred(&self, _vi: ViId) {
        // News for an end that is not armed leads to a look at its VI anyway.
    }

    fn now(&self) -> Instant {
        self.core.now()
    }

    /// Every host is one hop from every other.
    fn discover(&self, hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        let others = |state: &mut crate::state::State| state.medium.others(self.host);
        let others = if hops == 0 {
            Vec::new()
        } else {
            self.core.act(others)
        };
        let hosts = std::iter::once(self.host).chain(others);
        Ok(hosts.map(HostNo::address).collect())
    }

    fn request(&self, ask: &Ask) -> Result<Offer, Error> {
        let no = self.core.act(|state| state.request(self.host, ask));
        Ok(Offer::new(&self.core, no))
    }

    fn peer_request(&self, ask: &Ask) -> Result<Offer, Error> {
        let no = self.core.act(|state| state.offer(self.host, ask));
        Ok(Offer::new(&self.core, no))
    }

    fn listen(
        &self,
        local: &NetAddress,
        deadline: Option<Instant>,
        // The end of the NIC is an event like others here.
        _is_over: &dyn Fn() -> bool,
    ) -> Result<Call, Error> {
        if local.host != self.host.address() {
            return Err(Error::InvalidParameter);
        }
        Call::listen(&self.core, self.no, self.host, local, deadline)
    }

    fn export(&self, attributes: &ViAttributes) -> Result<(Endpoint, Export), Error> {
        let (key, cookie) = self.core.act(|state| state.export(self.host, attributes));
        let mut blob = BLOB_MAGIC.to_vec();
        blob.extend(key.conn.to_le_bytes());
        blob.extend(cookie.to_le_bytes());
        let fds = Vec::new();
        Ok((Endpoint::new(&self.core, key), Export { blob, fds }))
    }

    fn import(
        &self,
        attributes: &ViAttributes,
        blob: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Established<Endpoint>, Error> {
        let parsed = parse_blob(blob).filter(|_| fds.is_empty());
        let (conn, cookie) = parsed.ok_or(Error::InvalidParameter)?;
        let (key, remote) = self
            .core
            .act(|state| state.import(self.host, attributes, conn, cookie))?;
        let link = Endpoint::new(&self.core, key);
        Ok(Established { link, remote })
    }

    fn cq_waiter(&self) -> io::Result<CqBell> {
        let no = self.core.act(|state| {
            let no = CqNo(state.number());
            state.cqs.insert(no, Sleepers::default());
            no
        });
        Ok(CqBell {
            core: Arc::clone(&self.core),
            no,
        })
    }

    fn attach(
        &self,
        vi: ViId,
        _connection: u32,
        link: &Endpoint,
        cq: Option<&CqBell>,
    ) -> Result<(), Error> {
        let key = link.key();
        self.core.act(|state| {
            let end = state.end(key).ok_or(Error::InvalidState)?;
            end.owner.vi = Some((self.no, vi));
            end.owner.cq = cq.map(|cq| cq.no);
            if end.is_ready() {
                state.ring(key);
            }
            Ok(())
        })
    }

    fn detach(&self, _vi: ViId, link: &Endpoint, _cq: Option<&CqBell>) {
        self.core.act(|state| {
            if let Some(end) = state.end(link.key()) {
                end.owner = crate::conn::Owner::default();
            }
        });
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if !self.core.is_inherited() {
            self.stop();
        }
    }
}

impl CqWaiter for CqBell {
    fn sleep(&self, deadline: Option<Instant>, rung: &mut Vec<ViId>) {
        let me = thread::current().id();
        self.core.act(|state| {
            if let Some(sleepers) = state.cqs.get_mut(&self.no) {
                sleepers.asleep += 1;
            }
        });
        // Late or not, whoever rang is told.
        let _woken_or_late = self.core.wait(deadline, |state| {
            let sleepers = state.cqs.get_mut(&self.no)?;
            (sleepers.is_woken(me) || !sleepers.rung.is_empty()).then_some(())
        });
        self.core.act(|state| {
            if let Some(sleepers) = state.cqs.get_mut(&self.no) {
                sleepers.asleep -= 1;
                rung.append(&mut sleepers.rung);
            }
        });
    }

    fn wake(&self) {
        self.core.act(|state| {
            if let Some(sleepers) = state.cqs.get_mut(&self.no) {
                sleepers.wake();
                state.gate.stir();
            }
        });
    }
}

impl Drop for CqBell {
    fn drop(&mut self) {
        if !self.core.is_inherited() {
            self.core.act(|state| state.cqs.remove(&self.no));
        }
    }
}

fn attributes(host: HostNo, frame_max: u32) -> NicAttributes {
    NicAttributes {
        name: crate::NAME.into(),
        hardware_version: 0,
        provider_version: 1,
        local_address: host.address(),
        thread_safe: true,
        max_discriminator_len: via::DISCRIMINATOR_MAX as u16,
        max_register_bytes: 4 << 30,
        max_register_regions: 4096,
        max_register_block_bytes: 1 << 30,
        max_vi: 1024,
        max_descriptors_per_queue: 1024,
        max_segments_per_desc: 252,
        max_cq: 256,
        max_cq_entries: 65536,
        max_transfer_size: 1 << 20,
        native_mtu: frame_max,
        max_ptags: 256,
        reliability: ReliabilitySet::ALL,
        rdma_read: ReliabilitySet::RELIABLE,
    }
}

fn parse_blob(blob: &[u8]) -> Option<(u64, u64)> {
    let rest = blob.strip_prefix(&BLOB_MAGIC)?;
    let (conn, rest) = rest.split_first_chunk()?;
    let cookie = rest.try_into().ok()?;
    Some((u64::from_le_bytes(*conn), u64::from_le_bytes(cookie)))
}

const BLOB_MAGIC: [u8; 4] = *b"sim\0";
/// Most NIC handles open on one fabric.
const NICS_MAX: usize = 256;
