//! Short messages as notes.
//!
//! ```text
//! word  bits 0..31    bit 31                bits 32..64
//! 0     bytes         has immediate data    the number of the message
//! 1, 2  the bytes, as they lie in memory; immediate data in the last four
//! ```

use sys::ring::Note;
use via::soft::Brief;

#[inline]
pub(crate) fn encode(message: Brief) -> Note {
    let Brief {
        seq,
        len,
        words: [low, high],
        immediate,
    } = message;
    let tail = immediate.map_or(high, |data| high & LOW | u64::from(data) << 32);
    let flag = if immediate.is_some() { IMMEDIATE } else { 0 };
    Note([u64::from(len | flag) | u64::from(seq) << 32, low, tail])
}

/// `None` if no honest peer wrote it.
#[inline]
pub(crate) fn decode(Note([word, low, high]): Note) -> Option<Brief> {
    let first = word as u32;
    let immediate = (first & IMMEDIATE != 0).then_some((high >> 32) as u32);
    let len = first & !IMMEDIATE;
    Brief::fits(len, immediate).then_some(Brief {
        seq: (word >> 32) as u32,
        len,
        words: [low, high],
        immediate,
    })
}

const IMMEDIATE: u32 = 1 << 31;
const LOW: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_as_it_was() {
        for len in 0..20 {
            for immediate in [None, Some(0), Some(u32::MAX)] {
                let message = Brief {
                    seq: 7,
                    len,
                    words: [u64::MAX; 2],
                    immediate,
                };
                let back = decode(encode(message));
                assert_eq!(back.is_some(), Brief::fits(len, immediate));
                let Some(back) = back else { continue };
                assert_eq!((back.seq, back.len, back.immediate), (7, len, immediate));
                let bytes = |brief: Brief| brief.words.map(u64::to_ne_bytes).concat();
                let len = len as usize;
                assert_eq!(bytes(back)[..len], bytes(message)[..len]);
            }
        }
        assert!(decode(Note([u64::from(u32::MAX), 0, 0])).is_none());
    }
}
