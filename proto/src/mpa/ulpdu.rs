//! One ULPDU where it lies, with the markers between.

use super::fpdu::{LENGTH_LEN, MARKER_INTERVAL, MARKER_LEN};

/// A ULPDU in the receive buffer: one DDP segment, or what has come of it.
#[derive(Debug, Clone)]
pub struct Ulpdu<'a> {
    pieces: Pieces<'a>,
    len: u16,
}

impl<'a> Ulpdu<'a> {
    /// From the octets of an FPDU, of which the first is of ULPDU_Length, at stream position `at`.
    pub(super) fn new(octets: [&'a [u8]; 2], at: u64, markers: bool, len: u16) -> Self {
        let mut pieces = Pieces {
            octets,
            at,
            left: usize::from(len),
            markers,
        };
        pieces.pass(LENGTH_LEN);
        Self { pieces, len }
    }

    /// ULPDU_Length, in octets.
    #[must_use]
    pub fn len(&self) -> u16 {
        self.len
    }

    /// Whether it is without octets, which no DDP segment is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its octets in order, each once, without markers; at most two runs unless there are markers.
    #[must_use]
    pub fn pieces(&self) -> Pieces<'a> {
        self.pieces.clone()
    }

    /// Copies the first octets; returns how many.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let mut copied = 0;
        for piece in self.pieces() {
            let Some(room) = into.get_mut(copied..).filter(|room| !room.is_empty()) else {
                break;
            };
            let n = piece.len().min(room.len());
            if let (Some(to), Some(from)) = (room.get_mut(..n), piece.get(..n)) {
                to.copy_from_slice(from);
            }
            copied += n;
        }
        copied
    }

    /// Its octets from the `from`th on.
    #[must_use]
    pub fn pieces_from(&self, from: usize) -> Pieces<'a> {
        let mut pieces = self.pieces();
        let mut left = from;
        while left > 0
            && pieces.next_run(left).is_some_and(|run| {
                left -= run.len();
                true
            })
        {}
        pieces
    }
}

/// The runs of octets of a ULPDU.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    octets: [&'a [u8]; 2],
    at: u64,
    left: usize,
    markers: bool,
}

impl<'a> Pieces<'a> {
    fn pass(&mut self, n: usize) {
        let [first, second] = self.octets;
        let of_first = n.min(first.len());
        let of_second = (n - of_first).min(second.len());
        self.octets = [
            first.get(of_first..).unwrap_or_default(),
            second.get(of_second..).unwrap_or_default(),
        ];
        self.at += n as u64;
    }

    fn next_run(&mut self, most: usize) -> Option<&'a [u8]> {
        if self.left == 0 {
            return None;
        }
        if self.markers && self.at.is_multiple_of(MARKER_INTERVAL) {
            self.pass(MARKER_LEN as usize);
        }
        if self.octets[0].is_empty() {
            self.octets = [self.octets[1], &[]];
        }
        let until_marker = if self.markers {
            (MARKER_INTERVAL - self.at % MARKER_INTERVAL) as usize
        } else {
            self.left
        };
        let len = most.min(self.left).min(until_marker);
        let run = self.octets[0];
        let run = run.get(..len).unwrap_or(run);
        if run.is_empty() {
            return None;
        }
        self.pass(run.len());
        self.left -= run.len();
        Some(run)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.next_run(usize::MAX)
    }
}
