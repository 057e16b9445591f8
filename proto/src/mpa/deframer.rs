//! From octets to ULPDUs, which stay where they were read.

mod diverted;
mod pass;

use diverted::Diverted;

use super::crc::{Crc, crc_of};
use super::error::MpaError;
use super::fpdu::{
    CRC_LEN, FPDU_LEN_MAX, LENGTH_LEN, MARKER_INTERVAL, MARKER_LEN, is_between_markers, pad_len,
    span,
};
use super::ring::Ring;
use super::ulpdu::Ulpdu;

/// Whether markers are looked at, or only taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerCheck {
    /// A wrong one is [`MpaError::Marker`].
    On,
    /// Nobody looks.
    Off,
}

/// What [`Deframer::poll`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// Not a whole FPDU yet.
    Nothing,
    /// [`Deframer::ulpdu`] is whole and its checksum right.
    Fpdu,
    /// The FPDU of which octets were [diverted](Deframer::divert) is whole and its checksum right.
    Diverted,
}

/// The receiving direction: a buffer for the socket, and FPDUs in it.
///
/// Read the socket into [`space`](Self::space), say [how much](Self::handle_filled) came, then
/// [`poll`](Self::poll); look at the [`ulpdu`](Self::ulpdu), and [`release`](Self::release) it. It
/// holds as many octets as it was made for, whatever a peer announces.
#[derive(Debug)]
pub struct Deframer {
    markers: Option<MarkerCheck>,
    crc: bool,
    ring: Ring,
    /// Stream position of the first octet in the ring.
    at: u64,
    current: Current,
    failed: Option<MpaError>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one of them a connection")]
enum Current {
    /// An FPDU that has not been looked at, or is not whole.
    Unknown,
    /// A good FPDU of so many octets of stream.
    Whole(Extent),
    /// The payload goes elsewhere.
    Diverted(Diverted),
}

/// Where an FPDU lies in the ring.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Octets of a marker before ULPDU_Length.
    lead: usize,
    ulpdu_len: u16,
    /// Octets up to the CRC word.
    covered: usize,
}

impl Extent {
    fn total(self) -> usize {
        self.covered + CRC_LEN
    }
}

impl Deframer {
    /// At the beginning of full operation: with `markers` if this end asked for them, with `crc` if
    /// either end did. Holds `capacity` octets, and at least the longest FPDU.
    #[must_use]
    pub fn new(markers: Option<MarkerCheck>, crc: bool, capacity: usize) -> Self {
        Self {
            markers,
            crc,
            ring: Ring::new(capacity.max(FPDU_LEN_MAX)),
            at: 0,
            current: Current::Unknown,
            failed: None,
        }
    }

    /// At stream position `at` instead of 0; for tests of what a long life brings.
    #[must_use]
    pub fn starting_at(self, at: u64) -> Self {
        Self { at, ..self }
    }

    /// Room for what the socket has, in this order.
    pub fn space(&mut self) -> [&mut [u8]; 2] {
        self.ring.space()
    }

    /// All of the room, in one piece, between two FPDUs of which nothing has come.
    #[inline]
    pub fn fresh(&mut self) -> Option<&mut [u8]> {
        match self.current {
            Current::Unknown => self.ring.fresh(),
            Current::Whole(_) | Current::Diverted(_) => None,
        }
    }

    /// `n` octets of the space have been filled.
    #[inline]
    pub fn handle_filled(&mut self, n: usize) {
        self.ring.fill(n);
    }

    /// Copies octets in, as many as there is room for; returns how many.
    pub fn handle_octets(&mut self, mut octets: &[u8]) -> usize {
        let mut taken = 0;
        for room in self.ring.space() {
            let n = room.len().min(octets.len());
            let (now, later) = octets.split_at_checked(n).unwrap_or((octets, &[]));
            if let Some(room) = room.get_mut(..n) {
                room.copy_from_slice(now);
            }
            octets = later;
            taken += n;
        }
        self.ring.fill(taken);
        taken
    }

    /// Octets that are here and not released.
    #[must_use]
    pub fn held(&self) -> usize {
        self.ring.len()
    }

    /// The ULPDU of an FPDU that is all that is here, and right: if it lies in one piece, without a marker. `None` where [`poll`](Self::poll) is to say what is
    /// here, which changes nothing of the answer.
    #[must_use]
    #[inline]
    pub fn alone(&self) -> Option<&[u8]> {
        let is_unknown = matches!(self.current, Current::Unknown) && self.failed.is_none();
        let octets = self.ring.run().filter(|_| is_unknown)?;
        if self.markers.is_some() && !is_between_markers(self.at, octets.len()) {
            return None;
        }
        let (covered, crc) = octets.split_last_chunk::<CRC_LEN>()?;
        let (length, padded) = covered.split_first_chunk::<LENGTH_LEN>()?;
        let ulpdu_len = usize::from(u16::from_be_bytes(*length));
        let is_whole = padded.len() == ulpdu_len + pad_len(ulpdu_len);
        if !is_whole || (self.crc && crc_of(covered) != *crc) {
            return None;
        }
        padded.get(..ulpdu_len)
    }

