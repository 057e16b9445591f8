use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket, sockopt};

use super::pipe::{Port, Shape};
use super::socket::Socket;
use crate::error::{Context, Error, Result};

/// Kernel TCP over loopback, with TCP_NODELAY and [`CONGESTION`], where that is to be had.
pub(crate) struct Tcp {
    shape: Shape,
    address: SocketAddr,
    /// None at the end that dials.
    listener: Option<TcpListener>,
}

impl Tcp {
    fn connection(&self) -> Result<TcpStream> {
        let stream = match &self.listener {
            Some(listener) => listener.accept().context("accept")?.0,
            None => TcpStream::connect(self.address).context("connect")?,
        };
        stream.set_nodelay(true).context("TCP_NODELAY")?;
        set_congestion(&stream)?;
        Ok(stream)
    }
}

impl Port for Tcp {
    type Pipe = Socket;

    fn listen(shape: Shape) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind")?;
        set_congestion(&listener)?;
        Ok(Self {
            shape,
            address: listener.local_addr().context("getsockname")?,
            listener: Some(listener),
        })
    }

    fn dial(shape: Shape, address: &str) -> Result<Self> {
        let address = address.parse().map_err(|_| Error::Protocol {
            from: "the listening side",
            what: format!("TCP address {address:?}"),
        })?;
        Ok(Self {
            shape,
            address,
            listener: None,
        })
    }

    fn address(&self) -> String {
        self.address.to_string()
    }

    fn open(&mut self) -> Result<Socket> {
        Ok(Socket::new(self.connection()?.into(), self.shape))
    }

    fn knock(&mut self) -> Result<()> {
        knock(self.connection()?, self.listener.is_none())
    }
}

/// Closes a connection that carries nothing. The passive end closes first, so that no ephemeral port of ours stays in TIME_WAIT.
pub(super) fn knock(mut stream: impl Read, dialled: bool) -> Result<()> {
    if !dialled {
        return Ok(());
    }
    match stream.read(&mut [0]).context("read")? {
        0 => Ok(()),
        _ => Err(Error::Protocol {
            from: "the listening side",
            what: "a byte on a connection that carries none".into(),
        }),
    }
}

/// Has the connections of a socket use [`CONGESTION`], or what the host gives where that is not to be had.
pub(crate) fn set_congestion(socket: &impl AsFd) -> Result<()> {
    match sockopt::set_tcp_congestion(socket, CONGESTION) {
        Err(errno) if is_refusal(errno) => Ok(()),
        set => set.context("TCP_CONGESTION"),
    }
}

/// What our connections can be told to use: nothing where the host does not have [`CONGESTION`], or not for us.
pub(crate) fn congestion() -> Result<Option<&'static str>> {
    let tcp = socket(AddressFamily::INET, SocketType::STREAM, None).context("socket")?;
    match sockopt::set_tcp_congestion(&tcp, CONGESTION) {
        Ok(()) => Ok(Some(CONGESTION)),
        Err(errno) if is_refusal(errno) => Ok(None),
        Err(errno) => Err(errno).context("TCP_CONGESTION"),
    }
}

/// It is not in `tcp_allowed_congestion_control`, which is a matter of rights, or the kernel does not have it.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::NOENT)
}

/// Set explicitly: bbr, the default on some hosts, makes an idle loopback unsteady.
const CONGESTION: &str = "cubic";
