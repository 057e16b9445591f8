//! Request and Reply: the frames of startup.

use std::fmt;

use super::error::MpaError;

/// Most octets of private data, those of RFC 6581 included.
pub const PRIVATE_DATA_MAX: usize = 512;
/// The depth that says "not negotiated" (RFC 6581 section 9.1).
pub const NOT_NEGOTIATED: u16 = 0x3fff;
/// Octets before the private data.
pub(super) const HEADER_LEN: usize = 20;
/// Octets that RFC 6581 puts before the private data.
pub(super) const ENHANCED_LEN: usize = 4;

/// Which of the two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From the initiator.
    Request,
    /// From the responder.
    Reply,
}

impl Kind {
    /// The sixteen octets that it begins with.
    #[must_use]
    pub fn key(self) -> &'static [u8; 16] {
        match self {
            Self::Request => b"MPA ID Req Frame",
            Self::Reply => b"MPA ID Rep Frame",
        }
    }
}

/// The flags of a startup frame; reserved ones are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags {
    /// M: the peer shall put markers into what it sends.
    pub markers: bool,
    /// C: the sender of the frame wants checksums.
    pub crc: bool,
    /// R: the responder refuses.
    pub rejected: bool,
}

/// A ready-to-receive message, with which an initiator speaks first (RFC 6581).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rtr {
    /// A zero-length RDMA Write.
    Write,
    /// A zero-length RDMA Read.
    Read,
    /// A zero-length Send.
    Send,
}

impl Rtr {
    /// In the order of preference.
    pub const ALL: [Self; 3] = [Self::Write, Self::Read, Self::Send];
}

impl fmt::Display for Rtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Send => "send",
        })
    }
}

/// Some ready-to-receive messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RtrSet {
    /// Zero-length RDMA Write.
    pub write: bool,
    /// Zero-length RDMA Read.
    pub read: bool,
    /// Zero-length Send.
    pub send: bool,
}

impl RtrSet {
    /// Without any.
    pub const EMPTY: Self = Self {
        write: false,
        read: false,
        send: false,
    };
    /// What peers are known to take.
    pub const WRITE_OR_READ: Self = Self {
        write: true,
        read: true,
        send: false,
    };

    /// Whether `rtr` is among them.
    #[must_use]
    pub fn contains(self, rtr: Rtr) -> bool {
        match rtr {
            Rtr::Write => self.write,
            Rtr::Read => self.read,
            Rtr::Send => self.send,
        }
    }

    /// Those that are in both.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self {
            write: self.write && other.write,
            read: self.read && other.read,
            send: self.send && other.send,
        }
    }

    /// The one to use.
    #[must_use]
    pub fn preferred(self) -> Option<Rtr> {
        Rtr::ALL.into_iter().find(|rtr| self.contains(*rtr))
    }
}

/// What RFC 6581 puts before the private data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Enhanced {
    /// A: the initiator sends the first message, an RTR.
    pub peer_to_peer: bool,
    /// B, C, D: which ones its sender can take or produce.
    pub rtr: RtrSet,
    /// How many RDMA Reads its sender answers at a time; 14 bits.
    pub ird: u16,
    /// How many RDMA Reads its sender asks at a time; 14 bits.
    pub ord: u16,
}

impl Enhanced {
    fn encode(self) -> [u8; ENHANCED_LEN] {
        let bit = |on: bool, mask: u16| if on { mask } else { 0 };
        let first =
            bit(self.peer_to_peer, 0x8000) | bit(self.rtr.send, 0x4000) | self.ird & NOT_NEGOTIATED;
        let second =
            bit(self.rtr.write, 0x8000) | bit(self.rtr.read, 0x4000) | self.ord & NOT_NEGOTIATED;
        let [a, b] = first.to_be_bytes();
        let [c, d] = second.to_be_bytes();
        [a, b, c, d]
    }

    fn decode([a, b, c, d]: [u8; ENHANCED_LEN]) -> Self {
        let first = u16::from_be_bytes([a, b]);
        let second = u16::from_be_bytes([c, d]);
        Self {
            peer_to_peer: first & 0x8000 != 0,
            rtr: RtrSet {
                write: second & 0x8000 != 0,
                read: second & 0x4000 != 0,
                send: first & 0x4000 != 0,
            },
            ird: first & NOT_NEGOTIATED,
            ord: second & NOT_NEGOTIATED,
        }
    }
}

