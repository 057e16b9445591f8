//! What the protocol's own messages carry.

use std::fmt;

use crate::ddp::Stag;

/// Memory at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Remote {
    /// Which region.
    pub stag: Stag,
    /// Tagged offset in it.
    pub to: u64,
}

impl Remote {
    /// `octets` further on.
    #[must_use]
    pub fn advanced(self, octets: u32) -> Self {
        Self {
            to: self.to.wrapping_add(octets.into()),
            ..self
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:#x}", self.stag, self.to)
    }
}

/// The body of an RDMA Read Request (RFC 5040 section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// The requester's memory, into which the response goes.
    pub sink: Remote,
    /// Octets to read.
    pub len: u32,
    /// The responder's memory.
    pub source: Remote,
}

impl ReadRequest {
    /// Octets of it.
    pub const LEN: usize = 28;

    /// Reads one.
    #[must_use]
    pub fn decode(octets: &[u8; Self::LEN]) -> Self {
        let [a, b, c, d, rest @ ..] = *octets;
        let [e, f, g, h, i, j, k, l, rest @ ..] = rest;
        let [m, n, o, p, q, r, s, t, to @ ..] = rest;
        Self {
            sink: Remote {
                stag: Stag(u32::from_be_bytes([a, b, c, d])),
                to: u64::from_be_bytes([e, f, g, h, i, j, k, l]),
            },
            len: u32::from_be_bytes([m, n, o, p]),
            source: Remote {
                stag: Stag(u32::from_be_bytes([q, r, s, t])),
                to: u64::from_be_bytes(to),
            },
        }
    }

    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut octets = [0; Self::LEN];
        put(
            &mut octets,
            &[
                &self.sink.stag.0.to_be_bytes(),
                &self.sink.to.to_be_bytes(),
                &self.len.to_be_bytes(),
                &self.source.stag.0.to_be_bytes(),
                &self.source.to.to_be_bytes(),
            ],
        );
        octets
    }

    /// What is left of it after `octets` have been sent.
    #[must_use]
    pub fn after(&self, octets: u32) -> Self {
        Self {
            sink: self.sink.advanced(octets),
            len: self.len.saturating_sub(octets),
            source: self.source.advanced(octets),
        }
    }
}

impl fmt::Display for ReadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {}", self.len, self.source, self.sink)
    }
}

/// What an atomic does to a 64-bit number (RFC 7306 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicOperation {
    /// Adds, in fields whose highest bits are set in `mask`: no carry leaves a field.
    FetchAdd {
        /// What to add.
        add: u64,
        /// The highest bit of each field; zero makes one field of all.
        mask: u64,
    },
    /// If the bits of `compare_mask` equal those of `compare`, replaces the bits of `swap_mask`.
    CompareSwap {
        /// The new bits.
        swap: u64,
        /// Which bits are replaced.
        swap_mask: u64,
        /// The expected bits.
        compare: u64,
        /// Which bits are compared.
        compare_mask: u64,
    },
}

impl AtomicOperation {
    /// What `original` becomes.
    #[must_use]
    pub fn apply(&self, original: u64) -> u64 {
        match *self {
            Self::FetchAdd { add, mask } => {
                // Without the highest bits of the fields no carry leaves one; these are then added
                // without.
                let low = (original & !mask).wrapping_add(add & !mask);
                low ^ ((original ^ add) & mask)
            }
            Self::CompareSwap {
                swap,
                swap_mask,
                compare,
                compare_mask,
            } => {
                if (compare ^ original) & compare_mask == 0 {
                    (original & !swap_mask) | (swap & swap_mask)
                } else {
                    original
                }
            }
        }
    }
}

/// The body of an Atomic Request (RFC 7306 section 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicRequest {
    /// What to do.
    pub operation: AtomicOperation,
    /// Comes back in the response.
    pub id: u32,
    /// To which number; its offset is a multiple of 8.
    pub target: Remote,
}

impl AtomicRequest {
    /// Octets of it.
    pub const LEN: usize = 52;

