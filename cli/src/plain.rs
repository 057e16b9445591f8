//! Ordinary sockets programs to measure with, on a hidden command of this one. They know nothing of sovia, and go through the C
//! library like any other, so that what is preloaded sees them.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::error::{Context, Result};

mod crowd;
mod epoll;
mod fetch;
mod orders;
mod passer;
mod pingpong;
mod short;
mod socket;
mod stream;

pub(crate) use orders::Order;
use socket::{Address, Listener, connect};

/// The hidden command that a plain program is started with.
pub(crate) const COMMAND: &str = "plain";

/// Servers say their address on the first line of standard output, and serve until killed. Clients carry out orders (`Order`)
/// that they read from standard input.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Program {
    /// Send back what comes, one connection after the other
    EchoServer(Server),
    /// Send back what comes, on all connections at once
    EchoEpollServer(Server),
    /// Messages there and back
    EchoClient { address: Address, size: usize },
    /// Messages there and back, sleeping in epoll_wait
    EchoEpollClient {
        address: Address,
        size: usize,
        /// Connections to make besides, and to use a little
        #[arg(default_value_t = 0)]
        idle: usize,
    },
    /// Messages there and back on many connections in turn
    CrowdClient {
        address: Address,
        size: usize,
        connections: usize,
    },
    /// Connect, messages there and back, close
    ShortClient {
        address: Address,
        size: usize,
        /// Messages of each connection
        #[arg(default_value_t = 1)]
        trips: usize,
    },
    /// Take a request, send so many bytes in one piece, close, one connection after the other
    FetchServer(Server),
    /// Connect, send a request, take what comes until the end
    FetchClient { address: Address, size: usize },
    /// Take what comes, and confirm each block
    SinkServer(Server),
    /// The same, on all connections at once
    SinkEpollServer(Server),
    /// Messages one way
    StreamClient { address: Address, size: usize },
    /// Messages one way, sleeping in epoll_wait
    StreamEpollClient { address: Address, size: usize },
    /// Compute for ever
    Hog,
    /// Compute for some milliseconds, sleep for some, and so on for ever
    Passer,
    /// Run a program that is asked to end when whoever started it does
    Until {
        /// The signal that asks it
        signal: i32,
        /// Who starts it
        parent: i32,
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<OsString>,
    },
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Server {
    /// Bytes to take before they are sent back, 0 for whatever comes; or to send
    #[arg(default_value_t = 0)]
    size: usize,
    /// A Unix stream socket in place of TCP
    #[arg(long)]
    unix: bool,
}

/// `sovia plain`.
pub(crate) fn main(program: &Program) -> Result<()> {
    // Whoever measures may be killed.
    let signal = match program {
        Program::Until { signal, .. } => Signal::from_named_raw(*signal),
        _ => Some(Signal::KILL),
    };
    set_parent_process_death_signal(signal).context("prctl")?;
    if !matches!(program, Program::Until { .. }) {
        raise_limit()?;
    }
    match program {
        Program::EchoServer(server) => pingpong::serve(&server.listen()?, server.size),
        Program::EchoEpollServer(server) => {
            epoll::serve(&server.listen()?, || epoll::Echo::new(server.size))
        }
        Program::SinkServer(server) => stream::serve(&server.listen()?),
        Program::SinkEpollServer(server) => epoll::serve(&server.listen()?, epoll::Sink::default),
        Program::EchoClient { address, size } => {
            orders::obey(&mut pingpong::Client::new(connect(address)?, *size))
        }
        Program::EchoEpollClient {
            address,
            size,
            idle,
        } => {
            let mut others = Vec::with_capacity(*idle);
            for _ in 0..*idle {
                let mut other = pingpong::Client::new(connect(address)?, *size);
                other.use_a_little()?;
                others.push(other);
            }
            orders::obey(&mut epoll::PingPong::new(connect(address)?, *size)?)
        }
        Program::CrowdClient {
            address,
            size,
            connections,
        } => orders::obey(&mut crowd::Client::new(address, *size, *connections)?),
        Program::ShortClient {
            address,
            size,
            trips,
        } => orders::obey(&mut short::Client::new(address.clone(), *size, *trips)),
        Program::FetchServer(server) => fetch::serve(&server.listen()?, server.size),
        Program::FetchClient { address, size } => {
            orders::obey(&mut fetch::Client::new(address.clone(), *size))
        }
        Program::StreamClient { address, size } => {
            orders::obey(&mut stream::Client::new(connect(address)?, *size))
        }
        Program::StreamEpollClient { address, size } => {
            orders::obey(&mut epoll::Stream::new(connect(address)?, *size)?)
        }
        Program::Hog => loop {
            std::hint::spin_loop();
        },
        Program::Passer => passer::come_and_go(),
        // Whoever is gone by now gives no signal any more.
        Program::Until { parent, .. } if Pid::as_raw(getppid()) != *parent => Ok(()),
        Program::Until { command, .. } => match command.split_first() {
            Some((name, arguments)) => {
                Err(Command::new(name).args(arguments).exec()).context("exec")
            }
            None => Ok(()),
        },
    }
}

impl Server {
    fn listen(&self) -> Result<Listener> {
        Listener::open(self.unix)
    }
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

/// Bytes that a server reads at once, at least.
const BUFFER: usize = 64 << 10;