impl fmt::Display for Enhanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IRD {} ORD {}", self.ird, self.ord)?;
        if self.peer_to_peer {
            f.write_str(" peer-to-peer")?;
        }
        for rtr in Rtr::ALL.into_iter().filter(|rtr| self.rtr.contains(*rtr)) {
            write!(f, " RTR {rtr}")?;
        }
        Ok(())
    }
}

/// A Request or Reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Startup {
    /// Which.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// Revision: 1 is RFC 5044's, 2 RFC 6581's.
    pub revision: u8,
    /// What RFC 6581 adds, if flag S is set.
    pub enhanced: Option<Enhanced>,
    /// What the user of the connection says, RFC 6581's octets not included.
    pub private_data: Vec<u8>,
}

impl Startup {
    /// The octets of the frame. Private data beyond the longest is for the caller to refuse.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let bit = |on: bool, mask: u8| if on { mask } else { 0 };
        let flags = bit(self.flags.markers, FLAG_M)
            | bit(self.flags.crc, FLAG_C)
            | bit(self.flags.rejected, FLAG_R)
            | bit(self.enhanced.is_some(), FLAG_S);
        let enhanced = self.enhanced.map(Enhanced::encode);
        let enhanced = enhanced.as_ref().map_or(&[] as &[u8], |octets| octets);
        let len = u16::try_from(enhanced.len() + self.private_data.len()).unwrap_or(u16::MAX);
        let [high, low] = len.to_be_bytes();
        let mut octets = self.kind.key().to_vec();
        octets.extend([flags, self.revision, high, low]);
        octets.extend(enhanced);
        octets.extend(&self.private_data);
        octets
    }

    /// How many octets the frame has that begins with `octets`: of its first twenty if those
    /// are not there yet.
    ///
    /// # Errors
    /// [`MpaError::Startup`] as soon as it is seen that this is no good frame of this `kind`.
    pub fn expected_len(kind: Kind, octets: &[u8]) -> Result<usize, MpaError> {
        let key = octets.get(..16).unwrap_or(octets);
        if !kind.key().starts_with(key) {
            return Err(MpaError::Startup);
        }
        let Some([_, revision, high, low]) = octets.get(16..).and_then(|rest| rest.first_chunk())
        else {
            return Ok(HEADER_LEN);
        };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let is_good = matches!(revision, 1 | 2) && len <= PRIVATE_DATA_MAX;
        if is_good {
            Ok(HEADER_LEN + len)
        } else {
            Err(MpaError::Startup)
        }
    }

    /// Reads a whole frame.
    ///
    /// Flag S counts only from revision 2 on; before, its bit is reserved.
    ///
    /// # Errors
    /// [`MpaError::Startup`] when it is improperly formatted, or not exactly as long as it says.
    pub fn decode(kind: Kind, octets: &[u8]) -> Result<Self, MpaError> {
        if Self::expected_len(kind, octets)? != octets.len() {
            return Err(MpaError::Startup);
        }
        let Some((header, private_data)) = octets.split_first_chunk::<HEADER_LEN>() else {
            return Err(MpaError::Startup);
        };
        let [.., flags, revision, _, _] = *header;
        let (enhanced, private_data) = if revision >= 2 && flags & FLAG_S != 0 {
            let (enhanced, rest) = private_data.split_first_chunk().ok_or(MpaError::Startup)?;
            (Some(Enhanced::decode(*enhanced)), rest)
        } else {
            (None, private_data)
        };
        Ok(Self {
            kind,
            flags: Flags {
                markers: flags & FLAG_M != 0,
                crc: flags & FLAG_C != 0,
                rejected: kind == Kind::Reply && flags & FLAG_R != 0,
            },
            revision,
            enhanced,
            private_data: private_data.to_vec(),
        })
    }
}

impl fmt::Display for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPA {:?} rev {}", self.kind, self.revision)?;
        for (on, name) in [
            (self.flags.markers, "markers"),
            (self.flags.crc, "crc"),
            (self.flags.rejected, "rejected"),
        ] {
            if on {
                write!(f, " {name}")?;
            }
        }
        if let Some(enhanced) = self.enhanced {
            write!(f, " {enhanced}")?;
        }
        write!(f, " private {}", self.private_data.len())
    }
}

const FLAG_M: u8 = 0x80;
const FLAG_C: u8 = 0x40;
const FLAG_R: u8 = 0x20;
const FLAG_S: u8 = 0x10;
