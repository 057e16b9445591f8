//! What is behind the lock of an extended socket: what the peer says and what it is told.
//!
//! Whoever calls moves everything that can be moved ([`Core::progress`]): frames in, completions, operations that have waited, grants.

mod hear;
mod say;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

use proto::extended::{CREDITS, Frame, Grants, PAYLOAD_MAX, SLOT, VERSION};
use sys::double::{Double, Sign};
use sys::errno::Errno;
use via::{Access, Cq, Descriptor, Done as Head, Fault, Memory, Nic, Ptag, Vi, ViConfig, ViState};

use self::say::Payload;
use super::region::Remote;
use super::work::{Done, Op, PeerReceive, Receive, UnderWay, Work};
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
    peer_receives: VecDeque<PeerReceive>,
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
    socket: u64,
    /// Why there is no connection any more.
    pub(super) gone: Option<Errno>,
    /// Whether the program has closed it.
    pub(super) is_closed: bool,
    /// Whether there was more than one turn takes.
    pub(super) more: bool,
    /// What others see of it.
    pub(super) tally: Tally,
}

/// The bytes that plain calls move.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// In slots of the peer's frames.
    pub(super) unread: VecDeque<Unread>,
    pub(super) unread_bytes: usize,
    /// Bytes that came, ever.
    pub(super) came: u64,
    pub(super) wants_fin: bool,
    pub(super) said_fin: bool,
    pub(super) heard_fin: bool,
    pub(super) deaf: bool,
    /// Whether the program has been told that the connection is gone.
    pub(super) told: bool,
}

