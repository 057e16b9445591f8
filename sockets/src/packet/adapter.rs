//! The NIC that all sockets of a process share.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use sys::argument::is_own_of_v6;
use sys::errno::Errno;
use via::provider::Driver;
use via::{Capabilities, Engine, Memory, NetAddress, Nic, Ptag, Reliability, ViConfig};

use super::cache::Cache;
use super::variant::{Large, Variant};

/// An open NIC, and how streams over it work.
pub struct Adapter {
    pub(super) tag: Ptag,
    pub(super) nic: Nic,
    pub(super) variant: Variant,
    pub(super) capabilities: Capabilities,
    /// The NIC copies what is sent in the sender's call, from any memory: nothing is staged.
    pub(super) copies: bool,
    /// Registrations of the program's own memory, if there is a way to them.
    pub(super) cache: Option<Cache>,
}

/// A port that nobody else can have as long as somebody has this.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    _name: Arc<sys::net::Listener>,
}

/// Makes memory of the program's reachable for the NIC: `Memory::borrowed`, by someone who may promise what it asks.
pub type Borrow = fn(addr: usize, len: usize) -> Option<Memory>;

impl Adapter {
    /// Opens the NIC. Without `borrow` everything is copied into buffers of ours.
    ///
    /// # Errors
    /// `ENETDOWN` when there is none, `ENOBUFS` without resources, `EPROTONOSUPPORT` when it lacks reliable delivery or immediate data.
    pub fn open(
        driver: &dyn Driver,
        variant: Variant,
        borrow: Option<Borrow>,
    ) -> Result<Arc<Self>, Errno> {
        let nic = Nic::open(driver).map_err(|_| Errno::NETDOWN)?;
        let capabilities = nic.capabilities();
        let levels = nic.attributes().reliability;
        if !levels.contains(Reliability::ReliableDelivery) || !capabilities.immediate_data {
            return Err(Errno::PROTONOSUPPORT);
        }
        // Whatever breaks shows in what was posted.
        nic.on_error(|_| {}).map_err(|_| Errno::NOBUFS)?;
        let tag = nic.create_ptag().map_err(|_| Errno::NOBUFS)?;
        let registers = match variant.large {
            Large::AsTheNicSays => capabilities.registration_pays,
            Large::Copied => false,
            Large::Registered => true,
        };
        let make = match capabilities.engine {
            Engine::Software => Cache::new,
            _ => Cache::for_hardware,
        };
        let cache = borrow.filter(|_| registers).map(make);
        let copies = capabilities.engine == Engine::Software
            && capabilities.buffers_sends
            && !capabilities.registration_pays;
        Ok(Arc::new(Self {
            tag,
            nic,
            variant,
            capabilities,
            copies,
            cache,
        }))
    }

