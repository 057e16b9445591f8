//! Finding, opening and connecting VI NICs.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use iwarp::IwarpDriver;

use rustix::rand::GetRandomFlags;
use via::provider::{Driver, OpenOptions};
use via::{ErrorCode, NetAddress, Nic, Vi};

use crate::error::{Context, Error, Result};
use crate::netpipe::congestion;
use crate::output::complain;

/// The NIC of commands that are told no other.
pub(crate) const DEFAULT: &str = "shm";

/// All NICs that this program has.
static DRIVERS: [&dyn Driver; 2] = [&shm::DRIVER, &iwarp::DRIVER];

/// Opens the NIC of that name.
pub(crate) fn open(name: &str) -> Result<Nic> {
    let driver = DRIVERS
        .iter()
        .find(|driver| driver.name() == name)
        .ok_or_else(|| {
            let names: Vec<_> = DRIVERS.iter().map(|driver| driver.name()).collect();
            Error::Misuse(format!(
                "no VI NIC is called {name:?}; there is: {}",
                names.join(", ")
            ))
        })?;
    start(*driver)
}

/// What two processes of ours talk over, on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Medium {
    Shm,
    /// With cubic, as TCP beside it.
    Iwarp {
        /// The address of this end.
        host: Ipv4Addr,
        crc: bool,
        markers: bool,
    },
}

impl Medium {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Iwarp { .. } => "iwarp",
        }
    }

    /// Opens the NIC; the first call decides how the `iwarp` of this process works. Who waits on it may be to sleep at once.
    pub(crate) fn open(self, sleeps_at_once: bool) -> Result<Nic> {
        let driver: &dyn Driver = match self {
            Self::Shm => &shm::DRIVER,
            Self::Iwarp { host, crc, markers } => at(
                host,
                iwarp::Config {
                    crc,
                    markers,
                    congestion: congestion()?,
                    ..iwarp::Config::default()
                },
            )?,
        };
        start_with(driver, sleeps_at_once)
    }
}

/// This process's NIC on loopback, at a port that nobody else has.
pub(crate) fn loopback(config: iwarp::Config) -> Result<&'static IwarpDriver> {
    at(Ipv4Addr::LOCALHOST, config)
}

fn at(host: Ipv4Addr, config: iwarp::Config) -> Result<&'static IwarpDriver> {
    static ONLY: OnceLock<IwarpDriver> = OnceLock::new();
    if let Some(driver) = ONLY.get() {
        return Ok(driver);
    }
    let address = SocketAddrV4::new(host, 0);
    let driver = IwarpDriver::new(iwarp::Config { address, ..config }).context("a port")?;
    Ok(ONLY.get_or_init(|| driver))
}

/// Opens all of them.
pub(crate) fn all() -> Result<Vec<Nic>> {
    DRIVERS.iter().map(|driver| start(*driver)).collect()
}

/// Opens a NIC, and has it say what nothing else would tell.
pub(crate) fn start(driver: &dyn Driver) -> Result<Nic> {
    start_with(driver, false)
}

fn start_with(driver: &dyn Driver, sleeps_at_once: bool) -> Result<Nic> {
    let options = OpenOptions {
        strict: true,
        sleeps_at_once,
    };
    let nic = Nic::open_with(driver, options).vi("VipOpenNic")?;
    // That a peer went away shows in what was posted; of the rest nothing else would tell.
    nic.on_error(|error| {
        if error.code != ErrorCode::ConnLost {
            complain(format_args!("{error:?}"));
        }
    })
    .vi("VipErrorCallback")?;
    Ok(nic)
}

/// A discriminator that nobody else has.
pub(crate) fn anonymous() -> Result<String> {
    let mut random = [0; via::DISCRIMINATOR_MAX / 2];
    rustix::rand::getrandom(&mut random, GetRandomFlags::empty()).context("getrandom")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Connects `vi` to whoever meets us at `address`: as the one who waits there, or as the one who asks.
pub(crate) fn connect(nic: &Nic, vi: &Vi, address: &NetAddress, waits: bool) -> Result<()> {
    if waits {
        let mut incoming = nic
            .connect_wait(address, Some(PATIENCE))
            .vi("VipConnectWait")?;
        return incoming.accept(vi).vi("VipConnectAccept");
    }
    let local = nic.address(&[]).vi("address")?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match vi.connect(&local, address, Some(PATIENCE)) {
            // The answer comes at once; the other side may still be on its way to the meeting.
            // tidy: sleep because nothing tells when it has come, and over TCP each question is a connection.
            Err(via::Error::NoMatch) if Instant::now() < deadline => std::thread::sleep(ASK_AGAIN),
            result => return result.map(drop).vi("VipConnectRequest"),
        }
    }
}

/// Names the VIPL call that failed.
pub(crate) trait ViContext<T> {
    fn vi(self, call: &'static str) -> Result<T>;
}

impl<T> ViContext<T> for std::result::Result<T, via::Error> {
    fn vi(self, call: &'static str) -> Result<T> {
        self.map_err(|source| Error::Vi { call, source })
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(10);
