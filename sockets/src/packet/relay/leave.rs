//! This process ends, or becomes another program, and others have what it relays: the peer's process goes on with our end of the pair.
//!
//! MOVE says so behind the last of our bytes, and the peer's MOVED comes behind the last of its own. What of these has no room in the pair is left to a
//! process that does nothing else ([`sys::relay::bequest`]). A peer that has closed its socket says MOVED and asks for nothing.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use proto::packet::Kind;
use sys::errno::Errno;
use sys::net::{Conn, Listener, Received};
use sys::relay::bequest::{Bequest, carry_out};

use super::carry::{Inner, Relay};
use super::{attend, lock};
use crate::packet::stream::relay::Poured;

/// How far it has come.
#[derive(Debug)]
pub(super) struct Leaving {
    listener: Listener,
    place: Vec<u8>,
    is_said: bool,
    /// What there is no room for.
    rest: Vec<u8>,
    parted: Option<Parted>,
}

/// All has been said on both sides.
#[derive(Debug)]
struct Parted {
    /// Nothing more comes.
    ends: bool,
    heir: Option<Conn>,
}

impl Leaving {
    pub(super) fn is_said(&self) -> bool {
        self.is_said
    }

    /// Who has asked for our end, and knows what only the peer does.
    fn heir(&self) -> Option<Conn> {
        let secret = self
            .place
            .get(self.place.len().checked_sub(SECRET_LEN)?..)?;
        while let Ok(Some(conn)) = self.listener.accept() {
            let mut said = [0; SECRET_LEN + 1];
            if let Ok(Received::Packet { len, .. }) = conn.recv(&mut said)
                && said.get(..len) == Some(secret)
            {
                return Some(conn);
            }
        }
        None
    }
}

impl Relay {
    /// Begins to leave. Not where the peer is another host's.
    fn begin_to_leave(&self) -> bool {
        if self.far().get().is_some() || self.stream().place_of_peer().is_none() {
            return false;
        }
        let place = self.stream().place().to_vec();
        let Ok(listener) = Listener::bind(&name_of(&place), ASKERS_MAX) else {
            return false;
        };
        let mut inner = self.lock();
        if inner.is_over || inner.leaving.is_some() {
            return false;
        }
        inner.leaving = Some(Leaving {
            listener,
            place,
            is_said: false,
            rest: Vec::new(),
            parted: None,
        });
        true
    }

    /// The next steps of leaving. Whether it is over.
    pub(super) fn part(&self, inner: &mut Inner) -> bool {
        let Some(leaving) = &mut inner.leaving else {
            return false;
        };
        leaving.is_said = leaving.is_said || self.stream().say_move(Kind::Move);
        let rest = &mut leaving.rest;
        let poured = self.stream().pour(&mut inner.scratch, |bytes, is_urgent| {
            // Behind others it is one of them.
            let given = match rest
                .is_empty()
                .then(|| self.pair().give_as(bytes, is_urgent))
            {
                Some(Ok(given)) => given,
                Some(Err(Errno::PIPE)) => return bytes.len(),
                Some(Err(_)) | None => 0,
            };
            let left = bytes.get(given..).unwrap_or_default();
            if rest.len() + left.len() > REST_MAX {
                return given;
            }
            rest.extend_from_slice(left);
            bytes.len()
        });
        match poured {
            Poured::Moved { end, .. } => {
                let heir = leaving.heir();
                let ends = end || heir.is_none();
                leaving.parted = Some(Parted { ends, heir });
            }
            Poured::End if self.stream().has_closed() => {
                leaving.parted = Some(Parted {
                    ends: true,
                    heir: None,
                });
            }
            Poured::Broken(error) => {
                inner.leaving = None;
                self.spoil(inner, error);
            }
            Poured::All | Poured::Part | Poured::End => return false,
        }
        true
    }

    fn is_over(&self) -> bool {
        self.lock().is_over
    }
}

/// Leaves what others have, if their peers follow until `deadline`; else it is broken, as by the end of this process.
pub(super) fn all(deadline: Instant) {
    let mut relays: Vec<(u64, Arc<Relay>)> = Vec::new();
    for (name, relay) in lock().relays.clone() {
        if !relay.pair().is_left() && relay.begin_to_leave() {
            relays.push((name, relay));
        }
    }
    for (name, relay) in &relays {
        attend(*name, relay, &relay.bell().watch);
    }
    let mut parted = PARTED.lock().unwrap_or_else(PoisonError::into_inner);
    while !relays.iter().all(|(_, relay)| relay.is_over()) {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            break;
        };
        let waited = CHANGED.wait_timeout(parted, left);
        parted = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(parted);
    let leavings = relays.iter().map(|(_, relay)| relay.lock().leaving.take());
    let leavings: Vec<_> = leavings.collect();
    let mut bequests = Vec::with_capacity(relays.len());
    for ((_, relay), leaving) in relays.iter().zip(&leavings) {
        if let Some(leaving) = leaving
            && let Some(parted) = &leaving.parted
        {
            bequests.push(Bequest {
                pair: relay.pair(),
                rest: &leaving.rest,
                ends: parted.ends,
                heir: parted.heir.as_ref(),
            });
        }
    }
    // Without a process they are lost, as with this one.
    let _ = carry_out(&bequests);
    drop(bequests);
    for leaving in leavings.into_iter().flatten() {
        if let Some(heir) = leaving.parted.and_then(|parted| parted.heir) {
            // It is for that process to end.
            heir.leave();
        }
    }
    for (_, relay) in &relays {
        relay.stream().abort();
    }
}

/// One is over.
pub(super) fn told() {
    let _parted = PARTED.lock().unwrap_or_else(PoisonError::into_inner);
    CHANGED.notify_all();
}

/// Where to ask for an end, by what a WAKEUP says of it.
pub(super) fn name_of(place: &[u8]) -> Vec<u8> {
    let mut name = b"sovia-move/".to_vec();
    let public = place.iter().take(place.len().saturating_sub(SECRET_LEN));
    for byte in public {
        name.extend(format!("{byte:02x}").into_bytes());
    }
    name
}

/// The last bytes of a place, which are in no name.
pub(super) const SECRET_LEN: usize = 8;
/// More than a peer sends on its way: the window, and what a sender keeps that waits for it.
const REST_MAX: usize = 8 << 20;
/// One is honest.
const ASKERS_MAX: i32 = 16;
/// Held by who looks whether all are over, and by who tells of it, who has no relay's lock then.
static PARTED: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();
