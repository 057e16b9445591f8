//! What the two ends of a connection have agreed on, and what follows from it.

use std::os::fd::AsFd;

use proto::mpa::{Role, RtrSet, Terms, ULPDU_LEN_MAX, mulpdu};
use proto::rdmap::{Config, NoBuffer, PlaceAhead};
use via::{Error, Reliability, ViAttributes};

use crate::wire::Wire;

/// What a link is made of, beside the socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) terms: Terms,
    /// The peer is sovia.
    pub(crate) is_ours: bool,
    /// Of the VI here.
    pub(crate) reliability: Reliability,
}

impl Stream {
    /// # Errors
    /// `InvalidReliabilityLevel`: whether a message has been received is asked by RDMA Reads, which this peer does not answer.
    pub(crate) fn new(
        mut terms: Terms,
        is_ours: bool,
        attributes: &ViAttributes,
    ) -> Result<Self, Error> {
        let reliability = attributes.reliability;
        if reliability == Reliability::ReliableReception && terms.depths.ord == 0 {
            return Err(Error::InvalidReliabilityLevel);
        }
        // Revision 1 has no message that says that the initiator is ready, and without one a responder that speaks first never may.
        // Between ourselves the first Write of no octets is understood whether it was agreed on or not.
        if is_ours && terms.role == Role::Initiator && terms.rtr == RtrSet::EMPTY {
            terms.rtr.write = true;
        }
        Ok(Self {
            terms,
            is_ours,
            reliability,
        })
    }

    /// How its engine works.
    pub(crate) fn config(&self, wire: &Wire) -> Config {
        let lossy = self.reliability == Reliability::Unreliable;
        Config {
            mulpdu: self.longest_ulpdu(wire),
            extensions: self.is_ours,
            // Of a stranger's the engine knows best what to say; between ourselves the VI asks more.
            no_buffer: if lossy || self.is_ours {
                NoBuffer::Wait
            } else {
                NoBuffer::Terminate
            },
            inline_max: INLINE_MAX,
            send_window: WINDOW,
            even_segments: self.is_ours,
            alone_min: u32::MAX,
            place_ahead: PlaceAhead::Unseen,
            guess_max: GUESS_MAX,
            ..Config::default()
        }
    }

    /// Sovia takes whatever the format allows. An adapter wants one segment of TCP's for each record,
    /// and who a stranger is we do not know.
    fn longest_ulpdu(&self, wire: &Wire) -> u16 {
        if self.is_ours {
            return ULPDU_LEN_MAX;
        }
        let mss = sys::tcp::segment_len(wire.tcp().as_fd()).unwrap_or(SEGMENT_MIN);
        mulpdu(mss, self.terms.send_markers)
    }
}

/// Segments of no more octets are copied among their headers.
pub(crate) const INLINE_MAX: u32 = 512;
/// Octets that are handed to the socket at once.
const WINDOW: u64 = 1 << 20;
/// Octets of later records that are read with one call.
const GUESS_MAX: u32 = 448 << 10;
/// What every path carries (RFC 9293 section 3.7.1).
const SEGMENT_MIN: u32 = 536;
