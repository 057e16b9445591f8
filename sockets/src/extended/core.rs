//! What is behind the lock of an extended socket: what the peer says and what it is told.
//!
//! Whoever calls moves everything that can be moved ([`Core::progress`]): frames in, completions, operations that have waited, grants.

mod end;
mod hear;
mod say;
mod show;
mod stream;

use std::collections::VecDeque;

use proto::extended::{CREDITS, Frame, Grants, Posted, SLOT, VERSION};
use sys::double::{Double, Sign};
use sys::errno::Errno;
use via::{
    Access, CompletedOp, Cq, Descriptor, Done as Head, Memory, Nic, Ptag, Queue, Vi, ViConfig,
    ViState,
};

use self::stream::Stream;
use super::region::Remote;
use super::work::{Done, Receive, UnderWay, Work};
use crate::stat::Tally;

/// The state of one socket.
pub(super) struct Core {
    // In this order: the queue must outlive the VI.
    pub(super) vi: Vi,
    cq: Cq,
    slots: via::Region,
    /// Send slots that are free.
    free: Vec<u16>,
    under_way: VecDeque<UnderWay>,
    max_transfer: u32,
    may: Grants,
    owed: Grants,
    head: Vec<u8>,
    scratch: Vec<u8>,
    heard_hello: bool,
    /// What is still to be said, in order.
    pub(super) to_say: VecDeque<Frame<'static>>,
    pub(super) pending: VecDeque<Work>,
    pub(super) receives: VecDeque<Receive>,
    /// So many of them the peer has been told of, the first.
    announced: usize,
    peer_receives: VecDeque<Posted>,
    pub(super) remotes: VecDeque<Remote>,
    /// Handles and tags of the regions that the peer has been told of.
    pub(super) told: Vec<(u32, u64)>,
    pub(super) done: Done,
    pub(super) stream: Stream,
    pub(super) double: Double,
    /// Shows completions, to the program.
    pub(super) sign: Option<Sign>,
    /// The same, and that there will be no more, to calls that wait for one.
    pub(super) bed: Option<Sign>,
    /// For each call that waits for the peer to tell of a region, or for more than the bytes that it peeks at.
    pub(super) news: Vec<(u64, Sign)>,
    shown: (u64, u64),
    /// Whether somebody polls the descriptors.
    pub(super) watched: bool,
    /// Calls that are about to sleep on them, or do.
    pub(super) sleepers: u32,
    /// Whether the NIC has been asked to call when something comes.
    pub(super) armed: bool,
    socket: u64,
    /// A receive was given back: the connection has ended, or is about to.
    broken: bool,
    /// Why there is no connection any more.
    pub(super) gone: Option<Errno>,
    /// Whether the program has closed it.
    pub(super) is_closed: bool,
    /// Whether there was more than one turn takes.
    pub(super) more: bool,
    /// What others see of it.
    pub(super) tally: Tally,
}

impl Core {
    /// Around a VI that is not connected yet, with receives posted.
    pub(super) fn new(nic: &Nic, tag: &Ptag, socket: u64) -> Result<Self, via::Error> {
        let cq = nic.create_cq(CQ_ENTRIES)?;
        let max_transfer = nic.attributes().max_transfer_size;
        let config = ViConfig::new(tag)
            .max_transfer_size(max_transfer)
            .accept_rdma_read()
            .accept_rdma_write()
            .send_cq(&cq)
            .recv_cq(&cq);
        let vi = nic.create_vi(&config)?;
        let memory =
            Memory::private(2 * usize::from(SLOTS) * SLOT).map_err(|_| via::Error::Resource)?;
        let slots = nic.register(memory, tag, Access::Local)?;
        let core = Self {
            vi,
            cq,
            slots,
            free: (SLOTS..2 * SLOTS).rev().collect(),
            under_way: VecDeque::new(),
            max_transfer,
            may: Grants {
                stream: CREDITS,
                control: CREDITS,
            },
            owed: Grants::default(),
            head: Vec::new(),
            scratch: Vec::new(),
            heard_hello: false,
            to_say: VecDeque::from([Frame::Hello { version: VERSION }]),
            pending: VecDeque::new(),
            receives: VecDeque::new(),
            announced: 0,
            peer_receives: VecDeque::new(),
            remotes: VecDeque::new(),
            told: Vec::new(),
            done: Done::default(),
            stream: Stream::default(),
            double: Double::new().map_err(|_| via::Error::Resource)?,
            sign: None,
            bed: None,
            news: Vec::new(),
            shown: (0, 0),
            watched: false,
            sleepers: 0,
            armed: false,
            socket,
            broken: false,
            gone: None,
            is_closed: false,
            more: false,
            tally: Tally::default(),
        };
        for slot in 0..SLOTS {
            core.post_slot(slot)?;
        }
        Ok(core)
    }

