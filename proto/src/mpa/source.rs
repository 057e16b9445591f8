//! The driver's memory, as far as the sender of its payload needs it.

use std::fmt;

use super::crc::Crc;

/// Where in the driver's memory something lies.
///
/// `handle` is the driver's name for a piece of memory, and nobody else looks into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which memory.
    pub handle: u64,
    /// Octets from its beginning.
    pub offset: u64,
}

impl Place {
    /// The beginning of this memory.
    #[must_use]
    pub fn new(handle: u64) -> Self {
        Self { handle, offset: 0 }
    }

    /// `octets` further on.
    #[must_use]
    pub fn advanced(self, octets: u64) -> Self {
        Self {
            offset: self.offset.wrapping_add(octets),
            ..self
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{}", self.handle, self.offset)
    }
}

/// Memory that payload is sent from.
pub trait Source {
    /// Shows `len` octets from `place` on, in order and in as many runs as suits; for the CRC.
    ///
    /// # Errors
    /// [`SourceLost`] when that is no memory to send from any more.
    fn show(&self, place: Place, len: u32, see: impl FnMut(&[u8])) -> Result<(), SourceLost>;

    /// Copies octets from `place` on.
    ///
    /// # Errors
    /// As [`show`](Self::show).
    fn copy(&self, place: Place, into: &mut [u8]) -> Result<(), SourceLost> {
        let len = u32::try_from(into.len()).map_err(|_| SourceLost)?;
        let mut room = into;
        self.show(place, len, |octets| {
            let n = octets.len().min(room.len());
            let (now, later) = std::mem::take(&mut room).split_at_mut(n);
            now.copy_from_slice(octets.get(..n).unwrap_or_default());
            room = later;
        })?;
        if room.is_empty() {
            Ok(())
        } else {
            Err(SourceLost)
        }
    }

    /// Adds `len` octets from `place` on to a checksum.
    ///
    /// # Errors
    /// As [`show`](Self::show).
    fn digest(&self, place: Place, len: u32, crc: &mut Crc) -> Result<(), SourceLost> {
        self.show(place, len, |octets| crc.update(octets))
    }
}

/// The memory that payload was to be sent from has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the memory to send from has gone")]
pub struct SourceLost;
