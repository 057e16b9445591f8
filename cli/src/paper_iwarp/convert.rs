//! TCP connections that become extended sockets over iWARP.

use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use iwarp::{IwarpDriver, Role};
use sockets::extended::Socket;
use sys::errno::Errno;

use super::way::Way;
use crate::error::{Context, Error, Result};
use crate::netpipe::congestion;

/// Both ends call this.
pub(super) fn convert(tcp: TcpStream, host: Ipv4Addr, way: Way) -> Result<Socket> {
    let config = iwarp::Config {
        address: SocketAddrV4::new(host, 0),
        congestion: congestion()?,
        crc: way.crc(),
        markers: way.markers(),
        ..iwarp::Config::default()
    };
    let driver = IwarpDriver::new(config).context("a port")?;
    let nic = crate::nic::start(&driver)?;
    let soon = Some(Instant::now() + PATIENCE);
    let socket = Socket::in_place(tcp.into(), &nic, |vi, tcp, opener| {
        let role = if opener {
            Role::Initiator
        } else {
            Role::Responder
        };
        iwarp::over(vi, tcp, role, &driver.config(), soon)
    });
    refused(socket, "converting the connection")
}

pub(super) fn refused<T>(result: std::result::Result<T, Errno>, what: &'static str) -> Result<T> {
    result.map_err(|errno| Error::System {
        what,
        source: errno.into(),
    })
}

/// How long the other end may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
