//! The header of a segment.

use std::fmt;

use super::error::DdpError;

/// Octets of a tagged header.
pub const TAGGED_LEN: usize = 14;
/// Octets of an untagged header.
pub const UNTAGGED_LEN: usize = 18;
/// The queue of Sends.
pub const QN_SEND: u32 = 0;
/// The queue of RDMA Read and Atomic Requests.
pub const QN_REQUEST: u32 = 1;
/// The queue of Terminates.
pub const QN_TERMINATE: u32 = 2;
/// The queue of Atomic Responses (RFC 7306).
pub const QN_ATOMIC_RESPONSE: u32 = 3;

/// A steering tag: names memory that a peer may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stag(pub u32);

impl fmt::Display for Stag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The number of a message within its queue; the first is 1, and zero follows the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Msn(pub u32);

impl Msn {
    /// Of the first message.
    pub const FIRST: Self = Self(1);

    /// The number `n` further on.
    #[must_use]
    pub fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// How far it is from `first`, going up.
    #[must_use]
    pub fn since(self, first: Self) -> u32 {
        self.0.wrapping_sub(first.0)
    }
}

impl fmt::Display for Msn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// For memory that was told about.
    Tagged(Tagged),
    /// For a queue.
    Untagged(Untagged),
}

/// The header of a tagged segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tagged {
    /// Whether it is its message's last segment.
    pub last: bool,
    /// RDMAP's control octet.
    pub ulp: u8,
    /// Which memory.
    pub stag: Stag,
    /// Where in it the payload belongs (tagged offset).
    pub to: u64,
}

/// The header of an untagged segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untagged {
    /// Whether it is its message's last segment.
    pub last: bool,
    /// RDMAP's control octet.
    pub ulp: u8,
    /// RDMAP's other four octets: the STag to invalidate, or zero.
    pub ulp_word: u32,
    /// Queue number.
    pub queue: u32,
    /// Which message of the queue.
    pub msn: Msn,
    /// Where in the message the payload belongs (message offset).
    pub mo: u32,
}

impl Header {
    /// Reads the header at the beginning of a segment; what is behind it is payload.
    ///
    /// # Errors
    /// [`DdpError::Local`] when there is no room for a header, or the version's error.
    pub fn decode(octets: &[u8]) -> Result<Self, DdpError> {
        let control = *octets.first().ok_or(DdpError::Local)?;
        let last = control & FLAG_LAST != 0;
        let is_version = control & VERSION_MASK == VERSION;
        if control & FLAG_TAGGED != 0 {
            let header = octets.first_chunk::<TAGGED_LEN>().ok_or(DdpError::Local)?;
            if !is_version {
                return Err(DdpError::TaggedVersion);
            }
            let [_, ulp, a, b, c, d, to @ ..] = *header;
            return Ok(Self::Tagged(Tagged {
                last,
                ulp,
                stag: Stag(u32::from_be_bytes([a, b, c, d])),
                to: u64::from_be_bytes(to),
            }));
        }
        let header = octets
            .first_chunk::<UNTAGGED_LEN>()
            .ok_or(DdpError::Local)?;
        if !is_version {
            return Err(DdpError::UntaggedVersion);
        }
        let [_, ulp, a, b, c, d, e, f, g, h, i, j, k, l, mo @ ..] = *header;
        Ok(Self::Untagged(Untagged {
            last,
            ulp,
            ulp_word: u32::from_be_bytes([a, b, c, d]),
            queue: u32::from_be_bytes([e, f, g, h]),
            msn: Msn(u32::from_be_bytes([i, j, k, l])),
            mo: u32::from_be_bytes(mo),
        }))
    }

    /// The octets of the header.
    #[must_use]
    pub fn encode(&self) -> HeaderOctets {
        match self {
            Self::Tagged(header) => header.encode(),
            Self::Untagged(header) => header.encode(),
        }
    }

    /// How many octets it has.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no header is empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Tagged(_) => TAGGED_LEN,
            Self::Untagged(_) => UNTAGGED_LEN,
        }
    }

    /// Whether it is its message's last segment.
    #[must_use]
    pub fn is_last(&self) -> bool {
        match self {
            Self::Tagged(header) => header.last,
            Self::Untagged(header) => header.last,
        }
    }

    /// RDMAP's control octet.
    #[must_use]
    pub fn ulp(&self) -> u8 {
        match self {
            Self::Tagged(header) => header.ulp,
            Self::Untagged(header) => header.ulp,
        }
    }
}

impl Tagged {
    /// The octets of the header.
    #[must_use]
    pub fn encode(&self) -> HeaderOctets {
        let [a, b, c, d] = self.stag.0.to_be_bytes();
        let [e, f, g, h, i, j, k, l] = self.to.to_be_bytes();
        let control = control(FLAG_TAGGED, self.last);
        HeaderOctets::of(&[control, self.ulp, a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

impl Untagged {
    /// The octets of the header.
    #[must_use]
    pub fn encode(&self) -> HeaderOctets {
        HeaderOctets::of(&self.octets())
    }

    /// As [`encode`](Self::encode), for who needs no room behind them.
    #[must_use]
    #[inline]
    pub fn octets(&self) -> [u8; UNTAGGED_LEN] {
        let [a, b, c, d] = self.ulp_word.to_be_bytes();
        let [e, f, g, h] = self.queue.to_be_bytes();
        let [i, j, k, l] = self.msn.0.to_be_bytes();
        let [m, n, o, p] = self.mo.to_be_bytes();
        let control = control(0, self.last);
        [
            control, self.ulp, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p,
        ]
    }
}

fn control(tagged: u8, last: bool) -> u8 {
    tagged | VERSION | if last { FLAG_LAST } else { 0 }
}

/// The octets of a header and of the short bodies that may follow it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeaderOctets {
    octets: [u8; Self::MAX],
    len: usize,
}

impl HeaderOctets {
    /// An Atomic Request and a Terminate that echoes a Read Request are the longest.
    pub const MAX: usize = UNTAGGED_LEN + 52;

    /// These octets, as far as there is room.
    pub(crate) fn of(octets: &[u8]) -> Self {
        let mut header = Self::default();
        header.push(octets);
        header
    }

    /// As many as `fill` writes.
    pub(crate) fn filled(fill: impl FnOnce(&mut [u8]) -> usize) -> Self {
        let mut header = Self::default();
        header.len = fill(&mut header.octets).min(Self::MAX);
        header
    }

    /// Appends, as far as there is room.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        let room = self.octets.get_mut(self.len..).unwrap_or_default();
        let n = octets.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..n), octets.get(..n)) {
            to.copy_from_slice(from);
        }
        self.len += n;
    }
}

impl Default for HeaderOctets {
    fn default() -> Self {
        Self {
            octets: [0; Self::MAX],
            len: 0,
        }
    }
}

impl std::ops::Deref for HeaderOctets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or(&self.octets)
    }
}

impl fmt::Debug for HeaderOctets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for octet in self.iter() {
            write!(f, "{octet:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tagged(header) => write!(f, "stag {} to {:#x}", header.stag, header.to)?,
            Self::Untagged(header) => {
                write!(f, "qn {} msn {} mo {}", header.queue, header.msn, header.mo)?
            }
        }
        if self.is_last() {
            f.write_str(" last")?;
        }
        Ok(())
    }
}

const FLAG_TAGGED: u8 = 0x80;
const FLAG_LAST: u8 = 0x40;
const VERSION_MASK: u8 = 0x03;
const VERSION: u8 = 0x01;