    pub(super) fn cq(&self) -> &Cq {
        &self.cq
    }

    /// Moves what can be moved.
    pub(super) fn progress(&mut self) {
        if self.gone.is_none() {
            if self.armed || self.is_closed {
                // Entries may have gone to who was asked for, or have been slept for.
                self.take_all();
            } else {
                self.take_entries();
            }
            if self.broken && !self.more && self.vi.state() != Ok(ViState::Connected) {
                self.lose(Errno::CONNRESET);
            }
            self.pump();
        }
        self.show();
    }

    /// Takes what the completion queue tells of: one look at the connection, and none more.
    fn take_entries(&mut self) {
        self.more = true;
        for _ in 0..TURN {
            let Ok(Some(entry)) = self.cq.done() else {
                self.more = false;
                break;
            };
            match entry.queue {
                Queue::Recv => _ = self.take_received(),
                Queue::Send => _ = self.take_sent(),
            }
            if self.gone.is_some() {
                break;
            }
        }
    }

    /// Takes whatever has completed.
    fn take_all(&mut self) {
        while let Ok(Some(_)) = self.cq.done() {}
        self.more = true;
        for _ in 0..TURN {
            if !self.take_received() {
                self.more = false;
                break;
            }
        }
        while self.gone.is_none() && self.take_sent() {}
    }

    /// Takes what has come into one receive; whether there was one that has ended.
    fn take_received(&mut self) -> bool {
        let Ok(Head::Completed(got)) = self.vi.recv_done() else {
            return false;
        };
        let Ok(got) = got.ok() else {
            self.broken = true;
            return true;
        };
        let slot = got.token as u16;
        let heard = match got.immediate {
            Some(word) if got.status.op() == CompletedOp::RemoteRdmaWrite => {
                self.hear_placed(Grants::of_word(word), got.length)
            }
            _ => self.hear(slot, got.length as usize),
        };
        let heard = heard.and_then(|stays| self.take_back(slot, stays));
        if let Err(errno) = heard {
            self.lose(errno);
        }
        true
    }

    /// Whether all that was to go has gone.
    pub(super) fn is_flushed(&self) -> bool {
        let has_ended = self.stream.said_fin || !self.stream.wants_fin;
        self.gone.is_some() || (self.under_way.is_empty() && has_ended)
    }

    fn post_slot(&self, slot: u16) -> Result<(), via::Error> {
        let start = u32::from(slot) * SLOT as u32;
        let room = Descriptor::recv().segment(&self.slots, start..start + SLOT as u32);
        self.vi.post_recv(&room, u64::from(slot))
    }
}

/// Receives that are posted for frames; and as many slots to send from.
const SLOTS: u16 = 2 * CREDITS;
/// Up to here a message is copied into the peer's memory twice, and needs one frame.
const EAGER_MAX: u32 = 4096;
/// Descriptors on the VI's send queue.
const UNDER_WAY_MAX: usize = 1024;
const CQ_ENTRIES: u32 = 4096;
/// Frames that are heard in one go.
const TURN: usize = 256;
/// Receives, and regions, that a peer may tell of.
const PEERS_MAX: usize = 1024;
