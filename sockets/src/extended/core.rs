//! What is behind the lock of an extended socket: what the peer says and what it is told.
//!
//! Whoever calls moves everything that can be moved ([`Core::progress`]): frames in, completions, operations that have waited, grants.

use std::collections::VecDeque;
use std::io::IoSlice;

use proto::extended::{CREDITS, Frame, Grants, HEAD, PAYLOAD_MAX, Place, SLOT, VERSION, is_data};
use sys::double::{Double, Sign};
use sys::errno::Errno;
use via::{
    Access, Cq, Descriptor, Done as Head, Fault, MemHandle, Memory, Nic, Ptag, RemoteSegment, Vi,
    ViConfig, ViState,
};

use super::region::{Parts, Remote};
use super::work::{Done, Op, PeerReceive, Receive, To, UnderWay, Work};

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
    pub(super) done: Done,
    pub(super) stream: Stream,
    pub(super) double: Double,
    pub(super) sign: Option<Sign>,
    shown: (u64, u64),
    socket: u64,
    /// Why there is no connection any more.
    pub(super) gone: Option<Errno>,
    /// Whether there was more than one turn takes.
    pub(super) more: bool,
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

/// What follows the head of a frame.
enum Payload<'a> {
    None,
    /// Copied into the slot: of these, from so many bytes on, so many.
    Copied(&'a [IoSlice<'a>], usize, usize),
    /// Where it is.
    Gathered(&'a Parts, u32, u32),
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
            done: Done::default(),
            stream: Stream::default(),
            double: Double::new().map_err(|_| via::Error::Resource)?,
            sign: None,
            shown: (0, 0),
            socket,
            gone: None,
            more: false,
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
        self.grant();
        self.show();
    }

    fn drop_first(&mut self) {
        if let Some(unread) = self.stream.unread.pop_front()
            && self.gone.is_none()
            && self.post_slot(unread.slot).is_ok()
        {
            self.owed.stream += 1;
        }
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
                self.done.push(id, op, Ok(parts.len()));
            }
        }
    }

    fn hear(&mut self, slot: u16, len: usize) -> Result<(), Errno> {
        let start = usize::from(slot) * SLOT;
        let mut first = [0];
        let memory = self.slots.memory();
        memory.read(start, &mut first).map_err(|_| Errno::PROTO)?;
        // Of bytes of the stream only the head is looked at; they stay where they are.
        let data = is_data(first[0]);
        let look = if data { len.min(HEAD + 1) } else { len };
        let mut scratch = std::mem::take(&mut self.scratch);
        let heard = match scratch.get_mut(..look) {
            Some(bytes) => match memory.read(start, bytes) {
                Ok(()) => match Frame::decode(bytes) {
                    Ok((grants, frame)) => self.heed(grants, frame, slot, len),
                    Err(_) => Err(Errno::PROTO),
                },
                Err(_) => Err(Errno::PROTO),
            },
            None => Err(Errno::PROTO),
        };
        self.scratch = scratch;
        heard?;
        if !data {
            self.post_slot(slot).map_err(|_| Errno::CONNRESET)?;
            self.owed.control += 1;
        }
        Ok(())
    }

    fn heed(
        &mut self,
        grants: Grants,
        frame: Frame<'_>,
        slot: u16,
        len: usize,
    ) -> Result<(), Errno> {
        self.may.stream = granted(self.may.stream, grants.stream)?;
        self.may.control = granted(self.may.control, grants.control)?;
        if self.heard_hello == matches!(frame, Frame::Hello { .. }) {
            return Err(Errno::PROTO);
        }
        match frame {
            Frame::Hello { version } if version == VERSION => self.heard_hello = true,
            Frame::Hello { .. } => return Err(Errno::PROTO),
            Frame::Data(_) => {
                let full = self.stream.unread.len() >= usize::from(CREDITS);
                if self.stream.heard_fin || full {
                    return Err(Errno::PROTO);
                }
                self.stream.came += (len - HEAD) as u64;
                self.stream.unread_bytes += len - HEAD;
                self.stream.unread.push_back(Unread {
                    slot,
                    at: HEAD,
                    end: len,
                });
                if self.stream.deaf {
                    self.drop_first();
                    self.stream.unread_bytes = 0;
                }
            }
            Frame::Fin => {
                self.stream.heard_fin = true;
                for receive in std::mem::take(&mut self.receives) {
                    self.done.push(receive.id, Op::Recv, Err(Errno::SHUTDOWN));
                }
            }
            Frame::Message {
                total,
                offset,
                piece,
            } => self.take_piece(total, offset, piece)?,
            Frame::Posted { len, places } => {
                if self.peer_receives.len() >= PEERS_MAX {
                    return Err(Errno::PROTO);
                }
                self.peer_receives.push_back(PeerReceive { len, places });
            }
            Frame::Placed { len } => match self.receives.pop_front() {
                Some(receive)
                    if receive.direct && receive.got == 0 && len <= receive.parts.len() =>
                {
                    self.done.push(receive.id, Op::Recv, Ok(len));
                }
                _ => return Err(Errno::PROTO),
            },
            Frame::Advertise(advert) => {
                if self.remotes.len() >= PEERS_MAX || advert.addr.checked_add(advert.len).is_none()
                {
                    return Err(Errno::PROTO);
                }
                self.remotes.push_back(Remote {
                    socket: self.socket,
                    advert,
                });
            }
            Frame::Withdraw { handle } => {
                self.remotes.retain(|remote| remote.handle() != handle);
            }
            Frame::Credit => {}
        }
        Ok(())
    }

    fn take_piece(&mut self, total: u32, offset: u32, piece: &[u8]) -> Result<(), Errno> {
        let Some(receive) = self.receives.front_mut() else {
            // Those that were posted have been answered by the end of the other direction.
            return Err(Errno::PROTO);
        };
        if total > receive.parts.len() || offset != receive.got {
            return Err(Errno::PROTO);
        }
        let mut rest = piece;
        let mut placed = true;
        receive
            .parts
            .each(offset, piece.len() as u32, |slice, skip, len| {
                if let Some((here, after)) = rest.split_at_checked(len as usize) {
                    // Memory that is read-only to us takes nothing.
                    placed &= slice
                        .region
                        .memory()
                        .write(slice.offset + skip, here)
                        .is_ok();
                    rest = after;
                }
            });
        receive.got += piece.len() as u32;
        if receive.got == total
            && let Some(receive) = self.receives.pop_front()
        {
            let result = if placed { Ok(total) } else { Err(Errno::FAULT) };
            self.done.push(receive.id, Op::Recv, result);
        }
        Ok(())
    }

    /// Begins what has waited for the peer.
    pub(super) fn pump(&mut self) {
        while self.gone.is_none() {
            let Some(frame) = self.to_say.pop_front() else {
                break;
            };
            if !self.say(&frame, Payload::None, None, None) {
                self.to_say.push_front(frame);
                break;
            }
        }
        while self.gone.is_none()
            && let Some(mut work) = self.pending.pop_front()
        {
            let begun = match work.to {
                To::Receive => self.begin_send(&mut work),
                To::Memory(place) | To::Here(place) => self.begin_rdma(&mut work, place),
            };
            if !begun && self.gone.is_some() {
                self.done.push(work.id, work.op(), Err(Errno::CONNRESET));
            } else if !begun {
                self.pending.push_front(work);
                break;
            }
        }
        let stream = &self.stream;
        if stream.wants_fin && !stream.said_fin && self.pending.is_empty() && self.gone.is_none() {
            self.stream.said_fin = self.say(&Frame::Fin, Payload::None, None, None);
        }
        self.grant();
    }

    /// Tells of receives that are there again, when they have become many.
    fn grant(&mut self) {
        if self.gone.is_none() && self.owed.stream.max(self.owed.control) >= CREDITS / 2 {
            self.say(&Frame::Credit, Payload::None, None, None);
        }
    }

    fn begin_send(&mut self, work: &mut Work) -> bool {
        let Some(target) = self.peer_receives.pop_front() else {
            return false;
        };
        let len = work.parts.len();
        if len > target.len {
            self.peer_receives.push_front(target);
            self.done.push(work.id, Op::Send, Err(Errno::MSGSIZE));
            return true;
        }
        let begun = if target.places.is_empty() || len <= EAGER_MAX {
            self.send_pieces(work)
        } else {
            self.send_placed(work, &target.places)
        };
        if !begun {
            self.peer_receives.push_front(target);
        }
        begun
    }

    /// In frames.
    fn send_pieces(&mut self, work: &mut Work) -> bool {
        let total = work.parts.len();
        loop {
            let offset = work.begun;
            let len = (total - offset).min(PAYLOAD_MAX as u32);
            let frame = Frame::Message {
                total,
                offset,
                piece: &[],
            };
            let last = (offset + len == total).then(|| work.parts.clone());
            let ends = last.is_some();
            let payload = Payload::Gathered(&work.parts, offset, len);
            if !self.say(&frame, payload, Some((work.id, Op::Send)), last) {
                return false;
            }
            work.begun += len;
            if ends {
                return true;
            }
        }
    }

    /// Straight to its places.
    fn send_placed(&mut self, work: &Work, places: &[Place]) -> bool {
        // All or nothing, so that a place is not written twice.
        let descriptors = places.len() + (work.parts.len() / self.max_transfer) as usize;
        if self.may.control < 2 || self.free.is_empty() || !self.has_room_for(descriptors + 1) {
            return false;
        }
        let mut offset = 0;
        for place in places {
            let mut here = 0;
            while here < place.len && offset < work.parts.len() {
                let left = (place.len - here).min(work.parts.len() - offset);
                let len = left.min(self.max_transfer);
                let to = RemoteSegment {
                    addr: place.addr.wrapping_add(u64::from(here)),
                    handle: MemHandle(place.handle),
                };
                let write = gather(Descriptor::rdma_write(to), &work.parts, offset, len);
                self.post(&write, None, Some((work.id, Op::Send)), None);
                here += len;
                offset += len;
            }
        }
        let frame = Frame::Placed {
            len: work.parts.len(),
        };
        let of = Some((work.id, Op::Send));
        self.say(&frame, Payload::None, of, Some(work.parts.clone()))
    }

    fn begin_rdma(&mut self, work: &mut Work, place: Place) -> bool {
        let total = work.parts.len();
        while work.begun < total {
            if !self.has_room_for(1) {
                return false;
            }
            let offset = work.begun;
            let len = (total - offset).min(self.max_transfer);
            let at = RemoteSegment {
                addr: place.addr.wrapping_add(u64::from(offset)),
                handle: MemHandle(place.handle),
            };
            let descriptor = match work.to {
                To::Here(_) => Descriptor::rdma_read(at),
                _ => Descriptor::rdma_write(at),
            };
            let descriptor = gather(descriptor, &work.parts, offset, len);
            let last = (offset + len == total).then(|| work.parts.clone());
            self.post(&descriptor, None, Some((work.id, work.op())), last);
            work.begun += len;
        }
        true
    }

    fn has_room_for(&self, descriptors: usize) -> bool {
        self.under_way.len() + descriptors <= UNDER_WAY_MAX
    }

    /// Sends a frame; false if there is no room for it now.
    fn say(
        &mut self,
        frame: &Frame<'_>,
        payload: Payload<'_>,
        of: Option<(u64, Op)>,
        last: Option<Parts>,
    ) -> bool {
        let left = match frame {
            Frame::Data(_) => self.may.stream,
            Frame::Credit => self.may.control,
            // The last is for grants, without which both ends might wait for each other.
            _ => self.may.control.saturating_sub(1),
        };
        if left == 0 || !self.has_room_for(1) {
            return false;
        }
        let Some(slot) = self.free.pop() else {
            return false;
        };
        self.head.clear();
        frame.encode(std::mem::take(&mut self.owed), &mut self.head);
        let start = usize::from(slot) * SLOT;
        let memory = self.slots.memory();
        let mut written = memory.write(start, &self.head).is_ok();
        let mut end = start + self.head.len();
        if let Payload::Copied(buffers, skip, len) = payload {
            written &= copy_in(memory, end, buffers, skip, len);
            end += len;
        }
        debug_assert!(written, "slots are within their memory");
        let mut descriptor = Descriptor::send().raw_segment(via::Segment {
            addr: self.slots.addr() + start as u64,
            handle: self.slots.handle(),
            len: (end - start) as u32,
        });
        if let Payload::Gathered(parts, offset, len) = payload {
            descriptor = gather(descriptor, parts, offset, len);
        }
        match frame {
            Frame::Data(_) => self.may.stream -= 1,
            _ => self.may.control -= 1,
        }
        self.post(&descriptor, Some(slot), of, last);
        true
    }

    fn post(
        &mut self,
        descriptor: &Descriptor<'_>,
        slot: Option<u16>,
        of: Option<(u64, Op)>,
        last: Option<Parts>,
    ) {
        if self.gone.is_some() {
            if let (Some((id, op)), Some(_)) = (of, last) {
                self.done.push(id, op, Err(Errno::CONNRESET));
            }
            return;
        }
        let posted = self.vi.post_send(descriptor, 0);
        self.under_way.push_back(UnderWay { slot, of, last });
        if posted.is_err() {
            self.lose(Errno::CONNRESET);
        }
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
        self.shown = shown;
    }
}

fn gather<'r>(descriptor: Descriptor<'r>, parts: &Parts, offset: u32, len: u32) -> Descriptor<'r> {
    let mut segments = Vec::new();
    parts.segments(offset, len, |segment| segments.push(segment));
    segments
        .into_iter()
        .fold(descriptor, Descriptor::raw_segment)
}

fn copy_in(memory: &Memory, to: usize, from: &[IoSlice<'_>], skip: usize, len: usize) -> bool {
    let (mut skip, mut left, mut to) = (skip, len, to);
    for buffer in from {
        let Some(here) = buffer.get(skip..) else {
            skip -= buffer.len();
            continue;
        };
        skip = 0;
        let here = here.get(..left).unwrap_or(here);
        if memory.write(to, here).is_err() {
            return false;
        }
        to += here.len();
        left -= here.len();
    }
    left == 0
}

fn granted(had: u16, more: u16) -> Result<u16, Errno> {
    let have = had.checked_add(more).ok_or(Errno::PROTO)?;
    if have > CREDITS {
        return Err(Errno::PROTO);
    }
    Ok(have)
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