    /// What the NIC does itself.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How streams work.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Whether it can no longer be used, as in a child of `fork`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.nic.ops().is_closed()
    }

    /// The program has unmapped this memory, or will: what is registered of it no longer is.
    pub fn forget(&self, addr: usize, len: usize) {
        if let Some(cache) = &self.cache {
            cache.forget(addr as u64, len as u64);
        }
    }

    /// Whether it goes to other hosts: one that works in this host's memory does not.
    pub(super) fn reaches_others(&self) -> bool {
        self.capabilities.integrity != via::Integrity::Memory
    }

    /// Bytes of the largest packet, and a VI for such.
    pub(super) fn config(&self) -> ViConfig<'_> {
        ViConfig::new(&self.tag).max_transfer_size(self.mtu())
    }

    pub(super) fn mtu(&self) -> u32 {
        let limit = self.nic.attributes().max_transfer_size;
        self.variant.settings.mtu.min(limit)
    }

    /// Where a listener at `port` waits.
    pub(super) fn listening_at(&self, port: u16) -> Result<NetAddress, Errno> {
        let [high, low] = port.to_be_bytes();
        let discriminator = [b'S', b'O', b'V', b'I', high, low];
        self.nic.address(&discriminator).map_err(|_| Errno::INVAL)
    }

    /// Takes the port for as long as the claim lives, or learns that somebody has it. A NIC of this host's memory lets many
    /// processes wait at one place; another's port is the kernel's to give.
    pub(super) fn claim(&self, port: u16) -> Result<Option<Claim>, Errno> {
        if self.reaches_others() {
            return Ok(None);
        }
        match sys::net::Listener::bind(format!("sovia-port/{port}").as_bytes(), 1) {
            Ok(claim) => Ok(Some(Claim {
                _name: Arc::new(claim),
            })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(Errno::ADDRINUSE),
            Err(error) => Err(error
                .raw_os_error()
                .map_or(Errno::NOBUFS, Errno::from_raw_os_error)),
        }
    }

    /// The address of ours that a connection with `peer` has, if none was chosen: as the kernel's routes have it.
    pub(super) fn facing(&self, peer: Ipv4Addr) -> Ipv4Addr {
        if peer.is_loopback() || peer.is_unspecified() {
            return Ipv4Addr::LOCALHOST;
        }
        if !self.reaches_others() || is_local(peer) {
            return peer;
        }
        way_to(peer).unwrap_or(Ipv4Addr::LOCALHOST)
    }

    /// The host that a request comes from: as the NIC knows it, and not as the asker says.
    pub(super) fn origin(&self, from: &NetAddress) -> Ipv4Addr {
        let host = from.host.first_chunk::<4>().copied();
        let host = host.filter(|_| self.reaches_others());
        host.map_or(Ipv4Addr::LOCALHOST, Ipv4Addr::from)
    }

    /// Whether `address` is another host's, which answers when it may.
    ///
    /// # Errors
    /// Of [`Adapter::reach`].
    pub(super) fn is_far(&self, address: SocketAddrV4) -> Result<bool, Errno> {
        self.reach(address)?;
        Ok(self.reaches_others() && !is_local(*address.ip()))
    }

    /// Where to find who listens at `address`.
    ///
    /// A NIC that reaches this host only is asked about this host only; another has the IPv4 address in its own.
    ///
    /// # Errors
    /// `ENETUNREACH`, and what else the kernel says of the way there.
    pub(super) fn reach(&self, address: SocketAddrV4) -> Result<NetAddress, Errno> {
        let mut to = self.listening_at(address.port())?;
        if is_local(*address.ip()) {
            return Ok(to);
        }
        if !self.reaches_others() {
            return Err(Errno::NETUNREACH);
        }
        way_to(*address.ip())?;
        if let Some(host) = to.host.first_chunk_mut::<4>() {
            *host = address.ip().octets();
        }
        Ok(to)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter")
            .field("nic", &self.nic)
            .field("variant", &self.variant)
            .finish_non_exhaustive()
    }
}

/// Whether a socket can be bound to the address, as the kernel has it: it may be that of a group, or another host's where it lets one (`ip_nonlocal_bind`).
pub(super) fn may_bind(ip: Ipv4Addr) -> bool {
    is_numbered(ip) || UdpSocket::bind((ip, 0)).is_ok()
}

/// Whether the address is one of this host's: a socket that is bound to it reaches itself there. What is sent from an address that is not this host's, or to all hosts, is refused.
pub(super) fn is_local(ip: Ipv4Addr) -> bool {
    let reached = || UdpSocket::bind((ip, 0)).and_then(|socket| socket.connect((ip, DISCARD)));
    is_numbered(ip) || (!ip.is_multicast() && reached().is_ok())
}

/// Whether it is this host's by what it is.
fn is_numbered(ip: Ipv4Addr) -> bool {
    ip.is_unspecified() || ip.is_loopback() || is_own_of_v6(ip)
}

/// The address of this host's that the kernel's routes have for a connection with `peer`. Nothing is sent.
///
/// # Errors
/// As TCP's `connect`: `ENETUNREACH` for groups and for all hosts, too.
fn way_to(peer: Ipv4Addr) -> Result<Ipv4Addr, Errno> {
    if peer.is_multicast() {
        return Err(Errno::NETUNREACH);
    }
    let way = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((peer, DISCARD))?;
        socket.local_addr()
    };
    match way() {
        Ok(SocketAddr::V4(address)) => Ok(*address.ip()),
        Ok(SocketAddr::V6(_)) => Err(Errno::NETUNREACH),
        // Only who asks for it may send to all.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Errno::NETUNREACH),
        Err(error) => Err(error
            .raw_os_error()
            .map_or(Errno::NETUNREACH, Errno::from_raw_os_error)),
    }
}

/// A port, where any would do (RFC 863).
const DISCARD: u16 = 9;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn groups_and_all_hosts_are_not_this_one() {
        let group = Ipv4Addr::new(224, 0, 0, 1);
        // As of TCP.
        assert!(may_bind(group));
        for ip in [group, Ipv4Addr::BROADCAST] {
            assert!(!is_local(ip), "{ip}");
            assert_eq!(way_to(ip), Err(Errno::NETUNREACH), "{ip}");
        }
        // Of a network for documentation (RFC 5737).
        let outside = Ipv4Addr::new(192, 0, 2, 1);
        assert!(!is_local(outside));
        if let Ok(ours) = way_to(outside) {
            assert!(is_local(ours), "{ours}");
            assert_eq!(way_to(ours), Ok(ours));
        }
        assert!(is_local(Ipv4Addr::LOCALHOST) && is_local(Ipv4Addr::UNSPECIFIED));
    }
}