    /// Reads one; `None` when nobody knows its operation.
    #[must_use]
    pub fn decode(octets: &[u8; Self::LEN]) -> Option<Self> {
        let [_, _, _, code, a, b, c, d, e, f, g, h, rest @ ..] = *octets;
        let (numbers, _) = rest.as_chunks::<8>();
        let [to, data, mask, compare, compare_mask] = *numbers else {
            return None;
        };
        let [data, mask] = [data, mask].map(u64::from_be_bytes);
        let operation = match code & 0x0f {
            FETCH_ADD => AtomicOperation::FetchAdd { add: data, mask },
            COMPARE_SWAP => AtomicOperation::CompareSwap {
                swap: data,
                swap_mask: mask,
                compare: u64::from_be_bytes(compare),
                compare_mask: u64::from_be_bytes(compare_mask),
            },
            _ => return None,
        };
        Some(Self {
            operation,
            id: u32::from_be_bytes([a, b, c, d]),
            target: Remote {
                stag: Stag(u32::from_be_bytes([e, f, g, h])),
                to: u64::from_be_bytes(to),
            },
        })
    }

    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let (code, data, mask, compare, compare_mask) = match self.operation {
            AtomicOperation::FetchAdd { add, mask } => (FETCH_ADD, add, mask, 0, 0),
            AtomicOperation::CompareSwap {
                swap,
                swap_mask,
                compare,
                compare_mask,
            } => (COMPARE_SWAP, swap, swap_mask, compare, compare_mask),
        };
        let mut octets = [0; Self::LEN];
        put(
            &mut octets,
            &[
                &[0, 0, 0, code],
                &self.id.to_be_bytes(),
                &self.target.stag.0.to_be_bytes(),
                &self.target.to.to_be_bytes(),
                &data.to_be_bytes(),
                &mask.to_be_bytes(),
                &compare.to_be_bytes(),
                &compare_mask.to_be_bytes(),
            ],
        );
        octets
    }
}

impl fmt::Display for AtomicRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {} at {} {:x?}", self.id, self.target, self.operation)
    }
}

/// The body of an Atomic Response (RFC 7306 section 5.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicResponse {
    /// Of the request.
    pub id: u32,
    /// The number as it was before.
    pub original: u64,
}

impl AtomicResponse {
    /// Octets of it.
    pub const LEN: usize = 12;

    /// Reads one.
    #[must_use]
    pub fn decode(octets: &[u8; Self::LEN]) -> Self {
        let [a, b, c, d, original @ ..] = *octets;
        Self {
            id: u32::from_be_bytes([a, b, c, d]),
            original: u64::from_be_bytes(original),
        }
    }

    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut octets = [0; Self::LEN];
        put(
            &mut octets,
            &[&self.id.to_be_bytes(), &self.original.to_be_bytes()],
        );
        octets
    }
}

impl fmt::Display for AtomicResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {} was {:#x}", self.id, self.original)
    }
}

fn put(into: &mut [u8], fields: &[&[u8]]) {
    let octets = fields.iter().flat_map(|field| field.iter());
    for (to, from) in into.iter_mut().zip(octets) {
        *to = *from;
    }
}

const FETCH_ADD: u8 = 0;
const COMPARE_SWAP: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c131_a_fetch_add_keeps_its_fields_apart() {
        let halves = AtomicOperation::FetchAdd {
            add: 0x0000_0001_0000_0001,
            mask: 0x8000_0000_8000_0000,
        };
        assert_eq!(halves.apply(0x0000_0001_ffff_ffff), 0x0000_0002_0000_0000);
        assert_eq!(halves.apply(0xffff_ffff_0000_0000), 0x0000_0000_0000_0001);
        let whole = AtomicOperation::FetchAdd { add: 1, mask: 0 };
        assert_eq!(whole.apply(0xffff_ffff), 0x1_0000_0000);
        assert_eq!(whole.apply(u64::MAX), 0);
        let bits = AtomicOperation::FetchAdd {
            add: 0b1010,
            mask: u64::MAX,
        };
        assert_eq!(bits.apply(0b0110), 0b1100);
    }

    #[test]
    fn c132_a_compare_swap_looks_at_its_mask() {
        let swap = AtomicOperation::CompareSwap {
            swap: 0xabcd,
            swap_mask: 0xff00,
            compare: 0x12,
            compare_mask: 0xff,
        };
        assert_eq!(swap.apply(0x5512), 0xab12);
        assert_eq!(swap.apply(0x5513), 0x5513);
    }
}