#[derive(Debug)]
pub(super) struct Unread {
    slot: u16,
    at: usize,
    end: usize,
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
            scratch: vec![0; SLOT],
            heard_hello: false,
            to_say: VecDeque::from([Frame::Hello { version: VERSION }]),
            pending: VecDeque::new(),
            receives: VecDeque::new(),
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
            socket,
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
            // Before the look at the queues: what came before the end is still taken.
            let broken = self.vi.state() != Ok(ViState::Connected);
            while let Ok(Some(_)) = self.cq.done() {}
            self.more = true;
            for _ in 0..TURN {
                let Ok(Head::Completed(got)) = self.vi.recv_done() else {
                    self.more = false;
                    break;
                };
                if got.ok().is_err() {
                    continue;
                }
                if let Err(errno) = self.hear(got.token as u16, got.length as usize) {
                    self.lose(errno);
                    break;
                }
            }
            self.finish_sends();
            if broken && !self.more {
                self.lose(Errno::CONNRESET);
            }
            self.pump();
        }
        self.show();
    }

    /// Whether somebody must go on where nobody calls.
    pub(super) fn is_busy(&self) -> bool {
        self.gone.is_none() && !(self.pending.is_empty() && self.to_say.is_empty())
    }

    /// Whether all that was to go has gone.
    pub(super) fn is_flushed(&self) -> bool {
        self.gone.is_some() || (self.under_way.is_empty() && self.stream.said_fin)
    }

    /// Bytes of the stream that can be sent now.
    pub(super) fn room(&self) -> usize {
        usize::from(self.may.stream).min(self.free.len()) * PAYLOAD_MAX
    }

    /// Sends as many bytes of the stream as there is room for, from `skip` on.
    pub(super) fn write(&mut self, buffers: &[IoSlice<'_>], skip: usize) -> Result<usize, Errno> {
        if self.gone.is_some() {
            let told = std::mem::replace(&mut self.stream.told, true);
            return Err(if told || self.stream.heard_fin {
                Errno::PIPE
            } else {
                Errno::CONNRESET
            });
        }
        if self.stream.wants_fin {
            return Err(Errno::PIPE);
        }
        let total: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let mut sent = skip;
        while sent < total {
            let len = (total - sent).min(PAYLOAD_MAX);
            let payload = Payload::Copied(buffers, sent, len);
            if !self.say(&Frame::Data(&[]), payload, None, None) {
                break;
            }
            sent += len;
        }
        match sent - skip {
            0 if total > skip => Err(Errno::AGAIN),
            n => Ok(n),
        }
    }

    /// Takes bytes of the stream: hands pieces to `put`, which says how many it took.
    pub(super) fn read(
        &mut self,
        keep: bool,
        mut put: impl FnMut(&Memory, usize, usize) -> usize,
    ) -> Result<usize, Errno> {
        let mut got = 0;
        let mut index = 0;
        while let Some(unread) = self.stream.unread.get_mut(index) {
            let there = unread.end - unread.at;
            let start = usize::from(unread.slot) * SLOT + unread.at;
            let taken = put(self.slots.memory(), start, there).min(there);
            got += taken;
            if keep {
                index += 1;
            } else {
                unread.at += taken;
                self.stream.unread_bytes -= taken;
            }
            if taken < there {
                break;
            }
            if !keep {
                self.drop_first();
            }
        }
        if got > 0 || !self.stream.unread.is_empty() {
            self.grant();
            self.show();
            return Ok(got);
        }
        match self.gone {
            _ if self.stream.deaf || self.stream.heard_fin => Ok(0),
            Some(_) if std::mem::replace(&mut self.stream.told, true) => Ok(0),
            Some(errno) => Err(errno),
            None => Err(Errno::AGAIN),
        }
    }

    /// Throws away what has come and what will.
    pub(super) fn deafen(&mut self) {
        self.stream.deaf = true;
        while !self.stream.unread.is_empty() {
            self.drop_first();
        }
        self.stream.unread_bytes = 0;
        self.tell_news();
        self.grant();
        self.show();
    }

    fn drop_first(&mut self) {
        if let Some(unread) = self.stream.unread.pop_front() {
            self.give_back(unread.slot);
        }
    }

    /// A slot of the stream's is free for the peer again.
    fn give_back(&mut self, slot: u16) {
        if self.gone.is_none() && self.post_slot(slot).is_ok() {
            self.owed.stream += 1;
        }
    }

    /// Whether more bytes can come though none is read.
    pub(super) fn may_more_come(&self) -> bool {
        let over = self.gone.is_some() || self.stream.heard_fin || self.stream.deaf;
        !over && !self.is_full()
    }

    /// Whether the peer can send no more bytes until some are read.
    pub(super) fn is_full(&self) -> bool {
        self.stream.unread.len() + usize::from(self.owed.stream) >= usize::from(CREDITS)
    }

    /// All of `unread` and of what is posted is lost.
    pub(super) fn lose(&mut self, errno: Errno) {
        if self.gone.is_some() {
            return;
        }
        let rest = if self.stream.heard_fin {
            Errno::SHUTDOWN
        } else {
            Errno::CONNRESET
        };
        self.gone = Some(if errno == Errno::PROTO {
            errno
        } else {
            Errno::CONNRESET
        });
        // What went wrong went wrong with the oldest.
        let mut why = if errno == Errno::CONNRESET {
            rest
        } else {
            errno
        };
        for way in std::mem::take(&mut self.under_way) {
            if let (Some((id, op)), Some(_)) = (way.of, way.last) {
                self.done
                    .push(id, op, Err(std::mem::replace(&mut why, rest)));
            }
        }
        for work in std::mem::take(&mut self.pending) {
            let result = Err(std::mem::replace(&mut why, rest));
            self.done.push(work.id, work.op(), result);
        }
        for receive in std::mem::take(&mut self.receives) {
            self.done.push(receive.id, Op::Recv, Err(rest));
        }
        self.peer_receives.clear();
        self.to_say.clear();
        self.tell_news();
        // It is over in any case.
        let _ = self.vi.disconnect();
    }

    fn post_slot(&self, slot: u16) -> Result<(), via::Error> {
        let start = u32::from(slot) * SLOT as u32;
        let room = Descriptor::recv().segment(&self.slots, start..start + SLOT as u32);
        self.vi.post_recv(&room, u64::from(slot))
    }

    fn finish_sends(&mut self) {
        while let Ok(Head::Completed(sent)) = self.vi.send_done() {
            let Some(way) = self.under_way.pop_front() else {
                return;
            };
            if let Some(fault) = sent.status.fault() {
                let errno = errno_of(fault);
                self.under_way.push_front(way);
                self.lose(errno);
                return;
            }
            self.free.extend(way.slot);
            if let (Some((id, op)), Some(parts)) = (way.of, way.last) {
                self.complete(id, op, parts.len());
            }
        }
    }

    /// An operation has moved so many bytes.
    fn complete(&mut self, id: u64, op: Op, bytes: u32) {
        match op {
            Op::Send | Op::Write => self.tally.sent(bytes as usize, true),
            Op::Recv | Op::Read => self.tally.received(bytes as usize, true),
        }
        self.done.push(id, op, Ok(bytes));
    }

    /// Wakes whoever waits for something else to come than what has.
    fn tell_news(&mut self) {
        for (_, sign) in &mut self.news {
            sign.show(true);
        }
    }

    /// Has the call `waiter` sleep on a sign of its own.
    pub(super) fn await_news<T>(&mut self, waiter: u64) -> Result<T, Errno> {
        match self.news.iter_mut().find(|(of, _)| *of == waiter) {
            Some((_, sign)) => sign.show(false),
            None => {
                let sign = Sign::new().map_err(|_| Errno::MFILE)?;
                self.news.push((waiter, sign));
            }
        }
        Err(Errno::AGAIN)
    }

    /// What the call `waiter` sleeps on.
    pub(super) fn news_of(&self, waiter: u64) -> Option<OwnedFd> {
        let mut news = self.news.iter();
        let own = news.find(|(of, _)| *of == waiter);
        own.and_then(|(_, sign)| sign.fd().try_clone_to_owned().ok())
    }

    /// Has the descriptors show how things are.
    pub(super) fn show(&mut self) {
        let stream = &self.stream;
        let shown = (stream.came, self.done.total());
        let over = self.gone.is_some() || (stream.heard_fin && stream.said_fin);
        self.double
            .show_input(!stream.unread.is_empty(), shown.0 != self.shown.0);
        if stream.heard_fin || stream.deaf {
            self.double.show_end();
        }
        let room = self.room() > 0 || stream.wants_fin;
        self.double.show_room(room);
        if over {
            self.double.show_gone();
        }
        let there = !self.done.is_empty();
        if let Some(sign) = &mut self.sign {
            if there && shown.1 != self.shown.1 {
                sign.renew();
            } else {
                sign.show(there);
            }
        }
        if let Some(bed) = &mut self.bed {
            bed.show(there || self.gone.is_some());
        }
        self.shown = shown;
    }
}

fn errno_of(fault: Fault) -> Errno {
    match fault {
        Fault::Protection | Fault::Format => Errno::FAULT,
        Fault::RdmaProtection => Errno::ACCESS,
        _ => Errno::CONNRESET,
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