    /// How many octets of the FPDU that is on its way have not come, as far as its length is known; 0 between FPDUs.
    #[must_use]
    pub fn missing(&self) -> usize {
        match &self.current {
            Current::Unknown => {
                let total = self.extent().map_or(0, Extent::total);
                total.saturating_sub(self.ring.len())
            }
            Current::Whole(_) => 0,
            Current::Diverted(diverted) => {
                let total = diverted.left + diverted.pad + CRC_LEN;
                total.saturating_sub(self.ring.len())
            }
        }
    }

    /// Whether an FPDU has begun and is not whole: a connection must not end here.
    #[must_use]
    pub fn is_inside_fpdu(&self) -> bool {
        self.ring.len() > 0 || matches!(self.current, Current::Diverted(_))
    }

    /// Looks for the next FPDU. The same answer until it is released.
    ///
    /// # Errors
    /// [`MpaError::Crc`] or [`MpaError::Marker`]; from then on always.
    pub fn poll(&mut self) -> Result<Ready, MpaError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let ready = match &self.current {
            Current::Whole(_) => Ok(Ready::Fpdu),
            Current::Diverted(_) => self.poll_diverted(),
            Current::Unknown => self.poll_whole(),
        };
        self.failed = ready.err();
        ready
    }

    fn poll_whole(&mut self) -> Result<Ready, MpaError> {
        let Some(extent) = self.extent() else {
            return Ok(Ready::Nothing);
        };
        if self.ring.len() < extent.total() {
            return Ok(Ready::Nothing);
        }
        if self.crc && !self.is_crc_right(extent) {
            return Err(MpaError::Crc);
        }
        if self.markers == Some(MarkerCheck::On) && !self.are_markers_right(extent) {
            return Err(MpaError::Marker);
        }
        self.current = Current::Whole(extent);
        Ok(Ready::Fpdu)
    }

    /// The extent of the FPDU at the head of the ring, once its ULPDU_Length is there.
    fn extent(&self) -> Option<Extent> {
        let markers = self.markers.is_some();
        let lead = if markers && self.at.is_multiple_of(MARKER_INTERVAL) {
            MARKER_LEN as usize
        } else {
            0
        };
        let ulpdu_len = u16::from_be_bytes(self.ring.peek(lead)?);
        let octets = LENGTH_LEN + usize::from(ulpdu_len) + pad_len(ulpdu_len.into());
        let start = self.at + lead as u64;
        let mut covered = lead + span(start, octets, markers);
        let before_crc = self.at + covered as u64;
        if markers && before_crc.is_multiple_of(MARKER_INTERVAL) {
            covered += MARKER_LEN as usize;
        }
        Some(Extent {
            lead,
            ulpdu_len,
            covered,
        })
    }

    fn is_crc_right(&self, extent: Extent) -> bool {
        let octets = match self.ring.range(0, extent.covered) {
            [octets, []] => crc_of(octets),
            octets => {
                let mut crc = Crc::new();
                octets.into_iter().for_each(|octets| crc.update(octets));
                crc.octets()
            }
        };
        self.ring.peek(extent.covered) == Some(octets)
    }

    fn are_markers_right(&self, extent: Extent) -> bool {
        let start = self.at + extent.lead as u64;
        let mut marker = self.at.next_multiple_of(MARKER_INTERVAL);
        let end = self.at + extent.covered as u64;
        while marker < end {
            let peeked = self.ring.peek((marker - self.at) as usize);
            // The first half is reserved, and the pointer's low two bits count as zero.
            let Some([_, _, high, low]) = peeked else {
                return false;
            };
            let back = u64::from(u16::from_be_bytes([high, low & !3]));
            if back != marker.saturating_sub(start) {
                return false;
            }
            marker += MARKER_INTERVAL;
        }
        true
    }

    /// The ULPDU that [`poll`](Self::poll) has found; without octets if it has found none.
    #[must_use]
    pub fn ulpdu(&self) -> Ulpdu<'_> {
        let Current::Whole(extent) = self.current else {
            return Ulpdu::new([&[], &[]], self.at, false, 0);
        };
        self.ulpdu_within(extent)
    }

    fn ulpdu_within(&self, extent: Extent) -> Ulpdu<'_> {
        let octets = self.ring.range(extent.lead, extent.covered - extent.lead);
        let start = self.at + extent.lead as u64;
        Ulpdu::new(octets, start, self.markers.is_some(), extent.ulpdu_len)
    }

    /// Done with what [`poll`](Self::poll) has found.
    pub fn release(&mut self) {
        match &self.current {
            Current::Whole(extent) => self.consume(extent.total()),
            Current::Diverted(diverted) if diverted.verified => {
                self.consume(diverted.pad + CRC_LEN);
            }
            Current::Unknown | Current::Diverted(_) => return,
        }
        self.current = Current::Unknown;
    }

    /// Throws everything away that has come.
    pub fn discard(&mut self) {
        self.consume(self.ring.len());
    }

    fn consume(&mut self, octets: usize) {
        self.ring.release(octets);
        self.at += octets as u64;
    }
}
