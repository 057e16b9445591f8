//! A message of a few bytes, as a link takes and gives it: in registers.

/// A whole send of a few bytes.
#[derive(Debug, Clone, Copy)]
pub struct Brief {
    /// The number of the message.
    pub seq: u32,
    /// Bytes.
    pub len: u32,
    /// The bytes, as they lie in memory.
    pub words: [u64; 2],
    /// Immediate data, which take the place of four bytes.
    pub immediate: Option<u32>,
}

impl Brief {
    /// Whether a message is short enough.
    #[inline]
    #[must_use]
    pub fn fits(len: u32, immediate: Option<u32>) -> bool {
        len <= BRIEF_MAX - if immediate.is_some() { 4 } else { 0 }
    }

    /// The words of some bytes, of which there are at most [`BRIEF_MAX`].
    ///
    /// Here and in [`Brief::read`] nothing goes through memory: what is written in pieces and read as a whole has to be waited for, 5 ns each time.
    #[inline]
    #[must_use]
    pub fn words(bytes: &[u8]) -> [u64; 2] {
        let unfilled = |size: usize| 8 * (size.saturating_sub(bytes.len())) as u32;
        let words = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            // The last eight, of which the first word may have some.
            let rest = u64::from_le_bytes(*last).checked_shr(unfilled(16));
            [u64::from_le_bytes(*first), rest.unwrap_or(0)]
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let rest = u32::from_le_bytes(*last).checked_shr(unfilled(8));
            let rest = u64::from(rest.unwrap_or(0));
            [u64::from(u32::from_le_bytes(*first)) | rest << 32, 0]
        } else {
            let bytes = bytes.iter().rev();
            [bytes.fold(0, |word, byte| word << 8 | u64::from(*byte)), 0]
        };
        words.map(u64::to_le)
    }

    /// Copies as many of the bytes as there is room for.
    #[inline]
    pub fn read(&self, into: &mut [u8]) {
        let [low, high] = self.words.map(u64::from_le);
        let all = u128::from(low) | u128::from(high) << 64;
        let len = into.len();
        if len > BRIEF_MAX as usize {
            let (into, _) = into.split_at_mut(BRIEF_MAX as usize);
            return self.read(into);
        }
        if len >= size_of::<u64>() {
            let last = (all >> (8 * (len - size_of::<u64>()))) as u64;
            write(into.first_chunk_mut(), low.to_le_bytes());
            write(into.last_chunk_mut(), last.to_le_bytes());
        } else if len >= size_of::<u32>() {
            let last = (low >> (8 * (len - size_of::<u32>()))) as u32;
            write(into.first_chunk_mut(), (low as u32).to_le_bytes());
            write(into.last_chunk_mut(), last.to_le_bytes());
        } else {
            for (to, from) in into.iter_mut().zip(low.to_le_bytes()) {
                *to = from;
            }
        }
    }
}

#[inline]
fn write<const N: usize>(to: Option<&mut [u8; N]>, bytes: [u8; N]) {
    if let Some(to) = to {
        *to = bytes;
    }
}

/// Most bytes of a [`Brief`] without immediate data.
pub const BRIEF_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back_and_no_other_is_touched() {
        let bytes: Vec<u8> = (1..=BRIEF_MAX as u8).collect();
        for len in 0..=bytes.len() {
            let words = Brief::words(&bytes[..len]);
            let laid_out = words.map(u64::to_ne_bytes).concat();
            assert_eq!(laid_out[..len], bytes[..len]);
            assert!(laid_out[len..].iter().all(|byte| *byte == 0), "{len}");
            let brief = Brief {
                seq: 0,
                len: len as u32,
                words,
                immediate: None,
            };
            for room in [len, len / 2, bytes.len() + 3] {
                let mut into = vec![0xff; room];
                brief.read(&mut into);
                let there = room.min(bytes.len());
                assert_eq!(into[..there], laid_out[..there]);
                assert!(into[there..].iter().all(|byte| *byte == 0xff), "{room}");
            }
        }
    }
}
