//! Registered memory of an extended socket, pieces of it, and what the peer tells of its own.

use std::ops::Range;
use std::sync::Arc;

use proto::extended::Advert;
use sys::errno::Errno;
use sys::sync::{Ordering, mapped::AtomicU32};
use via::{Access, MemHandle, Memory, Segment};

/// Memory that posted operations of one socket use (`sovia_register`). It stays registered while a clone of it or an operation on it is left.
#[derive(Clone, Debug)]
pub struct Region(pub(super) Arc<Registered>);

#[derive(Debug)]
pub(super) struct Registered {
    /// Of which socket.
    pub(super) socket: u64,
    pub(super) access: Access,
    pub(super) region: via::Region,
}

impl Region {
    /// The bytes. The peer may change them at any time, as far as its rights go: they are copied in and out, never lent.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        self.0.region.memory()
    }

    /// Bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.region.len()
    }

    /// What the peer may do with it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.0.access
    }

    /// Its number, by which the peer names it too; never 0.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.handle().0
    }

    /// How many others have it: clones, and operations that are under way.
    #[must_use]
    pub fn users(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// A piece, for a posted operation; bytes from the start.
    ///
    /// # Errors
    /// `EFAULT` if it is not within the region, or the range is no range.
    pub fn slice(&self, range: Range<usize>) -> Result<Slice, Errno> {
        if range.start > range.end || range.end > self.len() {
            return Err(Errno::FAULT);
        }
        let len = u32::try_from(range.end - range.start).map_err(|_| Errno::MSGSIZE)?;
        Ok(Slice {
            region: self.clone(),
            offset: range.start,
            len,
        })
    }

    /// All of it.
    ///
    /// # Errors
    /// `EMSGSIZE` from 4 GiB up.
    pub fn whole(&self) -> Result<Slice, Errno> {
        self.slice(0..self.len())
    }

    pub(super) fn handle(&self) -> MemHandle {
        self.0.region.handle()
    }
}

/// A piece of a [`Region`], which it keeps registered.
#[derive(Clone, Debug)]
pub struct Slice {
    pub(super) region: Region,
    pub(super) offset: usize,
    pub(super) len: u32,
}

impl Slice {
    /// Bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a number, not a collection")]
    pub fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn addr(&self) -> u64 {
        self.region.0.region.addr() + self.offset as u64
    }
}

/// A region of the peer's, of which it has told (`sovia_advertise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub(super) socket: u64,
    pub(super) id: u32,
    pub(super) advert: Advert,
}

impl Remote {
    /// What the peer of `socket` has told of, with a number of its own.
    pub(super) fn new(socket: u64, advert: Advert) -> Self {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { socket, id, advert }
    }

    /// This process's number of it. Peers number their regions alike: by this no other socket's is taken for it, until there have been 2^32.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What the peer calls it.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.advert.tag
    }

    /// Bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a number, not a collection")]
    pub fn len(&self) -> u64 {
        self.advert.len
    }

    /// The peer's number of it.
    #[must_use]
    pub fn handle(&self) -> u32 {
        self.advert.handle
    }

    /// Whether it may be read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.advert.rights.read
    }

    /// Whether it may be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.advert.rights.write
    }
}

/// Slices, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    slices: Vec<Slice>,
    len: u32,
}

impl Parts {
    /// # Errors
    /// `EINVAL` for too many, or for memory of another socket; `EMSGSIZE` from 4 GiB up.
    pub(super) fn new(slices: &[Slice], socket: u64) -> Result<Self, Errno> {
        let foreign = |slice: &Slice| slice.region.0.socket != socket;
        if slices.len() > SLICES_MAX || slices.iter().any(foreign) {
            return Err(Errno::INVAL);
        }
        let mut len = 0u32;
        for slice in slices {
            len = len.checked_add(slice.len).ok_or(Errno::MSGSIZE)?;
        }
        Ok(Self {
            slices: slices.to_vec(),
            len,
        })
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Whether the peer may write to all of them.
    pub(super) fn are_open(&self) -> bool {
        let open =
            |slice: &Slice| matches!(slice.region.access(), Access::Write | Access::ReadWrite);
        self.slices.iter().all(open)
    }

    /// Calls `visit` with what there is of each slice from `offset` on, `len` bytes in all.
    pub(super) fn each(&self, offset: u32, len: u32, mut visit: impl FnMut(&Slice, usize, u32)) {
        let (mut skip, mut left) = (offset, len);
        for slice in &self.slices {
            if skip >= slice.len {
                skip -= slice.len;
                continue;
            }
            let here = (slice.len - skip).min(left);
            if here == 0 {
                return;
            }
            visit(slice, skip as usize, here);
            left -= here;
            skip = 0;
        }
    }

    /// The same as segments of a descriptor.
    pub(super) fn segments(&self, offset: u32, len: u32, mut add: impl FnMut(Segment)) {
        self.each(offset, len, |slice, skip, len| {
            add(Segment {
                addr: slice.addr() + skip as u64,
                handle: slice.region.handle(),
                len,
            });
        });
    }
}

static NEXT: AtomicU32 = AtomicU32::new(1);
/// Most slices of one operation.
pub const SLICES_MAX: usize = proto::extended::PLACES_MAX;
