//! Connection requests, and their answers.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use proto::setup::{self, MESSAGE_MAX, Message};
use sys::net::{Conn, Received, Sent};
use sys::segment::{Segment, Side};
use sys::sync::{AtomicBool, Ordering};
use sys::wait::{Limits, Spinner};
use via::soft::{Ask, Established, Incoming, Pending};
use via::{Discriminator, Error, NetAddress, Reliability, ViAttributes};

use crate::link::{DATA_LEN, ShmLink};
use crate::name;
use crate::peering::Offer;

/// A connection request under way.
pub(crate) enum Request {
    /// To a waiter.
    Client(Client),
    /// To a peer.
    Offer(Arc<Offer>),
}

/// A request to a waiter, waiting for the answer.
pub(crate) struct Client {
    conn: Arc<Conn>,
    cancelled: AtomicBool,
}

impl Request {
    pub(crate) fn to_waiter(ask: &Ask) -> Result<Self, Error> {
        let conn = dial(BUSY_MAX, |slot| name::listener(&ask.remote, slot))?;
        let mut bytes = [0; MESSAGE_MAX];
        let message = Message::Request(to_wire(ask));
        match conn.send(message.encode(&mut bytes), &[]) {
            Ok(Sent::Whole) => Ok(Self::Client(Client {
                conn: Arc::new(conn),
                cancelled: AtomicBool::new(false),
            })),
            Ok(_) => Err(Error::NoMatch),
            Err(_) => Err(Error::Resource),
        }
    }
}

impl Pending for Request {
    type Link = ShmLink;

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<ShmLink>, Error>> {
        match self {
            Self::Client(client) => client.wait(deadline),
            Self::Offer(offer) => offer.wait(deadline),
        }
    }

    fn cancel(&self) {
        match self {
            Self::Client(client) => {
                client.cancelled.store(true, Ordering::Release);
                client.conn.shutdown();
            }
            Self::Offer(offer) => offer.cancel(),
        }
    }
}

impl Client {
    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<ShmLink>, Error>> {
        let mut spin = SPINNER.begin();
        loop {
            match answer(&self.conn) {
                Ok(None) => {}
                _ if self.cancelled.load(Ordering::Acquire) => {
                    return Some(Err(Error::InvalidState));
                }
                Ok(Some(established)) => {
                    spin.hit();
                    return Some(Ok(established));
                }
                Err(error) => return Some(Err(error)),
            }
            if sys::time::expired(deadline) {
                return None;
            }
            if !spin.again() && self.conn.wait_readable(deadline).is_err() {
                return Some(Err(Error::Resource));
            }
        }
    }
}

/// The answer to a request, if there is one yet.
pub(crate) fn answer(conn: &Arc<Conn>) -> Result<Option<Established<ShmLink>>, Error> {
    let mut bytes = [0; MESSAGE_MAX];
    let (len, fds, truncated) = match conn.recv(&mut bytes).map_err(|_| Error::Resource)? {
        Received::Nothing => return Ok(None),
        // Whoever waited there does so no more.
        Received::Closed => return Err(Error::NoMatch),
        Received::Packet {
            len,
            fds,
            truncated,
        } => (len, fds, truncated),
    };
    match Message::decode(&bytes[..len]).map_err(|_| Error::NotReachable)? {
        Message::Accept {
            attributes,
            data_len,
        } => {
            let segment = fds.into_iter().next().ok_or(if truncated {
                // It was sent, and this process had no descriptor left for it.
                Error::Resource
            } else {
                Error::NotReachable
            })?;
            let segment = segment.into_memory().ok_or(Error::NotReachable)?.into_fd();
            let segment =
                Segment::import(segment, data_len as usize).map_err(|_| Error::NotReachable)?;
            Ok(Some(Established {
                link: ShmLink::new(segment, Side::B, Arc::clone(conn)),
                remote: from_wire(&attributes).ok_or(Error::NotReachable)?,
            }))
        }
        Message::Reject => Err(Error::Reject),
        Message::NoMatch => Err(Error::NoMatch),
        Message::Mismatch(code) => Err(mismatch(code)),
        _ => Err(Error::NotReachable),
    }
}

