//! `sovia vi rping`: librdmacm's `rping`, over the iWARP NIC and so against any iWARP peer's.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use iwarp::IwarpDriver;
use via::Nic;

use crate::error::{Context, Error, Result};
use crate::nic::{self, ViContext};
use crate::output::complain;
use end::{Buffers, End};

mod client;
mod end;
mod server;

/// The rping of librdmacm, over iWARP: RDMA Reads and Writes, there and back
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true,
          group = clap::ArgGroup::new("role").args(["server", "client"]).required(true).multiple(true))]
pub(crate) struct Options {
    /// Serve one client, then end
    #[arg(short, long, overrides_with = "client")]
    server: bool,
    /// Ping a server
    #[arg(short, long, overrides_with = "server", requires = "address")]
    client: bool,
    /// The server's host; for a server, where to wait [default: everywhere]
    #[arg(short, long, value_name = "HOST")]
    address: Option<String>,
    /// The server's port
    #[arg(short, long, value_name = "PORT", default_value_t = 7174)]
    port: u16,
    /// Pings; 0 is without end
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    count: u32,
    /// Bytes a ping
    #[arg(short = 'S', long, value_name = "BYTES", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(i64::from(SIZE_MIN)..=i64::from(SIZE_MAX)))]
    size: u32,
    /// Print what was pinged
    #[arg(short, long)]
    verbose: bool,
    /// Compare what comes back with what was sent
    #[arg(short = 'V', long)]
    validate: bool,
    /// Serve one client after the other, and many at once, until killed
    #[arg(short = 'P', long)]
    persistent: bool,
    /// Ask for no checksums; they are made if the peer asks
    #[arg(long)]
    no_crc: bool,
    /// Ask for markers
    #[arg(long)]
    markers: bool,
    /// MPA's revision to ask with
    #[arg(long, value_name = "1|2", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    mpa: u8,
}

const EXAMPLES: &str = "\
Of an option that is given twice the last one counts. The exit status is librdmacm's: 0 when all pings came back, or the other end took \
its leave, even if pings are missing (a line on standard error says so); 255 when something went wrong; 22 for a wrong command line.

Examples:
  sovia vi rping -s -P                          (here)
  rping -c -a HERE -C 10 -v -V                  (at a host with an RDMA adapter, or Linux siw)
  sovia vi rping -c -a THERE -C 10 -S 4096 -v -V";

/// `sovia vi rping`.
pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    match run(options) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.is_enough() => Err(error),
        Err(error) => {
            complain(&error);
            Ok(ExitCode::from(match error {
                Error::Misuse(_) => STATUS_MISUSE,
                _ => STATUS_FAILED,
            }))
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let everywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, options.port);
    let address = match &options.address {
        Some(host) => resolve(host, options.port)?,
        None => everywhere,
    };
    let local = if options.client {
        SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)
    } else {
        address
    };
    let driver = IwarpDriver::new(iwarp::Config {
        address: local,
        crc: !options.no_crc,
        markers: options.markers,
        enhanced: options.mpa == 2,
        ..iwarp::Config::default()
    })
    .context("a port")?;
    let nic = nic::start(&driver)?;
    if options.client {
        let end = End::new(&nic, Buffers::Client, options.size)?;
        return match client::run(&nic, &end, address, options) {
            // As librdmacm has it, that is no failure.
            Err(error @ Error::Closed) => {
                complain(error);
                Ok(())
            }
            pinged => pinged,
        };
    }
    if options.persistent {
        return serve_all(&nic, options.verbose);
    }
    serve(&accept(&nic)?, options.verbose)
}

/// Waits for a client.
fn accept(nic: &Nic) -> Result<End> {
    let address = nic.address(&[]).vi("address")?;
    loop {
        let end = End::new(nic, Buffers::Server, SIZE_MAX)?;
        let mut incoming = nic.connect_wait(&address, None).vi("VipConnectWait")?;
        match incoming.accept(&end.vi) {
            Ok(()) => return Ok(end),
            // It has given up already.
            Err(via::Error::Timeout) => {}
            // What one client asks for is nothing to the next.
            Err(source) => complain(Error::Vi {
                call: "VipConnectAccept",
                source,
            }),
        }
    }
}

fn serve_all(nic: &Nic, verbose: bool) -> Result<()> {
    let mut was_accepted = false;
    loop {
        let served = accept(nic).and_then(|end| {
            was_accepted = true;
            let serving = thread::Builder::new().spawn(move || {
                if let Err(error) = serve(&end, verbose) {
                    complain(error);
                }
            });
            serving.map(drop).context("a thread")
        });
        match served {
            // What clients use up they give back when they go.
            Err(error) if was_accepted => {
                complain(error);
                // tidy: sleep because nothing tells when there is a descriptor, memory or a thread again.
                thread::sleep(REST);
            }
            served => served?,
        }
    }
}

/// Serves a client until it goes; that it does is no failure.
fn serve(end: &End, verbose: bool) -> Result<()> {
    loop {
        match server::answer(end, verbose) {
            Err(Error::Closed) => return Ok(()),
            answered => answered?,
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddrV4> {
    let addresses = (host, port).to_socket_addrs();
    let mut addresses = addresses.map_err(|error| Error::Misuse(format!("{host}: {error}")))?;
    let found = addresses.find_map(|address| match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    });
    found.ok_or_else(|| Error::Misuse(format!("{host} has no IPv4 address")))
}

/// What `rping` makes of a wrong command line: EINVAL.
pub(crate) const STATUS_MISUSE: u8 = 22;
/// And of all else that ends it: what remains of -1.
const STATUS_FAILED: u8 = 255;
/// How long a server that can take no client now leaves it at that.
const REST: Duration = Duration::from_millis(100);
/// Room for the text at the beginning of a ping.
const SIZE_MIN: u32 = 26;
const SIZE_MAX: u32 = (64 << 10) - 1;
