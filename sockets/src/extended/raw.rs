//! A socket while its ends have not met.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use sys::errno::Errno;
use sys::sync::{AtomicBool, Ordering};
use sys::wait::{Limits, Spinner};
use via::{Error, Nic, Ptag};

use super::core::Core;
use super::events::Events;
use super::inner::Inner;
use super::{NEXT, Socket};
use crate::conn::Origin;
use crate::stat::{Kind, Tally};

/// What a socket is before its VI is connected.
pub(super) struct Raw {
    id: u64,
    tag: Ptag,
    pub(super) core: Core,
    /// How the TCP connection came about, and its ends.
    origin: Origin,
    ends: Option<[SocketAddr; 2]>,
}

impl Raw {
    pub(super) fn new(nic: &Nic, tcp: BorrowedFd<'_>) -> Result<Self, Errno> {
        sys::fork::watch().map_err(|_| Errno::NOMEM)?;
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let tag = nic.create_ptag().map_err(errno_of)?;
        let core = Core::new(nic, &tag, id).map_err(errno_of)?;
        let ends = sys::tcp::addresses(tcp).ok();
        Ok(Self {
            id,
            tag,
            core,
            origin: match sys::tcp::is_opener(tcp) {
                Ok(true) => Origin::Connected,
                _ => Origin::Accepted,
            },
            ends: ends.map(|(local, peer)| [local, peer]),
        })
    }

    pub(super) fn into_socket(self, nic: &Nic, tcp: Option<OwnedFd>) -> Result<Socket, Errno> {
        let name = &nic.attributes().name;
        let tally = Tally::begin(Kind::Extended, name, self.origin, self.ends);
        let Self {
            id, tag, mut core, ..
        } = self;
        let face = core.double.duplicate(true);
        if let Ok(face) = &face {
            tally.set_number(face.as_raw_fd().cast_unsigned());
        }
        core.tally = tally;
        let socket = Socket {
            inner: Arc::new(Inner {
                id,
                home: sys::fork::generation(),
                cq: Arc::clone(core.cq().ops()),
                core: Mutex::new(core),
                nic: nic.clone(),
                tag,
                face: face.map_err(|_| Errno::MFILE)?,
                tcp,
                watched: AtomicBool::new(false),
                events: Events::default(),
                spinner: Spinner::new(Limits::MEMORY),
            }),
        };
        let deputy = Arc::downgrade(&socket.inner);
        socket.inner.cq.look_after(Arc::new(move || {
            if let Some(inner) = deputy.upgrade() {
                inner.stand_in(false);
            }
        }));
        socket.inner.locked()?.progress();
        Ok(socket)
    }
}

/// Whether a descriptor is of a TCP connection.
pub(super) fn check(tcp: BorrowedFd<'_>) -> Result<(), Errno> {
    if !sys::socket::is_tcp(tcp) {
        return Err(Errno::OPNOTSUPP);
    }
    if !sys::socket::is_connected(tcp) {
        return Err(Errno::NOTCONN);
    }
    Ok(())
}

/// What a VI NIC's error is to a sockets program.
pub(super) fn errno_of(error: Error) -> Errno {
    match error {
        Error::Timeout => Errno::TIMEDOUT,
        Error::Reject | Error::NoMatch => Errno::CONNREFUSED,
        Error::NotReachable => Errno::HOSTUNREACH,
        Error::Resource => Errno::NOMEM,
        Error::NotSupported | Error::InvalidRdmaRead => Errno::OPNOTSUPP,
        Error::InvalidState => Errno::NOTCONN,
        Error::InvalidReliabilityLevel | Error::InvalidMtu | Error::InvalidQos => Errno::PROTO,
        _ => Errno::INVAL,
    }
}
