//! Opening the NIC.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};
use via::Error;
use via::provider::{Driver, NicOps, OpenOptions};
use via::soft::SoftNic;

use crate::address;
use crate::device::IwarpDevice;

/// Opens the NIC `iwarp`, at the address in the environment variable `SOVIA_IWARP`
/// (`192.0.2.1:7471`; either half may be missing), else that of this host and port 7471.
pub static DRIVER: IwarpDriver = IwarpDriver {
    config: OnceLock::new(),
    _reserved: None,
};

/// The port of a NIC that is told none.
pub const PORT: u16 = 7471;

/// How a NIC works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Where requests arrive, and what the NIC is known as.
    pub address: SocketAddrV4,
    /// Asks for checksums. Without them, they are made if the peer asks.
    pub crc: bool,
    /// Asks peers for markers. A receiver of an ordered stream gains nothing from them.
    pub markers: bool,
    /// Asks with MPA revision 2 (RFC 6581), and again with revision 1 if that is not understood; else
    /// with revision 1 at once, and answers none but that.
    pub enhanced: bool,
    /// Congestion control of its connections, as in `tcp_allowed_congestion_control`; else the host's.
    pub congestion: Option<&'static str>,
}

impl Default for Config {
    /// This host's address and [`PORT`]; checksums, no markers.
    fn default() -> Self {
        Self {
            address: SocketAddrV4::new(address::of_this_host(), PORT),
            crc: true,
            markers: false,
            enhanced: true,
            congestion: None,
        }
    }
}

/// The driver of the NIC `iwarp`.
#[derive(Debug)]
pub struct IwarpDriver {
    config: OnceLock<Config>,
    /// Keeps the port from everybody else who wants any port.
    _reserved: Option<OwnedFd>,
}

impl IwarpDriver {
    /// A driver of a NIC at an address of its own. Port 0 becomes one that nobody else has.
    ///
    /// # Errors
    /// The kernel's, when there is no such address here or no port.
    pub fn new(config: Config) -> io::Result<Self> {
        let mut config = config;
        let mut reserved = None;
        if config.address.port() == 0 {
            let socket = tcp_socket()?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, &config.address)?;
            config.address = SocketAddrV4::try_from(getsockname(&socket)?)?;
            reserved = Some(socket);
        }
        Ok(Self {
            config: OnceLock::from(config),
            _reserved: reserved,
        })
    }

    /// How its NICs work.
    pub fn config(&self) -> Config {
        *self.config.get_or_init(|| {
            let told = std::env::var(VARIABLE).unwrap_or_default();
            let config = Config::default();
            Config {
                address: parse(&told).unwrap_or(config.address),
                ..config
            }
        })
    }
}

impl Driver for IwarpDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error> {
        let device = IwarpDevice::new(self.config())?;
        SoftNic::open(device, options)
    }
}

/// A TCP socket that does not wait.
pub(crate) fn tcp_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// The same, with the congestion control that `config` wants. What a listening one accepts inherits it.
pub(crate) fn tcp_socket_of(config: &Config) -> io::Result<OwnedFd> {
    let tcp = tcp_socket()?;
    if let Some(name) = config.congestion {
        sockopt::set_tcp_congestion(&tcp, name)?;
    }
    Ok(tcp)
}

/// An address, with what is missing from it as by default.
fn parse(told: &str) -> Option<SocketAddrV4> {
    let whole = || told.parse().ok();
    let host = || {
        let ip: Ipv4Addr = told.parse().ok()?;
        Some(SocketAddrV4::new(ip, PORT))
    };
    let port = || {
        let port = told.strip_prefix(':')?.parse().ok()?;
        Some(SocketAddrV4::new(address::of_this_host(), port))
    };
    whole().or_else(host).or_else(port)
}

pub(crate) const NAME: &str = "iwarp";
/// Names the environment variable with the address of [`DRIVER`]'s NIC.
pub const VARIABLE: &str = "SOVIA_IWARP";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_address_is_enough() {
        let whole = parse("192.0.2.7:99").expect("an address");
        assert_eq!((*whole.ip(), whole.port()), ([192, 0, 2, 7].into(), 99));
        assert_eq!(parse("192.0.2.7").map(|a| a.port()), Some(PORT));
        assert_eq!(parse(":99").map(|a| a.port()), Some(99));
        assert_eq!(parse(""), None);
        assert_eq!(parse("host"), None);
    }
}
