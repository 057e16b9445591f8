//! The NIC as the engine sees it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Instant;

use sys::sync::AtomicUsize;
use via::provider::{Export, ViId};
use via::soft::{Agent, Ask, CqBell, Device, Established, Service};
use via::{Capabilities, Error, NetAddress, NicAttributes, ReliabilitySet, ViAttributes};

use crate::departures::Departures;
use crate::dial::Client;
use crate::door::{self, IwarpIncoming};
use crate::driver::{Config, NAME};
use crate::link::IwarpLink;
use crate::peering::{Offer, Request};
use crate::stream::INLINE_MAX;
use crate::{address, over};

pub(crate) struct IwarpDevice {
    attributes: NicAttributes,
    config: Config,
    agent: Arc<Agent<Departures>>,
}

impl IwarpDevice {
    pub(crate) fn new(config: Config) -> Result<Self, Error> {
        Ok(Self {
            agent: Agent::new(&OPEN)?,
            attributes: attributes(&config),
            config,
        })
    }
}

impl Device for IwarpDevice {
    type Link = IwarpLink;
    type Incoming = IwarpIncoming;
    type Pending = Request;
    type CqWaiter = CqBell<Departures>;

    fn attributes(&self) -> &NicAttributes {
        &self.attributes
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(&self.config)
    }

    fn started(&self, service: Weak<dyn Service>) {
        self.agent.set_service(service);
    }

    fn stop(&self) {
        self.agent.stop();
        door::look_again();
    }

    fn stirred(&self, vi: ViId) {
        self.agent.stirred(vi);
    }

    fn now(&self) -> Instant {
        sys::time::now()
    }

    /// STags are handles, and the wire has nothing else by which a peer names a region.
    fn handle_seed(&self) -> u32 {
        RandomState::new().build_hasher().finish() as u32
    }

    fn request(&self, ask: &Ask) -> Result<Request, Error> {
        let client = Client::new(ask, false, &self.config, &self.agent)?;
        Ok(Request::Client(Box::new(client)))
    }

    fn peer_request(&self, ask: &Ask) -> Result<Request, Error> {
        Offer::new(ask, &self.config, &self.agent).map(Request::Offer)
    }

    fn is_local(&self, host: [u8; 6]) -> bool {
        // Any port of ours: each is a place to wait at.
        let told = address::socket_address(host);
        told.ip() == self.config.address.ip() && told.port() != 0
    }

    fn listen(
        &self,
        local: &NetAddress,
        deadline: Option<Instant>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<IwarpIncoming, Error> {
        door::wait(local, &self.config, &self.agent, deadline, is_over)
    }

    fn export(&self, attributes: &ViAttributes) -> Result<(IwarpLink, Export), Error> {
        over::export(attributes, &self.config, &self.agent)
    }

    fn import(
        &self,
        attributes: &ViAttributes,
        blob: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Established<IwarpLink>, Error> {
        over::import(attributes, blob, fds, &self.agent)
    }

    fn cq_waiter(&self) -> io::Result<CqBell<Departures>> {
        CqBell::new(&self.agent)
    }

    fn attach(
        &self,
        vi: ViId,
        _connection: u32,
        link: &IwarpLink,
        cq: Option<&CqBell<Departures>>,
    ) -> Result<(), Error> {
        self.agent.attach(vi, Arc::clone(link.wire()), cq)
    }

    fn detach(&self, vi: ViId, _link: &IwarpLink, _cq: Option<&CqBell<Departures>>) {
        self.agent.detach(vi);
    }
}

fn attributes(config: &Config) -> NicAttributes {
    NicAttributes {
        name: NAME.to_owned(),
        hardware_version: 0,
        provider_version: 1,
        local_address: address::host(config.address),
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
        native_mtu: u32::from(proto::mpa::ULPDU_LEN_MAX),
        max_ptags: 4096,
        reliability: ReliabilitySet::ALL,
        rdma_read: ReliabilitySet::RELIABLE,
    }
}

fn capabilities(config: &Config) -> Capabilities {
    // Markers are put in and taken out by copying; a peer's writes are verified in a buffer before they are placed.
    let writes = if config.markers {
        2
    } else {
        u8::from(config.crc)
    };
    Capabilities {
        engine: via::Engine::Software,
        send_copies: 2 * u8::from(config.markers),
        // Among the headers here, and there out of the space into which the socket is read.
        short_send_copies: 2,
        short_max: if config.markers { 0 } else { INLINE_MAX },
        rdma_write_copies: writes,
        rdma_write_copies_foreign: (writes, writes),
        registration_pays: false,
        buffers_sends: true,
        buffer_bytes: RECEIVE_BUFFER,
        flow_control: true,
        appendable: true,
        // A peer that asks for checksums gets them all the same; one that does not is not promised any.
        integrity: if config.crc {
            via::Integrity::Checksum
        } else {
            via::Integrity::Stream
        },
        wait: via::WaitOn::Fd,
        immediate_data: true,
        discovers: false,
    }
}

/// What the stream's own buffer holds, beside the kernel's.
const RECEIVE_BUFFER: u32 = 128 << 10;
/// NIC handles open in this process.
static OPEN: AtomicUsize = AtomicUsize::new(0);

#[cfg(test)]
mod tests {
    use via::Integrity;

    use super::*;

    #[test]
    fn capabilities_follow_what_was_asked_for() {
        let with = |crc, markers| {
            let has = capabilities(&Config {
                crc,
                markers,
                ..Config::default()
            });
            let sends = (has.send_copies, has.short_send_copies, has.short_max);
            (sends, has.rdma_write_copies, has.integrity)
        };
        let (plain, marked) = ((0, 2, INLINE_MAX), (2, 2, 0));
        assert_eq!(with(true, false), (plain, 1, Integrity::Checksum));
        assert_eq!(with(false, false), (plain, 0, Integrity::Stream));
        assert_eq!(with(true, true), (marked, 2, Integrity::Checksum));
        assert_eq!(with(false, true), (marked, 2, Integrity::Stream));
    }
}
