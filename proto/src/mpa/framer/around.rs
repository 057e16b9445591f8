//! An FPDU around payload that need not wait behind others: it enters the stream only if the socket has not taken all of it.

use super::Framer;
use super::run::Run;
use crate::mpa::crc::Crc;
use crate::mpa::fpdu::{CRC_LEN, LENGTH_LEN, pad_len};
use crate::mpa::source::Place;

/// What is before and behind the payload.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around {
    octets: [u8; AROUND_MAX],
    before: usize,
    len: usize,
    payload: u32,
}

impl Framer {
    /// What goes before and behind `payload` octets, which follow `head` in their ULPDU, as it is if that comes next: [say](Self::handle_around_written)
    /// how much was written. `digest` adds the payload to a checksum. `None` where something waits, there are markers, it is too long, or `digest` refuses.
    #[inline]
    pub fn frame_around(
        &mut self,
        head: &[u8],
        payload: u32,
        digest: impl FnOnce(&mut Crc) -> bool,
    ) -> Option<[&[u8]; 2]> {
        let ulpdu_len = head.len() + payload as usize;
        let length = u16::try_from(ulpdu_len).ok()?;
        if self.waiting() > 0 || self.markers {
            return None;
        }
        let before = LENGTH_LEN + head.len();
        let pad = pad_len(ulpdu_len);
        let len = before + pad + CRC_LEN;
        let octets = self.around.octets.get_mut(..len)?;
        let (front, back) = octets.split_at_mut_checked(before)?;
        let (at, room) = front.split_first_chunk_mut::<LENGTH_LEN>()?;
        *at = length.to_be_bytes();
        room.copy_from_slice(head);
        let (zeros, word) = back.split_last_chunk_mut::<CRC_LEN>()?;
        zeros.fill(0);
        *word = [0; CRC_LEN];
        if self.crc {
            let mut crc = Crc::new();
            crc.update(front);
            if !digest(&mut crc) {
                return None;
            }
            crc.update(zeros);
            *word = crc.octets();
        }
        (self.around.before, self.around.len, self.around.payload) = (before, len, payload);
        Some([front, back])
    }

    /// The socket took the first `n` octets of what has just been [framed](Self::frame_around) and of the payload within, one at least; the others wait,
    /// those of the payload at `place`. Whether it took all of them.
    #[inline]
    pub fn handle_around_written(&mut self, n: usize, place: Place) -> bool {
        let len = self.around.len + self.around.payload as usize;
        if n < len {
            self.append_around(n, place);
            return false;
        }
        self.queued += len as u64;
        self.written = self.queued;
        self.complete = self.queued;
        true
    }

    #[cold]
    fn append_around(&mut self, n: usize, place: Place) {
        let Around {
            octets,
            before,
            len,
            payload,
        } = self.around;
        self.append_own(octets.get(..before).unwrap_or_default());
        let run = Run::Payload {
            place,
            len: payload.into(),
        };
        self.runs.push_back(run);
        self.queued += u64::from(payload);
        self.append_own(octets.get(before..len).unwrap_or_default());
        self.ends.push_back(self.queued);
        self.handle_written(n as u64);
    }
}

/// A length, the longest header of those that payload follows, pad and checksum.
const AROUND_MAX: usize = LENGTH_LEN + 18 + 3 + CRC_LEN;
