//! An FPDU that was read past the buffer.

use super::{Current, Deframer};
use crate::mpa::crc::Crc;
use crate::mpa::fpdu::{CRC_LEN, LENGTH_LEN, pad_len};

impl Deframer {
    /// Whether the next octet of the stream begins an FPDU, and no marker is among those that follow.
    #[must_use]
    #[inline]
    pub fn is_between(&self) -> bool {
        let is_unknown = matches!(self.current, Current::Unknown) && self.failed.is_none();
        is_unknown && self.ring.len() == 0 && self.markers.is_none()
    }

    /// An FPDU, all of which was read [elsewhere](Self::is_between): its octets up to the payload, which `digest` adds to a checksum, and those behind it.
    /// Whether it is one, and right; else nothing has changed.
    #[inline]
    pub fn pass(
        &mut self,
        before: &[u8],
        payload: usize,
        behind: &[u8],
        digest: impl FnOnce(&mut Crc) -> bool,
    ) -> bool {
        let Some((length, head)) = before.split_first_chunk::<LENGTH_LEN>() else {
            return false;
        };
        let ulpdu_len = head.len() + payload;
        let is_long = usize::from(u16::from_be_bytes(*length)) == ulpdu_len;
        let Some((pad, word)) = behind.split_last_chunk::<CRC_LEN>() else {
            return false;
        };
        if !self.is_between() || !is_long || pad.len() != pad_len(ulpdu_len) {
            return false;
        }
        if self.crc {
            let mut crc = Crc::new();
            crc.update(before);
            if !digest(&mut crc) {
                return false;
            }
            crc.update(pad);
            if crc.octets() != *word {
                return false;
            }
        }
        self.at += (before.len() + payload + behind.len()) as u64;
        true
    }
}
