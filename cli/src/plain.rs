//! Ordinary sockets programs to measure with, on a hidden command of this one. They know nothing of sovia, and go through the C
//! library like any other, so that what is preloaded sees them.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};

use crate::error::{Context, Result};
use crate::netpipe::CONGESTION;

mod epoll;
mod orders;
mod pingpong;
mod short;
mod stream;

pub(crate) use orders::Order;

/// The hidden command that a plain program is started with.
pub(crate) const COMMAND: &str = "plain";

/// Servers say their address on the first line of standard output, and serve until killed. Clients carry out orders (`Order`)
/// that they read from standard input.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Program {
    /// Send back what comes, one connection after the other
    EchoServer,
    /// Send back what comes, on all connections at once
    EchoEpollServer,
    /// Messages there and back
    EchoClient { address: SocketAddr, size: usize },
    /// Messages there and back, sleeping in epoll_wait
    EchoEpollClient {
        address: SocketAddr,
        size: usize,
        /// Connections to make besides, and to use a little
        #[arg(default_value_t = 0)]
        idle: usize,
    },
    /// Connect, one message there and back, close
    ShortClient { address: SocketAddr, size: usize },
    /// Take what comes, and confirm each block
    SinkServer,
    /// Messages one way
    StreamClient { address: SocketAddr, size: usize },
    /// Compute for ever
    Hog,
}

/// `sovia plain`.
pub(crate) fn main(program: &Program) -> Result<()> {
    // Whoever measures may be killed.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("prctl")?;
    match *program {
        Program::EchoServer => pingpong::serve(&listen()?),
        Program::EchoEpollServer => {
            raise_limit()?;
            epoll::serve(&listen()?)
        }
        Program::EchoClient { address, size } => {
            orders::obey(&mut pingpong::Client::new(connect(address)?, size))
        }
        Program::EchoEpollClient {
            address,
            size,
            idle,
        } => {
            raise_limit()?;
            let mut others = Vec::with_capacity(idle);
            for _ in 0..idle {
                let mut other = pingpong::Client::new(connect(address)?, size);
                other.use_a_little()?;
                others.push(other);
            }
            orders::obey(&mut epoll::Client::new(connect(address)?, size)?)
        }
        Program::ShortClient { address, size } => {
            orders::obey(&mut short::Client::new(address, size))
        }
        Program::SinkServer => stream::serve(&listen()?),
        Program::StreamClient { address, size } => {
            orders::obey(&mut stream::Client::new(connect(address)?, size))
        }
        Program::Hog => loop {
            std::hint::spin_loop();
        },
    }
}

fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind")?;
    // Those that are accepted inherit it.
    setsockopt(&listener, TcpCongestion, &CONGESTION.into()).context("TCP_CONGESTION")?;
    let address = listener.local_addr().context("getsockname")?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{address}").context("standard output")?;
    stdout.flush().context("standard output")?;
    Ok(listener)
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let (stream, _) = listener.accept().context("accept")?;
    stream.set_nodelay(true).context("TCP_NODELAY")?;
    Ok(stream)
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).context("connect")?;
    setsockopt(&stream, TcpCongestion, &CONGESTION.into()).context("TCP_CONGESTION")?;
    stream.set_nodelay(true).context("TCP_NODELAY")?;
    Ok(stream)
}

/// As many descriptors as we may have, as servers do.
fn raise_limit() -> Result<()> {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).context("setrlimit")
}

/// Whether this error only says that the peer is no more.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
    )
}

/// Bytes that a server reads at once.
const BUFFER: usize = 64 << 10;
