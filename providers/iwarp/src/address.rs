//! Addresses: the host part of a VIPL address is an IPv4 address and a TCP port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use via::Discriminator;
use via::NetAddress;

/// The host part that stands for `address`: four octets and the port, as on the wire.
///
/// ```
/// let host = iwarp::host(std::net::SocketAddrV4::new([192, 0, 2, 1].into(), 7471));
/// assert_eq!(host, [192, 0, 2, 1, 0x1d, 0x2f]);
/// ```
#[must_use]
pub fn host(address: SocketAddrV4) -> [u8; 6] {
    let [a, b, c, d] = address.ip().octets();
    let [high, low] = address.port().to_be_bytes();
    [a, b, c, d, high, low]
}

/// The address that a host part stands for.
#[must_use]
pub fn socket_address(host: [u8; 6]) -> SocketAddrV4 {
    let [a, b, c, d, high, low] = host;
    SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))
}

/// The address of someone who told none: that of his end of the connection.
pub(crate) fn of_stranger(address: SocketAddrV4) -> NetAddress {
    NetAddress {
        host: host(address),
        discriminator: Discriminator::default(),
    }
}

/// The address that this host is known by elsewhere: that of its way out. Nothing is sent.
pub(crate) fn of_this_host() -> Ipv4Addr {
    let way_out = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((OUTSIDE, 9)).ok()?;
        match socket.local_addr().ok()? {
            SocketAddr::V4(address) => Some(*address.ip()),
            SocketAddr::V6(_) => None,
        }
    };
    way_out()
        .filter(|ip| !IpAddr::from(*ip).is_unspecified())
        .unwrap_or(Ipv4Addr::LOCALHOST)
}

/// Of a network for documentation, where nobody is (RFC 5737).
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
