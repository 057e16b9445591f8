use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixListener, UnixStream};
use std::str::FromStr;

use crate::error::{Context, Result};
use crate::netpipe::set_congestion;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// A name in the abstract name space, so that no file is left.
    Unix(String),
}

impl FromStr for Address {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text.strip_prefix(UNIX) {
            Some(name) => Ok(Self::Unix(name.to_owned())),
            None => text.parse().map(Self::Tcp),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(name) => write!(f, "{UNIX}{name}"),
        }
    }
}

/// Connects; small messages leave at once.
pub(super) fn connect(address: &Address) -> Result<TcpStream> {
    match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).context("connect")?;
            set_congestion(&stream)?;
            stream.set_nodelay(true).context("TCP_NODELAY")?;
            Ok(stream)
        }
        Address::Unix(_) => unix_stream(address).context("connect"),
    }
}

/// The same for connections that live for one message: as a client has them, with nothing set.
pub(super) fn connect_briefly(address: &Address) -> io::Result<TcpStream> {
    match address {
        Address::Tcp(address) => TcpStream::connect(address),
        Address::Unix(_) => unix_stream(address),
    }
}

fn unix_stream(address: &Address) -> io::Result<TcpStream> {
    let Address::Unix(name) = address else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let address = unix::SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address).map(as_stream)
}

/// What the programs do with a stream is the same for both: `send`, `recv`, `O_NONBLOCK`.
fn as_stream(stream: UnixStream) -> TcpStream {
    TcpStream::from(OwnedFd::from(stream))
}

/// A socket that listens.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens, and says where on the first line of standard output.
    pub(super) fn open(unix: bool) -> Result<Self> {
        let (listener, address) = if unix {
            let name = format!("sovia-plain-{}", std::process::id());
            let address = unix::SocketAddr::from_abstract_name(&name).context("a name")?;
            let listener = UnixListener::bind_addr(&address).context("bind")?;
            (Self::Unix(listener), Address::Unix(name))
        } else {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind")?;
            // Those that are accepted inherit it.
            set_congestion(&listener)?;
            let address = listener.local_addr().context("getsockname")?;
            (Self::Tcp(listener), Address::Tcp(address))
        };
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{address}").context("standard output")?;
        stdout.flush().context("standard output")?;
        Ok(listener)
    }

    /// The next connection; small messages leave at once.
    pub(super) fn accept(&self) -> io::Result<TcpStream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(stream)
            }
            Self::Unix(listener) => listener.accept().map(|(stream, _)| as_stream(stream)),
        }
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.set_nonblocking(true),
            Self::Unix(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

const UNIX: &str = "unix:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["127.0.0.1:80", "[::1]:80", "unix:a-name"] {
            let address: Address = text.parse().expect("an address");
            assert_eq!(address.to_string(), text);
        }
        assert!("somewhere".parse::<Address>().is_err());
    }
}
