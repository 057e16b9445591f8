use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::rand::GetRandomFlags;

use super::pipe::{Port, Shape};
use super::socket::Socket;
use super::tcp::knock;
use crate::error::{Context, Result};

/// Unix stream sockets, with the kernel's default buffers.
pub(crate) struct Unix {
    shape: Shape,
    name: String,
    /// None at the end that dials.
    listener: Option<UnixListener>,
}

impl Unix {
    fn connection(&self) -> Result<UnixStream> {
        match &self.listener {
            Some(listener) => Ok(listener.accept().context("accept")?.0),
            None => UnixStream::connect_addr(&abstract_address(&self.name)?).context("connect"),
        }
    }
}

impl Port for Unix {
    type Pipe = Socket;

    fn listen(shape: Shape) -> Result<Self> {
        // The kernel's auto-bind would do, but std does not offer it.
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, GetRandomFlags::empty()).context("getrandom")?;
        let name = format!("sovia-netpipe-{:016x}", u64::from_ne_bytes(random));
        let listener = UnixListener::bind_addr(&abstract_address(&name)?).context("bind")?;
        Ok(Self {
            shape,
            name,
            listener: Some(listener),
        })
    }

    fn dial(shape: Shape, address: &str) -> Result<Self> {
        Ok(Self {
            shape,
            name: address.to_owned(),
            listener: None,
        })
    }

    fn address(&self) -> String {
        self.name.clone()
    }

    fn open(&mut self) -> Result<Socket> {
        Ok(Socket::new(self.connection()?.into(), self.shape))
    }

    fn knock(&mut self) -> Result<()> {
        knock(self.connection()?, self.listener.is_none())
    }
}

fn abstract_address(name: &str) -> Result<SocketAddr> {
    SocketAddr::from_abstract_name(name).context("abstract address")
}
