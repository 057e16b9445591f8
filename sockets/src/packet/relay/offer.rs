//! A listener that other processes have, too: whoever accepts takes a connection out of the pair, where its owner puts them.
//!
//! A connection goes there when the one before has been taken, as the other end of a pair of its own, and is relayed from then on. The rest of the backlog stays with the
//! listener. Nobody has the listener any more when nobody has the other end of its pair.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use sys::relay::Pair;

use super::{Bell, begin, lock};
use crate::conn::Origin;
use crate::packet::listener::Listener;
use crate::packet::show::Show;
use crate::packet::stream::Stream;

/// A listener and its pair.
#[derive(Debug)]
pub(super) struct Offer {
    listener: Arc<Listener>,
    pair: Pair,
    bell: Bell,
    /// Whether it is over; held by who offers.
    over: Mutex<bool>,
}

impl Offer {
    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(super) fn pair(&self) -> &Pair {
        &self.pair
    }

    /// Offers what there is. `false` when it is over.
    pub(super) fn offer(&self) -> bool {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if *over {
            return true;
        }
        if self.pair.is_left() {
            *over = true;
            self.listener.close();
            return false;
        }
        while !self.pair.is_waiting()
            && let Some(stream) = self.listener.take()
        {
            if self.hand_out(&stream).is_err() {
                stream.abort();
            }
        }
        true
    }

    fn hand_out(&self, stream: &Arc<Stream>) -> io::Result<()> {
        let show = Show::new()?;
        let theirs = show.descriptor()?;
        let local = self.listener.local_of(stream);
        let peer = stream.peer().map(|peer| (peer.address, peer.port));
        let peer = peer.map_or(local, |(address, port)| {
            SocketAddrV4::new(address.into(), port)
        });
        stream.tell(Origin::Accepted, Some([local, peer].map(Into::into)));
        begin(stream, &show, &[])?;
        if self.pair.pass(&encode([local, peer]), theirs.as_fd()) {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
}

/// Has `listener` accept for whoever has the stand-in that `show` is.
pub(in crate::packet) fn offer(listener: &Arc<Listener>, show: &Show) -> io::Result<()> {
    let (name, watch) = lock().enter()?;
    let bell = Bell::new(name, &watch);
    let gone = || Err(io::ErrorKind::NotConnected.into());
    let pair = show.open(bell.clone(), gone)?;
    let offer = Arc::new(Offer {
        listener: Arc::clone(listener),
        pair,
        bell,
        over: Mutex::new(false),
    });
    watch.add(offer.pair(), name)?;
    lock().offers.insert(name, Arc::clone(&offer));
    listener.offer(show);
    see_to(name, &offer);
    Ok(())
}

/// Somebody has closed a listener.
pub(in crate::packet) fn look() {
    let offers = lock().offers.clone();
    offers.iter().for_each(|(name, offer)| see_to(*name, offer));
}

pub(super) fn see_to(name: u64, offer: &Offer) {
    offer.bell().hush();
    if offer.offer() {
        return;
    }
    offer.bell().watch.remove(offer.pair());
    let over = lock().offers.remove(&name);
    drop(over);
}

/// The two ends of a connection, as they go with its descriptor.
fn encode(ends: [SocketAddrV4; 2]) -> [u8; ENDS_LEN] {
    let mut bytes = [0; ENDS_LEN];
    for (place, end) in bytes.as_chunks_mut::<6>().0.iter_mut().zip(ends) {
        let [a, b, c, d] = end.ip().octets();
        let [high, low] = end.port().to_be_bytes();
        *place = [a, b, c, d, high, low];
    }
    bytes
}

/// Our end and the peer's of a connection that was taken.
#[must_use]
pub fn decode(bytes: &[u8; ENDS_LEN]) -> [SocketAddrV4; 2] {
    let end = |at: usize| {
        let [a, b, c, d, high, low] = bytes
            .as_chunks::<6>()
            .0
            .get(at)
            .copied()
            .unwrap_or_default();
        SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([high, low]))
    };
    [end(0), end(1)]
}

/// Bytes that come with the descriptor of a connection.
pub const ENDS_LEN: usize = 12;