/// Says yes on `conn`: makes the segment and keeps this end of it. With [`Error::Resource`] nothing has been said.
pub(crate) fn accept(conn: &Arc<Conn>, attributes: &ViAttributes) -> Result<ShmLink, Error> {
    let (segment, fd) = Segment::create(DATA_LEN).map_err(|_| Error::Resource)?;
    let message = Message::Accept {
        attributes: attributes_to_wire(attributes),
        data_len: DATA_LEN as u32,
    };
    let mut bytes = [0; MESSAGE_MAX];
    match conn.send(message.encode(&mut bytes), &[fd.as_fd()]) {
        Ok(Sent::Whole) => Ok(ShmLink::new(segment, Side::A, Arc::clone(conn))),
        // The asker has given up.
        Ok(_) => Err(Error::Timeout),
        Err(_) => Err(Error::Resource),
    }
}

/// A request that has arrived.
pub(crate) struct ShmIncoming {
    /// `None` once answered.
    conn: Option<Arc<Conn>>,
    remote: (NetAddress, ViAttributes),
}

impl ShmIncoming {
    /// `None` for a request that is not for `address` or makes no sense.
    pub(crate) fn new(conn: Arc<Conn>, ask: &setup::Ask, address: &NetAddress) -> Option<Self> {
        if address_from_wire(&ask.remote)? != *address {
            return None;
        }
        let remote = (address_from_wire(&ask.local)?, from_wire(&ask.attributes)?);
        Some(Self {
            conn: Some(conn),
            remote,
        })
    }
}

impl Incoming for ShmIncoming {
    type Link = ShmLink;

    fn remote(&self) -> (NetAddress, ViAttributes) {
        self.remote
    }

    fn accept(&mut self, attributes: &ViAttributes) -> Result<ShmLink, Error> {
        let conn = self.conn.as_ref().ok_or(Error::InvalidParameter)?;
        let accepted = accept(conn, attributes);
        if !matches!(accepted, Err(Error::Resource)) {
            self.conn = None;
        }
        accepted
    }

    fn is_unanswered(&self) -> bool {
        self.conn.is_some()
    }

    fn reject(&mut self) {
        if let Some(conn) = self.conn.take() {
            say(&conn, &Message::Reject);
        }
    }

    fn abandon(&mut self) {
        self.conn = None;
    }
}

impl Drop for ShmIncoming {
    fn drop(&mut self) {
        self.reject();
    }
}

/// Connects to the first of the names that somebody listens at, trying for so long while all lines
/// are taken.
pub(crate) fn dial(patience: Duration, name: impl Fn(usize) -> Vec<u8>) -> Result<Conn, Error> {
    let end = Instant::now() + patience;
    loop {
        let mut busy = false;
        for slot in 0..name::SLOTS {
            match Conn::connect(&name(slot)) {
                Ok(conn) => return Ok(conn),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => busy = true,
                    ErrorKind::ConnectionRefused | ErrorKind::PermissionDenied => {}
                    _ => return Err(Error::Resource),
                },
            }
        }
        // Too many call at once, maybe out of malice: whoever listens is about to answer them.
        if !busy || Instant::now() > end {
            return Err(Error::NoMatch);
        }
        std::thread::yield_now();
    }
}

/// Sends a message that needs no answer: an asker who is gone does not miss it.
pub(crate) fn say(conn: &Conn, message: &Message) {
    let mut bytes = [0; MESSAGE_MAX];
    let _unheard = conn.send(message.encode(&mut bytes), &[]);
}

pub(crate) fn to_wire(ask: &Ask) -> setup::Ask {
    setup::Ask {
        local: address_to_wire(&ask.local),
        remote: address_to_wire(&ask.remote),
        attributes: attributes_to_wire(&ask.attributes),
    }
}

fn address_to_wire(address: &NetAddress) -> setup::Address {
    let bytes = address.discriminator.as_bytes();
    let mut discriminator = [0; setup::DISCRIMINATOR_MAX];
    discriminator[..bytes.len()].copy_from_slice(bytes);
    setup::Address {
        host: address.host,
        discriminator_len: bytes.len() as u8,
        discriminator,
    }
}

pub(crate) fn address_from_wire(address: &setup::Address) -> Option<NetAddress> {
    let len = usize::from(address.discriminator_len);
    let discriminator = Discriminator::new(address.discriminator.get(..len)?).ok()?;
    Some(NetAddress {
        host: address.host,
        discriminator,
    })
}

