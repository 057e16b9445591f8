//! The NIC over TCP.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use iwarp::{Config, IwarpDriver};
use via::provider::Driver;

use super::{Host, Lab};

/// Two NIC handles of one process, over loopback; with a peer program, two processes.
#[derive(Debug)]
pub struct IwarpLab {
    driver: IwarpDriver,
    peer_program: PathBuf,
}

impl IwarpLab {
    /// `peer_program` is `conformance-peer`.
    ///
    /// # Panics
    /// When there is no port left.
    #[must_use]
    pub fn new(peer_program: &str) -> Self {
        let config = Config {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            ..Config::default()
        };
        Self {
            driver: IwarpDriver::new(config).expect("a port of loopback"),
            peer_program: peer_program.into(),
        }
    }
}

impl Lab for IwarpLab {
    fn driver(&self, _: Host) -> &dyn Driver {
        &self.driver
    }

    /// A group, to which TCP does not connect: the kernel says so at once, and sends nothing.
    fn nowhere(&self) -> [u8; 6] {
        iwarp::host(SocketAddrV4::new(Ipv4Addr::new(224, 0, 0, 1), 9))
    }

    fn peer_program(&self) -> Option<&Path> {
        Some(&self.peer_program)
    }

    fn peer_arguments(&self) -> Vec<OsString> {
        let address = self.driver.config().address.to_string();
        vec!["iwarp".into(), address.into()]
    }

    fn excused(&self, number: u16) -> Option<&'static str> {
        match number {
            161..=163 => Some("TCP repairs what the medium does, and has tests of its own"),
            208 => {
                Some("peers share no memory; garbage on the wire is the business of proto's tests")
            }
            209 => Some(
                "a peer has no frames to forge: hostile RDMAP is the business of proto's tests",
            ),
            _ => None,
        }
    }
}
