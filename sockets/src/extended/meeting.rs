//! How the ends of a connection within a host exchange the ends of a VI.
//!
//! They meet at an abstract name made of the connection's addresses, as connections that are upgraded do, and prove to each other by a witness that they hold this connection's ends.
//! Each says how many bytes it has put on TCP; unless the other has taken as many, neither goes on. Then the one that opened the connection exports its VI's other end.
//!
//! ```text
//!  both:    "sVIx" version:u32 written:u64      with the witness
//!  both:    yes or errno:u8
//!  opener:  blob                                with its descriptors
//!  other:   done or errno:u8
//! ```

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::passed::Passed;
use sys::rendezvous::{self, Arrival, Caller, FDS_MAX, Received};
use sys::tcp::{self, Identity};
use via::Vi;

use super::errno_of;
use crate::meet::proof;
use crate::reason::Reason;

/// Connects `vi` with that of the other end of `tcp`.
pub(super) fn meet(vi: &Vi, tcp: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<(), Errno> {
    let identity = tcp::identity(tcp)?;
    if !identity.is_local() {
        return Err(Errno::HOSTUNREACH);
    }
    if tcp::inq(tcp)? > 0 {
        return Err(Errno::BUSY);
    }
    let name = name(&identity);
    let mut refusal = Errno::TIMEDOUT;
    loop {
        let caller = match rendezvous::arrive(name.as_bytes(), BACKLOG)? {
            Arrival::First(place) => loop {
                if let Some(caller) = place.accept()? {
                    break Some(caller);
                }
                if sys::time::expired(deadline) {
                    return Err(refusal);
                }
                rest(tcp, deadline)?;
            },
            Arrival::Second(caller) => Some(caller),
            Arrival::Neither => None,
        };
        if let Some(caller) = caller {
            match talk(&caller, vi, &identity, tcp, deadline) {
                // Somebody else's end, or one that has given up: ours may still come.
                Err(Errno::ACCESS) => refusal = Errno::ACCESS,
                Err(Errno::PIPE) => refusal = Errno::TIMEDOUT,
                result => return result,
            }
        }
        if sys::time::expired(deadline) {
            return Err(refusal);
        }
        rest(tcp, deadline)?;
    }
}

fn talk(
    caller: &Caller,
    vi: &Vi,
    identity: &Identity,
    tcp: BorrowedFd<'_>,
    deadline: Option<Instant>,
) -> Result<(), Errno> {
    let witness = proof::witness(tcp).map_err(refused)?;
    let mut hello = Vec::from(MAGIC);
    hello.extend(VERSION.to_le_bytes());
    hello.extend(tcp::written(tcp)?.to_le_bytes());
    caller.send(&hello, &[witness.as_fd()])?;
    let (said, [witness, ..]) = hear(caller, tcp, deadline)?;
    if !proof::holds(caller, witness, identity, tcp).map_err(refused)? {
        return Err(Errno::ACCESS);
    }
    let written = written(&said).ok_or(Errno::PROTO);
    let verdict = written.and_then(|written| {
        if tcp::taken(tcp)? == written {
            Ok(())
        } else {
            Err(Errno::BUSY)
        }
    });
    agree(caller, tcp, deadline, verdict)?;
    if tcp::is_opener(tcp)? {
        let export = vi.export().map_err(errno_of)?;
        let fds: Vec<_> = export.fds.iter().map(AsFd::as_fd).collect();
        caller.send(&export.blob, &fds)?;
        let (answer, _) = hear(caller, tcp, deadline)?;
        return verdict_of(&answer);
    }
    let (blob, fds) = hear(caller, tcp, deadline)?;
    let fds = fds.into_iter().flatten();
    let fds = fds.filter_map(Passed::into_export).collect();
    let imported = vi.import(&blob, fds).map_err(errno_of);
    caller.send(&[code(imported)], &[])?;
    imported
}

/// Tells the verdict, and hears the other's: one that is not yes counts for both.
fn agree(
    caller: &Caller,
    tcp: BorrowedFd<'_>,
    deadline: Option<Instant>,
    verdict: Result<(), Errno>,
) -> Result<(), Errno> {
    caller.send(&[code(verdict)], &[])?;
    let (answer, _) = hear(caller, tcp, deadline)?;
    verdict.and_then(|()| verdict_of(&answer))
}

fn code(verdict: Result<(), Errno>) -> u8 {
    match verdict {
        Ok(()) => 0,
        Err(Errno::BUSY) => 1,
        Err(Errno::NOMEM) => 2,
        Err(_) => 3,
    }
}

fn verdict_of(answer: &[u8]) -> Result<(), Errno> {
    match answer {
        [0] => Ok(()),
        [1] => Err(Errno::BUSY),
        [2] => Err(Errno::NOMEM),
        _ => Err(Errno::PROTO),
    }
}

fn written(said: &[u8]) -> Option<u64> {
    let said = said.strip_prefix(&MAGIC)?;
    let said = said.strip_prefix(&VERSION.to_le_bytes())?;
    Some(u64::from_le_bytes(said.try_into().ok()?))
}

/// The next packet.
fn hear(
    caller: &Caller,
    tcp: BorrowedFd<'_>,
    deadline: Option<Instant>,
) -> Result<(Vec<u8>, [Option<Passed>; FDS_MAX]), Errno> {
    let mut bytes = vec![0; PACKET_MAX];
    loop {
        match caller.recv(&mut bytes)? {
            Received::Packet {
                len,
                fds,
                whole: true,
            } => {
                bytes.truncate(len);
                return Ok((bytes, fds));
            }
            Received::Packet { .. } => return Err(Errno::PROTO),
            Received::Closed => return Err(Errno::PIPE),
            Received::Nothing => {}
        }
        if sys::time::expired(deadline) {
            return Err(Errno::TIMEDOUT);
        }
        let soon = sys::time::now() + STEP;
        let until = Some(deadline.map_or(soon, |deadline| deadline.min(soon)));
        sys::poll::wait_readable([caller.as_fd()], until).map_err(|_| Errno::NOMEM)?;
        if !sys::socket::is_connected(tcp) {
            return Err(Errno::NOTCONN);
        }
    }
}

/// A moment, or less if the connection ends.
fn rest(tcp: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<(), Errno> {
    let soon = sys::time::now() + MOMENT;
    let until = Some(deadline.map_or(soon, |deadline| deadline.min(soon)));
    let [shows] = sys::poll::wait_readable([tcp], until).map_err(|_| Errno::NOMEM)?;
    if shows {
        // Its end, or bytes of a peer that has not asked.
        return Err(if tcp::inq(tcp)? > 0 {
            Errno::BUSY
        } else {
            Errno::NOTCONN
        });
    }
    Ok(())
}

fn name(identity: &Identity) -> String {
    let hex = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => format!("{:08x}{:04x}", ip.to_bits(), address.port()),
        IpAddr::V6(ip) => format!("{:032x}{:04x}", ip.to_bits(), address.port()),
    };
    let low = identity.local.min(identity.peer);
    let high = identity.local.max(identity.peer);
    // At most 97 bytes, of the 107 that a name may have.
    format!("soviax-{:x}-{}-{}", identity.netns, hex(low), hex(high))
}

fn refused(reason: Reason) -> Errno {
    match reason {
        Reason::NotConnected => Errno::NOTCONN,
        Reason::NotLocal => Errno::HOSTUNREACH,
        Reason::Descriptors => Errno::MFILE,
        Reason::Memory => Errno::NOMEM,
        _ => Errno::ACCESS,
    }
}

const MAGIC: [u8; 4] = *b"sVIx";
const VERSION: u32 = 1;
const BACKLOG: i32 = 4;
const PACKET_MAX: usize = 512;
/// How long nobody looks whether the connection still stands.
const STEP: Duration = Duration::from_millis(50);
/// How long a name may be another's before it is tried again.
const MOMENT: Duration = Duration::from_millis(2);
