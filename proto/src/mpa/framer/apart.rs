//! A short FPDU that need not wait behind others: it enters the stream only if the socket has not taken all of it.

use super::Framer;
use crate::mpa::crc::crc_of;
use crate::mpa::fpdu::{CRC_LEN, LENGTH_LEN, is_between_markers, pad_len};

/// Where it is framed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Apart {
    octets: [u8; FPDU_MAX],
    len: usize,
}

impl Default for Apart {
    fn default() -> Self {
        Self {
            octets: [0; FPDU_MAX],
            len: 0,
        }
    }
}

impl Framer {
    /// The FPDU around a ULPDU of `ulpdu_len` octets, which `fill` writes, as it is if it comes next: [say](Self::handle_apart_written) how much of
    /// it was written. `None` where something waits, a marker is due, it is too long, or `fill` refuses.
    #[inline(always)]
    pub fn frame_apart(
        &mut self,
        ulpdu_len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Option<&[u8]> {
        let covered_len = LENGTH_LEN + ulpdu_len + pad_len(ulpdu_len);
        let len = covered_len + CRC_LEN;
        let is_due = self.markers && !is_between_markers(self.queued, len);
        if self.waiting() > 0 || is_due {
            return None;
        }
        let octets = self.apart.octets.get_mut(..len)?;
        let (covered, crc) = octets.split_last_chunk_mut::<CRC_LEN>()?;
        // The pad is among these, unless the ULPDU is.
        *covered.last_chunk_mut()? = [0; 4];
        let (length, ulpdu) = covered.split_first_chunk_mut::<LENGTH_LEN>()?;
        *length = u16::try_from(ulpdu_len).ok()?.to_be_bytes();
        if !fill(ulpdu.get_mut(..ulpdu_len)?) {
            return None;
        }
        *crc = if self.crc {
            crc_of(covered)
        } else {
            [0; CRC_LEN]
        };
        self.apart.len = len;
        Some(octets)
    }

    /// The socket took the first `n` octets of what has just been [framed apart](Self::frame_apart), one at least; the others wait.
    #[inline(always)]
    pub fn handle_apart_written(&mut self, n: usize) {
        let len = self.apart.len;
        if n < len {
            return self.append_apart(n);
        }
        self.queued += len as u64;
        self.written = self.queued;
        self.complete = self.queued;
    }

    #[cold]
    fn append_apart(&mut self, n: usize) {
        let Apart { octets, len } = self.apart;
        self.append_own(octets.get(..len).unwrap_or_default());
        self.ends.push_back(self.queued);
        self.handle_written(n as u64);
    }
}

/// The longest ULPDU that can be framed apart.
pub const ULPDU_APART_MAX: usize = 530;
const FPDU_MAX: usize = LENGTH_LEN + ULPDU_APART_MAX + 3 + CRC_LEN;
