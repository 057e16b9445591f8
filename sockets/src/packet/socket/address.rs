//! Where a socket is, and its peer.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use proto::packet::Wakeup;
use sys::errno::Errno;
use sys::socket::may_take_port;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};

use super::{Bound, Life, Socket};
use crate::packet::adapter::may_bind;
use crate::packet::listener::Listener;

impl Socket {
    /// Gives it an address; port 0 takes a free one.
    ///
    /// # Errors
    /// `EINVAL` when it has one, `EADDRNOTAVAIL` for an address of another host, `EADDRINUSE` for another socket's port, `EACCES` for one that is not for this user.
    pub fn bind(&self, address: SocketAddrV4) -> Result<(), Errno> {
        let mut life = self.lock();
        let Life::Fresh(None) = *life else {
            return Err(Errno::INVAL);
        };
        if !may_bind(*address.ip()) {
            return Err(Errno::ADDRNOTAVAIL);
        }
        if address.port() != 0 && !may_take_port(address.port()) {
            return Err(Errno::ACCESS);
        }
        *life = Life::Fresh(Some(self.claim(address)?));
        Ok(())
    }

    /// Takes a port: that one, or a free one.
    pub(super) fn claim(&self, address: SocketAddrV4) -> Result<Bound, Errno> {
        let mut tries = PORTS_TRIED;
        loop {
            let bound = Bound::numbered(address);
            match self.adapter.claim(bound.at.port()) {
                Err(Errno::ADDRINUSE) if address.port() == 0 && tries > 0 => tries -= 1,
                claim => return claim.map(|claim| Bound { claim, ..bound }),
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

impl Bound {
    /// Where a listener was.
    pub(super) fn of(listener: &Listener) -> Self {
        let claim = listener.claim();
        Self {
            claim,
            ..Self::numbered(listener.local())
        }
    }

    /// With a port: a dynamic one, in turn, that no other socket of this process has, if it has none.
    pub(super) fn numbered(address: SocketAddrV4) -> Self {
        let at = |port| SocketAddrV4::new(*address.ip(), port);
        if address.port() != 0 {
            return Self {
                at: address,
                claim: None,
                given: Given::take(address.port()).map(Arc::new),
            };
        }
        let start = std::process::id().wrapping_mul(611);
        let mut port = DYNAMIC;
        for _ in 0..DYNAMICS {
            let turn = TURN.fetch_add(1, Ordering::Relaxed);
            port = DYNAMIC + (start.wrapping_add(turn) % DYNAMICS) as u16;
            if let Some(given) = Given::take(port) {
                return Self {
                    at: at(port),
                    claim: None,
                    given: Some(Arc::new(given)),
                };
            }
        }
        // There are more connections than ports.
        Self {
            at: at(port),
            claim: None,
            given: None,
        }
    }
}

/// A port that no other socket of this process is given as long as somebody has this.
#[derive(Debug)]
pub(super) struct Given(u16);

impl Given {
    /// `None` where somebody has it, or it is never given.
    fn take(port: u16) -> Option<Self> {
        let (word, bit) = place(port)?;
        let was = word.fetch_or(bit, Ordering::Relaxed);
        // Made only where it is to be: its end frees the port.
        (was & bit == 0).then(|| Self(port))
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if let Some((word, bit)) = place(self.0) {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// Where it stands whether a dynamic port is given.
fn place(port: u16) -> Option<(&'static AtomicU64, u64)> {
    let at = usize::from(port.checked_sub(DYNAMIC)?);
    Some((GIVEN.get(at / 64)?, 1 << (at % 64)))
}

pub(super) const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
/// The first of the dynamic ports (RFC 6335).
const DYNAMIC: u16 = 49152;
const DYNAMICS: u32 = (u16::MAX - DYNAMIC) as u32;
/// Others may have some of them.
pub(super) const PORTS_TRIED: usize = 16;
static TURN: AtomicU32 = AtomicU32::new(0);
static GIVEN: [AtomicU64; 1 << 8] = [const { AtomicU64::new(0) }; 1 << 8];

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_to_one_at_a_time() {
        let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let first = Bound::numbered(here);
        let again = |bound: &Bound| bound.at == first.at;
        let turns = || (0..2 * DYNAMICS).map(|_| Bound::numbered(here));
        assert!(!turns().any(|bound| again(&bound)));
        let port = first.at;
        drop(first);
        assert!(turns().any(|bound| bound.at == port));
    }
}
