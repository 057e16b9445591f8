//! What is posted, what is under way, and what has become of it.

use std::collections::VecDeque;

use proto::extended::{Place, Posted};
use sys::errno::Errno;
use via::Segment;

use super::region::{Parts, Slice};

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A posted send.
    Send,
    /// A posted receive.
    Recv,
    /// An RDMA write.
    Write,
    /// An RDMA read.
    Read,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What its poster called it.
    pub id: u64,
    /// What it was.
    pub op: Op,
    /// Bytes moved, or why not all were.
    pub result: Result<u32, Errno>,
}

/// An operation that has not begun, or not wholly.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) id: u64,
    pub(super) parts: Parts,
    pub(super) to: To,
    /// Bytes that are under way.
    pub(super) begun: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    /// The peer's oldest posted receive.
    Receive,
    /// Its memory.
    Memory(Place),
    /// Ours, from its memory.
    Here(Place),
}

impl Work {
    pub(super) fn op(&self) -> Op {
        match self.to {
            To::Receive => Op::Send,
            To::Memory(_) => Op::Write,
            To::Here(_) => Op::Read,
        }
    }
}

/// A descriptor on the VI's send queue.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// The slot that its frame is in.
    pub(super) slot: Option<u16>,
    /// The operation of which it is a part.
    pub(super) of: Option<(u64, Op)>,
    /// Where it is the last: the bytes, and the memory that must stay until then.
    pub(super) last: Option<Parts>,
}

/// A receive of ours that the peer knows of.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) id: u64,
    pub(super) parts: Parts,
    /// Whether the peer was told the places.
    pub(super) direct: bool,
    pub(super) got: u32,
}

impl Receive {
    /// Where all of it goes with one write of the peer's.
    pub(super) fn only_place(&self) -> Option<Segment> {
        let [slice] = self.parts.slices() else {
            return None;
        };
        self.direct.then(|| Segment {
            addr: slice.addr(),
            handle: slice.region.handle(),
            len: slice.len,
        })
    }

    /// As the peer is told of it.
    pub(super) fn posted(&self) -> Posted {
        let place = |slice: &Slice| Place {
            addr: slice.addr(),
            handle: slice.region.handle().0,
            len: slice.len,
        };
        let places = self.parts.slices().iter().filter(|_| self.direct);
        Posted {
            len: self.parts.len(),
            places: places.map(place).collect(),
        }
    }
}

/// What has ended and not been taken.
#[derive(Debug, Default)]
pub(super) struct Done {
    queue: VecDeque<Completion>,
    /// Operations posted whose completions have not been taken.
    outstanding: usize,
    /// Completions ever.
    total: u64,
}

impl Done {
    /// Makes room for one more.
    ///
    /// # Errors
    /// `EAGAIN` at [`OUTSTANDING_MAX`].
    pub(super) fn admit(&mut self) -> Result<(), Errno> {
        if self.outstanding >= OUTSTANDING_MAX {
            return Err(Errno::AGAIN);
        }
        self.outstanding += 1;
        Ok(())
    }

    pub(super) fn push(&mut self, id: u64, op: Op, result: Result<u32, Errno>) {
        self.queue.push_back(Completion { id, op, result });
        self.total += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Completion> {
        let completion = self.queue.pop_front()?;
        self.outstanding -= 1;
        Some(completion)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// Most operations of one socket that are posted or whose completions have not been taken.
pub const OUTSTANDING_MAX: usize = 1024;
