//! Cutting a message into segments.

/// The segments of one message, in order; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    len: u32,
    segment_len: u32,
    next: Option<u32>,
}

/// A piece of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Octets of the message before it.
    pub offset: u32,
    /// Its octets.
    pub len: u32,
    /// Whether it is the last.
    pub last: bool,
}

impl Cut {
    /// A message of `len` octets, under headers of `header_len`, for ULPDUs of at most `mulpdu`.
    #[must_use]
    pub fn new(len: u32, mulpdu: u16, header_len: usize) -> Self {
        let segment_len = usize::from(mulpdu).saturating_sub(header_len).max(1);
        Self {
            len,
            segment_len: segment_len as u32,
            next: Some(0),
        }
    }

    /// From `offset` on.
    #[must_use]
    pub fn starting_at(self, offset: u32) -> Self {
        Self {
            next: Some(offset.min(self.len)),
            ..self
        }
    }
}

impl Iterator for Cut {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let offset = self.next?;
        let left = self.len - offset;
        let len = left.min(self.segment_len);
        let last = len == left;
        self.next = (!last).then_some(offset + len);
        Some(Segment { offset, len, last })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TAGGED_LEN, UNTAGGED_LEN};
    use super::*;

    fn lens(cut: Cut) -> Vec<(u32, u32, bool)> {
        cut.map(|segment| (segment.offset, segment.len, segment.last))
            .collect()
    }

    #[test]
    fn c75_the_segments_of_2048_octets() {
        let untagged = lens(Cut::new(2048, 1500, UNTAGGED_LEN));
        assert_eq!(untagged, [(0, 1482, false), (1482, 566, true)]);
        let tagged = lens(Cut::new(2048, 1500, TAGGED_LEN));
        assert_eq!(tagged, [(0, 1486, false), (1486, 562, true)]);
    }

    #[test]
    fn c76_without_octets_it_is_one_segment() {
        assert_eq!(lens(Cut::new(0, 1500, UNTAGGED_LEN)), [(0, 0, true)]);
    }

    #[test]
    fn c94_the_longest_message_is_cut_without_overflow() {
        let mut expected = 0;
        for segment in Cut::new(u32::MAX, 64768, UNTAGGED_LEN) {
            assert_eq!(segment.offset, expected);
            expected = segment.offset + segment.len;
            assert_eq!(segment.last, expected == u32::MAX);
        }
        assert_eq!(expected, u32::MAX);
    }
}
