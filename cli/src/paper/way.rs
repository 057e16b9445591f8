//! The ways of Figure 9: what carries the bytes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sockets::packet::{Adapter, Socket, Stream, Variant, Waiting};
use sys::errno::Errno;

use crate::error::{Context, Error, Result};
use crate::netpipe::pipe::Pipe;

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// kernel TCP
    Tcp,
    /// a VI itself
    Native,
    /// SOVIA with a handler thread
    Handler,
    /// SOVIA, one packet at a time
    Single,
    /// and a window of 32
    Flowctrl,
    /// and delayed acknowledgements
    Dacks,
    /// and small messages combined
    Combine,
    /// TCP's calls under libsovia.so
    Ring,
}

impl Way {
    pub(super) const ALL: [Self; 8] = [
        Self::Tcp,
        Self::Native,
        Self::Handler,
        Self::Single,
        Self::Flowctrl,
        Self::Dacks,
        Self::Combine,
        Self::Ring,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Native => "native VI",
            Self::Handler => "SOVIA_HANDLER",
            Self::Single => "SOVIA_SINGLE",
            Self::Flowctrl => "SOVIA_FLOWCTRL",
            Self::Dacks => "SOVIA_DACKS",
            Self::Combine => "SOVIA_COMBINE",
            Self::Ring => "ring",
        }
    }

    /// The command line's word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Native => "native",
            Self::Handler => "handler",
            Self::Single => "single",
            Self::Flowctrl => "flowctrl",
            Self::Dacks => "dacks",
            Self::Combine => "combine",
            Self::Ring => "ring",
        }
    }

    /// The version of SOVIA, if it is one.
    pub(super) fn variant(self) -> Option<Variant> {
        match self {
            Self::Tcp | Self::Native | Self::Ring => None,
            Self::Handler => Some(Variant::handler()),
            Self::Single => Some(Variant::single()),
            Self::Flowctrl => Some(Variant::flowctrl()),
            Self::Dacks => Some(Variant::dacks()),
            Self::Combine => Some(Variant::combine()),
        }
    }
}

/// A stream of SOVIA's packets.
pub(super) struct PacketPipe {
    _sockets: Vec<Socket>,
    stream: Arc<Stream>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// A socket that listens, and its port.
pub(super) fn listen(variant: Variant, waiting: Waiting) -> Result<(Socket, u16)> {
    let adapter = adapter(variant, waiting)?;
    let socket = Socket::new(&adapter);
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    refused(socket.bind(any), "bind")?;
    refused(socket.listen(1), "listen")?;
    let port = socket.local().port();
    Ok((socket, port))
}

impl PacketPipe {
    pub(super) fn accept(listener: Socket, bytes_max: usize) -> Result<Self> {
        let accepted = refused(listener.accept(|| true), "accept")?;
        Self::of(vec![accepted, listener], bytes_max)
    }

    pub(super) fn dial(
        variant: Variant,
        waiting: Waiting,
        port: u16,
        bytes_max: usize,
    ) -> Result<Self> {
        let socket = Socket::new(&adapter(variant, waiting)?);
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        refused(socket.connect(at, 0), "connect")?;
        Self::of(vec![socket], bytes_max)
    }

    fn of(sockets: Vec<Socket>, bytes_max: usize) -> Result<Self> {
        let first = sockets.first().map(|socket| socket.stream().cloned());
        let stream = refused(first.unwrap_or(Err(Errno::NOTCONN)), "connect")?;
        Ok(Self {
            _sockets: sockets,
            stream,
            outgoing: vec![1; bytes_max],
            incoming: vec![1; bytes_max],
        })
    }
}

impl PacketPipe {
    /// All of `bytes`.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        refused(self.stream.send(bytes, || true), "send").map(drop)
    }

    /// What there is; nothing at the end.
    pub(super) fn read(&self, room: &mut [u8]) -> Result<usize> {
        refused(self.stream.recv(room, || true), "recv")
    }
}

impl Drop for PacketPipe {
    /// What is held back for others leaves.
    fn drop(&mut self) {
        self.stream.close();
    }
}

impl Pipe for PacketPipe {
    #[inline]
    fn send(&mut self, len: usize) -> Result<()> {
        let bytes = self.outgoing.get(..len).unwrap_or_default();
        refused(self.stream.send(bytes, || true), "send").map(drop)
    }

    #[inline]
    fn recv(&mut self, len: usize) -> Result<()> {
        let mut got = 0;
        while got < len {
            let room = self.incoming.get_mut(got..len).unwrap_or_default();
            match refused(self.stream.recv(room, || true), "recv")? {
                0 => return Err(Error::Closed),
                n => got += n,
            }
        }
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        self.send(len)?;
        self.recv(len)
    }
}

fn adapter(variant: Variant, waiting: Waiting) -> Result<Arc<Adapter>> {
    let open = Adapter::open(&shm::DRIVER, variant.waiting(waiting), None);
    refused(open, "opening the NIC")
}

fn refused<T>(result: std::result::Result<T, Errno>, what: &'static str) -> Result<T> {
    result.map_err(std::io::Error::from).context(what)
}
