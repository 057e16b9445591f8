//! Where a socket is, and its peer.

use std::net::{Ipv4Addr, SocketAddrV4};

use proto::packet::Wakeup;
use sys::errno::Errno;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use super::{Bound, Life, Socket};
use crate::packet::adapter::may_bind;

impl Socket {
    /// Gives it an address; port 0 takes a free one.
    ///
    /// # Errors
    /// `EINVAL` when it has one, `EADDRNOTAVAIL` for an address of another host, `EADDRINUSE` for another socket's port.
    pub fn bind(&self, address: SocketAddrV4) -> Result<(), Errno> {
        let mut life = self.lock();
        let Life::Fresh(None) = *life else {
            return Err(Errno::INVAL);
        };
        if !may_bind(*address.ip()) {
            return Err(Errno::ADDRNOTAVAIL);
        }
        *life = Life::Fresh(Some(self.claim(address)?));
        Ok(())
    }

    /// Takes a port: that one, or a free one.
    pub(super) fn claim(&self, address: SocketAddrV4) -> Result<Bound, Errno> {
        let mut tries = PORTS_TRIED;
        loop {
            let at = numbered(address);
            match self.adapter.claim(at.port()) {
                Err(Errno::ADDRINUSE) if address.port() == 0 && tries > 0 => tries -= 1,
                claim => return claim.map(|claim| Bound { at, claim }),
            }
        }
    }

    /// Its own address; 0.0.0.0:0 before it has one.
    pub fn local(&self) -> SocketAddrV4 {
        if let Some((local, _)) = self.names.get() {
            return *local;
        }
        match &*self.lock() {
            Life::Fresh(bound) | Life::Connecting(bound) => {
                bound.as_ref().map_or(ANYWHERE, |bound| bound.at)
            }
            Life::Listening(listener) => listener.local(),
            Life::Connected(bound, _) => bound.at,
        }
    }

    /// The peer's address: the one that was asked for, or the one that the asker says it has.
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn peer(&self) -> Result<SocketAddrV4, Errno> {
        if let Some((_, peer)) = self.names.get() {
            return peer.ok_or(Errno::NOTCONN);
        }
        let said = self.stream()?.peer();
        match (&*self.lock(), said) {
            (Life::Connected(_, Some(asked)), _) if asked.ip().is_unspecified() => {
                Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, asked.port()))
            }
            (Life::Connected(_, Some(asked)), _) => Ok(*asked),
            (_, Some(Wakeup { address, port, .. })) => Ok(SocketAddrV4::new(address.into(), port)),
            _ => Err(Errno::NOTCONN),
        }
    }
}

/// With a port: one of the dynamic ones, in turn, if it has none.
pub(super) fn numbered(address: SocketAddrV4) -> SocketAddrV4 {
    if address.port() != 0 {
        return address;
    }
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let start = std::process::id().wrapping_mul(611);
    let port = DYNAMIC + (start.wrapping_add(turn) % u32::from(u16::MAX - DYNAMIC as u16));
    SocketAddrV4::new(*address.ip(), port as u16)
}

pub(super) const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
/// The first of the dynamic ports (RFC 6335).
const DYNAMIC: u32 = 49152;
/// Others may have some of them.
pub(super) const PORTS_TRIED: usize = 16;
static TURN: AtomicU32 = AtomicU32::new(0);
