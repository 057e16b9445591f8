//! What two ends agree on.

use std::time::Duration;

use super::error::MpaError;
use super::startup::{Enhanced, Flags, NOT_NEGOTIATED, Rtr, RtrSet, Startup};

/// Which end of the startup; nothing to do with who connected TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends the Request, and the first FPDU.
    Initiator,
    /// Sends the Reply, and no FPDU before it has received one.
    Responder,
}

/// How many RDMA Reads (and atomics) may be unanswered at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Depths {
    /// Of the peer's, here: more of them end the connection.
    pub ird: u16,
    /// Of ours, at the peer: more of them wait here.
    pub ord: u16,
}

/// What one end wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Checksums; off only if the peer does not want them either.
    pub crc: bool,
    /// Asks the peer for markers. A receiver of an ordered stream gains nothing from them.
    pub markers: bool,
    /// What to send, or the latest to accept.
    pub revision: Revision,
    /// How deep RDMA Reads may go; below [`NOT_NEGOTIATED`].
    pub depths: Depths,
    /// How long to wait for the peer's frame.
    pub time_limit: Duration,
}

impl Default for Options {
    /// Checksums, no markers, revision 2 with peer-to-peer; ten seconds, as Linux siw's initiator.
    fn default() -> Self {
        Self {
            crc: true,
            markers: false,
            revision: Revision::Two(PeerToPeer {
                ask: true,
                rtr: RtrSet::WRITE_OR_READ,
                negotiate_depths: true,
            }),
            depths: Depths { ird: 16, ord: 16 },
            time_limit: Duration::from_secs(10),
        }
    }
}

/// A revision of MPA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// RFC 5044. As responder: closes on revision 2.
    One,
    /// RFC 6581, always with its enhanced data when initiating. As responder: takes both.
    Two(PeerToPeer),
}

/// What RFC 6581 adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerToPeer {
    /// As initiator, ask for the peer-to-peer model. Intel's adapters refuse what does not.
    pub ask: bool,
    /// The ready-to-receive messages that this end can send and take.
    pub rtr: RtrSet,
    /// Whether depths are told; else [`NOT_NEGOTIATED`] is.
    pub negotiate_depths: bool,
}

/// What holds in full operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Which end this is.
    pub role: Role,
    /// Checksums, both ways.
    pub crc: bool,
    /// This end puts markers into what it sends.
    pub send_markers: bool,
    /// The peer does.
    pub receive_markers: bool,
    /// How deep RDMA Reads go.
    pub depths: Depths,
    /// The ready-to-receive messages that were agreed on; empty without the peer-to-peer model.
    pub rtr: RtrSet,
}

impl Terms {
    /// The message that the initiator sends before all others.
    #[must_use]
    pub fn first_message(&self) -> Option<Rtr> {
        self.rtr
            .preferred()
            .filter(|_| self.role == Role::Initiator)
    }

    pub(super) fn between(role: Role, ours: Flags, peers: Flags, depths: Depths) -> Self {
        Self {
            role,
            crc: ours.crc || peers.crc,
            send_markers: peers.markers,
            receive_markers: ours.markers,
            depths,
            rtr: RtrSet::EMPTY,
        }
    }
}

impl Options {
    pub(super) fn flags(&self) -> Flags {
        Flags {
            markers: self.markers,
            crc: self.crc,
            rejected: false,
        }
    }

    pub(super) fn revision_number(&self) -> u8 {
        match self.revision {
            Revision::One => 1,
            Revision::Two(_) => 2,
        }
    }

    /// The enhanced data of our Request.
    pub(super) fn request(&self) -> Option<Enhanced> {
        let Revision::Two(peer_to_peer) = self.revision else {
            return None;
        };
        let told = |depth: u16| {
            if peer_to_peer.negotiate_depths {
                depth.min(NOT_NEGOTIATED - 1)
            } else {
                NOT_NEGOTIATED
            }
        };
        Some(Enhanced {
            peer_to_peer: peer_to_peer.ask,
            rtr: if peer_to_peer.ask {
                peer_to_peer.rtr
            } else {
                RtrSet::EMPTY
            },
            ird: told(self.depths.ird),
            ord: told(self.depths.ord),
        })
    }

    /// The enhanced data of our Reply, and the depths that then hold here.
    pub(super) fn reply(&self, request: Enhanced) -> (Enhanced, Depths) {
        let ours = match self.revision {
            Revision::One => RtrSet::EMPTY,
            Revision::Two(peer_to_peer) => peer_to_peer.rtr,
        };
        let common = request.rtr.intersection(ours);
        let rtr = match (request.peer_to_peer, common.preferred()) {
            (false, _) => RtrSet::EMPTY,
            (true, Some(_)) => common,
            (true, None) => ours,
        };
        let mut depths = self.depths;
        if rtr.read {
            // The RTR itself takes a place.
            depths.ird = depths.ird.max(1);
        }
        if request.ird != NOT_NEGOTIATED {
            depths.ord = depths.ord.min(request.ird);
        }
        let mirrored = |peers: u16, told: u16| {
            if peers == NOT_NEGOTIATED {
                NOT_NEGOTIATED
            } else {
                told.min(NOT_NEGOTIATED - 1)
            }
        };
        let reply = Enhanced {
            peer_to_peer: request.peer_to_peer,
            rtr,
            ird: mirrored(request.ord, depths.ird),
            ord: mirrored(request.ird, depths.ord),
        };
        (reply, depths)
    }

    /// What the initiator makes of a Reply that accepts.
    ///
    /// The error with terms is to be told to the peer, under these; that without is not.
    pub(super) fn conclude(&self, reply: &Startup) -> Result<Terms, (MpaError, Option<Terms>)> {
        let mut terms = Terms::between(Role::Initiator, self.flags(), reply.flags, self.depths);
        let Revision::Two(wanted) = self.revision else {
            return Ok(terms);
        };
        let Some(theirs) = reply.enhanced else {
            return Err((MpaError::Startup, None));
        };
        if wanted.negotiate_depths {
            if theirs.ord != NOT_NEGOTIATED && theirs.ord > self.depths.ird {
                return Err((MpaError::InsufficientIrd, Some(terms)));
            }
            if theirs.ird != NOT_NEGOTIATED {
                terms.depths.ord = self.depths.ord.min(theirs.ird);
            }
        }
        if wanted.ask || theirs.peer_to_peer {
            terms.rtr = match theirs.rtr.intersection(wanted.rtr).preferred() {
                // It takes a place, and there is none.
                Some(Rtr::Read) if theirs.peer_to_peer && theirs.ird == 0 => {
                    return Err((MpaError::InsufficientIrd, Some(terms)));
                }
                Some(rtr) if wanted.ask && theirs.peer_to_peer => RtrSet {
                    write: rtr == Rtr::Write,
                    read: rtr == Rtr::Read,
                    send: rtr == Rtr::Send,
                },
                _ => return Err((MpaError::NoMatchingRtr, Some(terms))),
            };
        }
        Ok(terms)
    }
}
