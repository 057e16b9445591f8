//! VIs over TCP connections that are there already.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::mpa::{Depths, Handshake, MpaError, Role, RtrSet, Terms};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    SocketFlags, accept_with, bind, connect, getpeername, getsockname, listen, sockopt,
};
use via::provider::Export;
use via::soft::{Agent, Established};
use via::{Error, Vi, ViAttributes};

use crate::departures::Departures;
use crate::dial::{Answer, options, step, terminate};
use crate::driver::{Config, tcp_socket};
use crate::link::{IwarpLink, now};
use crate::private;
use crate::stream::Stream;
use crate::wire::{Wire, wait_for};

/// Connects `vi` in place: turns a connected TCP socket into an RDMA stream, by an MPA startup in
/// which this end has the given role. What was to be read before it must have been read, and what was
/// to be written have been written; both ends call this, one as [`Role::Initiator`].
///
/// # Errors
/// [`Error::Timeout`] at `deadline`, [`Error::Reject`] when the peer refuses, is no MPA peer or not sovia (the
/// connection is closed then), [`Error::InvalidState`] for a VI that is not idle,
/// the code of an attribute in which the two VIs differ.
pub fn over(
    vi: &Vi,
    tcp: OwnedFd,
    role: Role,
    config: &Config,
    deadline: Option<Instant>,
) -> Result<(), Error> {
    let attributes = vi.ops().attributes()?;
    rustix::io::ioctl_fionbio(&tcp, true).map_err(|_| Error::InvalidParameter)?;
    sockopt::set_tcp_nodelay(&tcp, true).map_err(|_| Error::InvalidParameter)?;
    let said = private::accept(&attributes);
    let options = options(config);
    let mut handshake = match role {
        Role::Initiator => {
            Handshake::initiate(options, &said, now()).map_err(|_| Error::Resource)?
        }
        Role::Responder => Handshake::respond(options, now()),
    };
    let mut told = None;
    let terms = loop {
        match step(&tcp, &mut handshake).map_err(|_| Error::Reject)? {
            Some(Answer::Yes { terms, said }) => {
                if role == Role::Initiator {
                    told = private::accepted(&said);
                    if told.is_none() {
                        // It has said yes.
                        terminate(&tcp, &terms, MpaError::Local);
                        return Err(Error::Reject);
                    }
                }
                break terms;
            }
            Some(Answer::No(said)) => return Err(private::refused(&said)),
            Some(Answer::Asked {
                said: words,
                takes_reads,
            }) => {
                told = private::accepted(&words);
                let fits = told
                    .ok_or(Error::Reject)
                    .and_then(|theirs| private::fit(&attributes, &theirs));
                if let Err(why) = fits.and_then(|()| private::suffice(&attributes, takes_reads)) {
                    let refusal = told.map_or_else(Vec::new, |_| private::refusal(why));
                    let rejected = handshake.reject(&refusal);
                    rejected.map_err(|_| Error::Resource)?;
                    let _gone = step(&tcp, &mut handshake);
                    return Err(why);
                }
                handshake.accept(&said).map_err(|_| Error::Resource)?;
                continue;
            }
            None => {}
        }
        if sys::time::expired(deadline) {
            return Err(Error::Timeout);
        }
        let awaited = if handshake.output().is_empty() {
            PollFlags::IN
        } else {
            PollFlags::OUT
        };
        wait_for(&mut [PollFd::new(&tcp, awaited)], deadline);
    };
    while !handshake.output().is_empty() {
        if sys::time::expired(deadline) {
            return Err(Error::Timeout);
        }
        wait_for(&mut [PollFd::new(&tcp, PollFlags::OUT)], deadline);
        crate::dial::write_out(&tcp, &mut handshake);
    }
    vi.import(&encode(&terms, told.as_ref()), vec![tcp])
}

