//! An FPDU whose payload goes straight to where it belongs.

use super::{Current, Deframer, Ready};
use crate::mpa::crc::Crc;
use crate::mpa::error::MpaError;
use crate::mpa::fpdu::{CRC_LEN, LENGTH_LEN, pad_len};
use crate::mpa::ulpdu::Ulpdu;

#[derive(Debug)]
pub(super) struct Diverted {
    crc: Option<Crc>,
    /// Octets of the ULPDU that are still to come.
    pub(super) left: usize,
    pub(super) pad: usize,
    pub(super) verified: bool,
}

impl Deframer {
    /// The FPDU that is on its way, if enough of it is here to see `head` octets of its ULPDU.
    ///
    /// `None` with markers, which would be among the payload, and when it is whole. The
    /// ULPDU has its announced length, but its pieces are only what has come.
    #[must_use]
    pub fn arriving(&self, head: usize) -> Option<Ulpdu<'_>> {
        if self.markers.is_some() || self.failed.is_some() {
            return None;
        }
        let Current::Unknown = self.current else {
            return None;
        };
        let extent = self.extent()?;
        let come = self.ring.len().checked_sub(LENGTH_LEN)?;
        let ulpdu_len = usize::from(extent.ulpdu_len);
        (come >= head && come < ulpdu_len).then(|| self.ulpdu_within(extent))
    }

    /// Takes what has come of the [arriving](Self::arriving) ULPDU as seen; the rest will go
    /// elsewhere, straight from the socket. Returns how many octets that is.
    ///
    /// Placing before the checksum is known leaves the memory indeterminate until
    /// [`poll`](Self::poll) says [`Ready::Diverted`].
    pub fn divert(&mut self) -> usize {
        let Some(ulpdu) = self.arriving(0) else {
            return 0;
        };
        let ulpdu_len = usize::from(ulpdu.len());
        let come = self.ring.len();
        let left = ulpdu_len + LENGTH_LEN - come;
        let crc = self.crc.then(|| {
            let mut crc = Crc::new();
            for octets in self.ring.range(0, come) {
                crc.update(octets);
            }
            crc
        });
        self.consume(come);
        self.current = Current::Diverted(Diverted {
            crc,
            left,
            pad: pad_len(ulpdu_len),
            verified: false,
        });
        left
    }

    /// How many octets of a diverted ULPDU are still to come: that many of the socket's next ones
    /// must not go into the space.
    #[must_use]
    pub fn diverted_left(&self) -> usize {
        match &self.current {
            Current::Diverted(diverted) => diverted.left,
            Current::Unknown | Current::Whole(_) => 0,
        }
    }

    /// The checksum of a diverted ULPDU, if there is one: the next octets belong to it once they are in their place,
    /// and before [`handle_diverted`](Self::handle_diverted).
    pub fn diverted_crc(&mut self) -> Option<&mut Crc> {
        match &mut self.current {
            Current::Diverted(Diverted { crc, .. }) => crc.as_mut(),
            Current::Unknown | Current::Whole(_) => None,
        }
    }

    /// `n` octets of a diverted ULPDU have come, and are in their place.
    pub fn handle_diverted(&mut self, n: usize) {
        if let Current::Diverted(diverted) = &mut self.current {
            let n = n.min(diverted.left);
            diverted.left -= n;
            self.at += n as u64;
        }
    }

    pub(super) fn poll_diverted(&mut self) -> Result<Ready, MpaError> {
        let Current::Diverted(diverted) = &mut self.current else {
            return Ok(Ready::Nothing);
        };
        if diverted.verified {
            return Ok(Ready::Diverted);
        }
        if diverted.left > 0 || self.ring.len() < diverted.pad + CRC_LEN {
            return Ok(Ready::Nothing);
        }
        if let Some(crc) = &mut diverted.crc {
            for octets in self.ring.range(0, diverted.pad) {
                crc.update(octets);
            }
            if self.ring.peek(diverted.pad) != Some(crc.octets()) {
                return Err(MpaError::Crc);
            }
        }
        diverted.verified = true;
        Ok(Ready::Diverted)
    }
}
