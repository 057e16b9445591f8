//! A run of the stream that waits to be written.

use crate::mpa::source::Place;

#[derive(Debug, Clone, Copy)]
pub(super) enum Run {
    Own { start: u64, len: u64 },
    Payload { place: Place, len: u64 },
}

impl Run {
    pub(super) fn len(self) -> u64 {
        match self {
            Self::Own { len, .. } | Self::Payload { len, .. } => len,
        }
    }

    pub(super) fn without_first(self, n: u64) -> Self {
        match self {
            Self::Own { start, len } => Self::Own {
                start: start + n,
                len: len - n,
            },
            Self::Payload { place, len } => Self::Payload {
                place: place.advanced(n),
                len: len - n,
            },
        }
    }

    pub(super) fn with_len(self, len: u64) -> Self {
        match self {
            Self::Own { start, .. } => Self::Own { start, len },
            Self::Payload { place, .. } => Self::Payload { place, len },
        }
    }
}