/// Two ends of a connection within this host.
pub(crate) fn export(
    attributes: &ViAttributes,
    config: &Config,
    agent: &Arc<Agent<Departures>>,
) -> Result<(IwarpLink, Export), Error> {
    let (ours, theirs) = pair().map_err(|_| Error::Resource)?;
    let terms = |role| Terms {
        role,
        crc: config.crc,
        send_markers: config.markers,
        receive_markers: config.markers,
        depths: DEPTHS,
        rtr: RtrSet {
            write: true,
            ..RtrSet::EMPTY
        },
    };
    let stream = Stream::new(terms(Role::Initiator), true, attributes)?;
    let wire = Wire::new(ours).map_err(|_| Error::Resource)?;
    let export = Export {
        blob: encode(&terms(Role::Responder), Some(attributes)),
        fds: vec![theirs],
    };
    Ok((IwarpLink::new(Arc::new(wire), &stream, agent), export))
}

/// A connection in full operation.
pub(crate) fn import(
    attributes: &ViAttributes,
    blob: &[u8],
    fds: Vec<OwnedFd>,
    agent: &Arc<Agent<Departures>>,
) -> Result<Established<IwarpLink>, Error> {
    let (terms, told) = decode(blob).ok_or(Error::InvalidParameter)?;
    let [tcp] = <[OwnedFd; 1]>::try_from(fds).map_err(|_| Error::InvalidParameter)?;
    let stream = Stream::new(terms, told.is_some(), attributes)?;
    let wire = Wire::new(tcp).map_err(|_| Error::InvalidParameter)?;
    Ok(Established {
        link: IwarpLink::new(Arc::new(wire), &stream, agent),
        remote: told.unwrap_or(ViAttributes {
            ptag: None,
            ..*attributes
        }),
    })
}

/// The terms, and the peer's VI unless it is a stranger's.
fn encode(terms: &Terms, peer: Option<&ViAttributes>) -> Vec<u8> {
    let bit = |on: bool, mask: u8| if on { mask } else { 0 };
    let flags = bit(terms.role == Role::Responder, 0x01)
        | bit(terms.crc, 0x02)
        | bit(terms.send_markers, 0x04)
        | bit(terms.receive_markers, 0x08)
        | bit(terms.rtr.write, 0x10)
        | bit(terms.rtr.read, 0x20)
        | bit(terms.rtr.send, 0x40);
    let mut blob = MAGIC.to_vec();
    blob.push(flags);
    blob.extend(terms.depths.ird.to_be_bytes());
    blob.extend(terms.depths.ord.to_be_bytes());
    blob.extend(peer.map_or_else(Vec::new, private::accept));
    blob
}

fn decode(blob: &[u8]) -> Option<(Terms, Option<ViAttributes>)> {
    let ([magic @ .., flags, a, b, c, d], rest) = blob.split_first_chunk::<9>()?;
    if *magic != MAGIC {
        return None;
    }
    let has = |mask: u8| flags & mask != 0;
    let terms = Terms {
        role: if has(0x01) {
            Role::Responder
        } else {
            Role::Initiator
        },
        crc: has(0x02),
        send_markers: has(0x04),
        receive_markers: has(0x08),
        depths: Depths {
            ird: u16::from_be_bytes([*a, *b]),
            ord: u16::from_be_bytes([*c, *d]),
        },
        rtr: RtrSet {
            write: has(0x10),
            read: has(0x20),
            send: has(0x40),
        },
    };
    let told = if rest.is_empty() {
        None
    } else {
        Some(private::accepted(rest)?)
    };
    Some((terms, told))
}

/// Both ends of a connection over loopback.
fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let listener = tcp_socket()?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    listen(&listener, 1)?;
    let at = SocketAddrV4::try_from(getsockname(&listener)?)?;
    let ours = tcp_socket()?;
    match connect(&ours, &at) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let us = getsockname(&ours)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let end = Instant::now() + PATIENCE;
    loop {
        wait_for(&mut [PollFd::new(&listener, PollFlags::IN)], Some(end));
        let theirs = accept_with(&listener, flags)?;
        // Another may have called at the same moment.
        if getpeername(&theirs)? == Some(us.clone()) {
            return Ok((ours, theirs));
        }
    }
}

const MAGIC: [u8; 4] = *b"iWV\x01";
const DEPTHS: Depths = Depths { ird: 16, ord: 16 };
/// Within a host a connection is there at once.
const PATIENCE: Duration = Duration::from_secs(1);