pub(crate) fn attributes_to_wire(attributes: &ViAttributes) -> setup::Attributes {
    setup::Attributes {
        reliability: attributes.reliability.bits(),
        enable_rdma_write: attributes.enable_rdma_write,
        enable_rdma_read: attributes.enable_rdma_read,
        max_transfer_size: attributes.max_transfer_size,
        qos: attributes.qos,
    }
}

/// `None` for a reliability level that does not exist.
pub(crate) fn from_wire(attributes: &setup::Attributes) -> Option<ViAttributes> {
    Some(ViAttributes {
        reliability: Reliability::from_bits(attributes.reliability)?,
        max_transfer_size: attributes.max_transfer_size,
        qos: attributes.qos,
        ptag: None,
        enable_rdma_write: attributes.enable_rdma_write,
        enable_rdma_read: attributes.enable_rdma_read,
    })
}

pub(crate) fn mismatch(code: u8) -> Error {
    [
        Error::InvalidReliabilityLevel,
        Error::InvalidMtu,
        Error::InvalidQos,
    ]
    .into_iter()
    .find(|&error| error as u32 == u32::from(code))
    .unwrap_or(Error::NotReachable)
}

/// How long a caller tries while all lines are taken.
pub(crate) const BUSY_MAX: Duration = Duration::from_millis(200);

static SPINNER: LazyLock<Spinner> = LazyLock::new(|| Spinner::new(Limits::SOCKET));

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::{env, fs, iter};

    use super::*;

    #[test]
    fn who_is_dropped_hears_a_no_and_who_is_abandoned_hears_none() {
        for is_abandoned in [false, true] {
            let (ours, theirs) = Conn::pair().expect("sockets");
            let theirs = Arc::new(theirs);
            let mut incoming = incoming(ours);
            if is_abandoned {
                incoming.abandon();
            }
            drop(incoming);
            let heard = answer(&theirs).map(drop);
            let expected = if is_abandoned {
                // The end of this process's descriptor: the parent has another.
                Error::NoMatch
            } else {
                Error::Reject
            };
            assert_eq!(heard, Err(expected));
        }
    }

    /// A request on that connection.
    fn incoming(conn: Conn) -> ShmIncoming {
        let address = NetAddress::new(name::host_address(), b"asker").expect("short");
        let ask = to_wire(&Ask {
            local: address,
            remote: address,
            attributes: ViAttributes::default(),
        });
        ShmIncoming::new(Arc::new(conn), &ask, &address).expect("for us")
    }

    /// In a process of its own, which has few descriptors.
    #[test]
    fn a_lack_of_descriptors_is_this_processs_own() {
        if env::var_os(FEW).is_none() {
            let program = env::current_exe().expect("this program");
            let output = Command::new("sh")
                .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
                .arg(program)
                .args(["--exact", "--nocapture"])
                .arg("connect::tests::a_lack_of_descriptors_is_this_processs_own")
                .env(FEW, "1")
                .output()
                .expect("a shell");
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains(MET), "{told}");
            return;
        }
        let (ours, theirs) = Conn::pair().expect("sockets");
        let theirs = Arc::new(theirs);
        let _link = accept(&Arc::new(ours), &ViAttributes::default()).expect("they wait");
        let (other, asker) = Conn::pair().expect("sockets");
        let (mut incoming, asker) = (incoming(other), Arc::new(asker));
        let null = fs::File::open("/dev/null").expect("open");
        let all: Vec<_> = iter::from_fn(|| null.try_clone().ok()).collect();
        assert!(!all.is_empty() && all.len() < 64);
        assert_eq!(answer(&theirs).map(drop), Err(Error::Resource));
        let nobody = || dial(Duration::ZERO, |_| b"sovia test: nobody".to_vec()).map(drop);
        assert_eq!(nobody(), Err(Error::Resource));
        let again = incoming.accept(&ViAttributes::default()).map(drop);
        assert_eq!(again, Err(Error::Resource));
        drop(all);
        assert!(answer(&asker).expect("no answer").is_none());
        let again = incoming.accept(&ViAttributes::default());
        let _links = (again.expect("they wait"), answer(&asker).expect("a yes"));
        assert_eq!(nobody(), Err(Error::NoMatch));
        println!("{MET}");
    }

    /// Set in the process that has few descriptors.
    const FEW: &str = "SOVIA_TEST_FEW";
    const MET: &str = "without a descriptor it is our own lack";
}
