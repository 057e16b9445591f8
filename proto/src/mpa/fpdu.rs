//! How long things are.

/// Octets from the beginning of one marker to the next, the marker's own four included.
pub const MARKER_INTERVAL: u64 = 512;
/// Octets of a marker.
pub(crate) const MARKER_LEN: u64 = 4;
/// Octets of ULPDU_Length.
pub(crate) const LENGTH_LEN: usize = 2;
/// Octets of the checksum.
pub(crate) const CRC_LEN: usize = 4;
/// Longest ULPDU that may be sent, so that a marker can point back to the start of any FPDU.
pub const ULPDU_LEN_MAX: u16 = 64768;
/// MULPDU never falls below this, however small the segments of TCP are.
pub const ULPDU_LEN_MIN: u16 = 128;
/// The longest FPDU that a peer can announce (ULPDU_Length 65535, with markers), in octets.
pub const FPDU_LEN_MAX: usize = 65_544 + 4 * 132;

/// Octets of zero behind a ULPDU of this many.
#[must_use]
pub fn pad_len(ulpdu_len: usize) -> usize {
    (LENGTH_LEN + ulpdu_len).wrapping_neg() & 3
}

/// Octets of the FPDU around a ULPDU of this many, without markers.
#[must_use]
pub fn fpdu_len(ulpdu_len: usize) -> usize {
    LENGTH_LEN + ulpdu_len + pad_len(ulpdu_len) + CRC_LEN
}

/// MULPDU: the longest ULPDU whose FPDU fits into a TCP segment of `emss` octets.
///
/// Source: RFC 5044 section 4.5. At least [`ULPDU_LEN_MIN`], at most [`ULPDU_LEN_MAX`].
#[must_use]
pub fn mulpdu(emss: u32, markers: bool) -> u16 {
    let marked = if markers { 4 * emss.div_ceil(512) } else { 0 };
    let room = emss.saturating_sub(6 + marked + emss % 4);
    let room = u16::try_from(room).unwrap_or(ULPDU_LEN_MAX);
    room.clamp(ULPDU_LEN_MIN, ULPDU_LEN_MAX)
}

/// Whether no marker is due in `octets` of an FPDU that begins at position `at`.
#[inline]
pub(crate) fn is_between_markers(at: u64, octets: usize) -> bool {
    let behind = at % MARKER_INTERVAL;
    behind != 0 && behind + octets as u64 <= MARKER_INTERVAL
}

/// Octets of stream that `octets` of an FPDU take from position `at`, which is not a marker's.
pub(crate) fn span(at: u64, octets: usize, markers: bool) -> usize {
    let until_marker = (MARKER_INTERVAL - at % MARKER_INTERVAL) as usize;
    if !markers || octets <= until_marker {
        return octets;
    }
    let between = (MARKER_INTERVAL - MARKER_LEN) as usize;
    octets + MARKER_LEN as usize * (octets - until_marker).div_ceil(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c64_mulpdu() {
        assert_eq!(mulpdu(1448, false), 1442);
        assert_eq!(mulpdu(1448, true), 1430);
        assert_eq!(mulpdu(1449, false), 1442);
        assert_eq!(mulpdu(536, false), 530);
        assert_eq!(mulpdu(536, true), 522);
        assert_eq!(mulpdu(9000, false), 8994);
        assert_eq!(mulpdu(9000, true), 8922);
        assert_eq!(mulpdu(0, true), 128);
        assert_eq!(mulpdu(u32::MAX, true), 64768);
    }

    #[test]
    fn c50_pad() {
        for len in 14..=80 {
            assert!(pad_len(len) < 4, "{len}");
            assert_eq!((2 + len + pad_len(len)) % 4, 0, "{len}");
            assert_eq!(fpdu_len(len) % 4, 0, "{len}");
        }
    }

    #[test]
    fn the_longest_fpdu_is_as_long_as_said() {
        let longest = span(508, fpdu_len(65535), true);
        // A leading marker, and one before the CRC, are the worst that can be added.
        assert!(longest + 8 <= FPDU_LEN_MAX, "{longest}");
    }
}
