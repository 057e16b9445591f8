//! What the peer is told, and what is done to its memory.

use std::io::IoSlice;

use proto::extended::{Advert, CREDITS, Frame, PAYLOAD_MAX, POSTED_MAX, Place, SLOT};
use sys::errno::Errno;
use via::{Descriptor, MemHandle, Memory, RemoteSegment};

use super::{Core, EAGER_MAX, PEERS_MAX, UNDER_WAY_MAX};
use crate::extended::region::Parts;
use crate::extended::work::{Op, Receive, To, UnderWay, Work};

/// What follows the head of a frame.
pub(super) enum Payload<'a> {
    None,
    /// Copied into the slot: of these, from so many bytes on, so many.
    Copied(&'a [IoSlice<'a>], usize, usize),
    /// Where it is.
    Gathered(&'a Parts, u32, u32),
}

impl Core {
    /// Begins what has waited for the peer.
    pub(in crate::extended) fn pump(&mut self) {
        while self.gone.is_none() {
            let Some(frame) = self.to_say.pop_front() else {
                break;
            };
            if !self.say(&frame, Payload::None, None, None) {
                self.to_say.push_front(frame);
                break;
            }
        }
        self.tell_receives();
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

    /// Tells the peer of receives that have been posted, many at a time: when it has used half of those that it knows of. So it always knows of
    /// as many as it does not know of.
    fn tell_receives(&mut self) {
        while self.gone.is_none() {
            let untold = self.receives.len() - self.announced;
            let room = self.may.control > 1 && !self.free.is_empty() && self.has_room_for(1);
            if untold == 0 || untold < self.announced || !room {
                return;
            }
            let next = self.receives.iter().skip(self.announced);
            let told: Vec<_> = next.take(POSTED_MAX).map(Receive::posted).collect();
            let count = told.len();
            self.announced += count;
            if !self.say(&Frame::Posted(told), Payload::None, None, None) {
                self.announced -= count;
                return;
            }
        }
    }

    /// Tells of slots that are there again, when they have become many.
    pub(super) fn grant(&mut self) {
        if self.gone.is_none() && self.owed.stream.max(self.owed.control) >= CREDITS / 2 {
            self.say(&Frame::Credit, Payload::None, None, None);
        }
    }

    /// Remembers what the peer is to be told of, which keeps so much and no more.
    pub(in crate::extended) fn keep_told(&mut self, advert: &Advert) -> Result<(), Errno> {
        let key = (advert.handle, advert.tag);
        if !self.told.contains(&key) {
            if self.told.len() >= PEERS_MAX {
                return Err(Errno::NOBUFS);
            }
            self.told.push(key);
        }
        Ok(())
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
    fn send_placed(&mut self, work: &mut Work, places: &[Place]) -> bool {
        if let [place] = *places
            && work.parts.len() <= self.max_transfer
        {
            return self.send_placed_whole(work, place);
        }
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

    /// Straight to its only place, with one write, which tells of itself.
    fn send_placed_whole(&mut self, work: &mut Work, place: Place) -> bool {
        // The last is for grants.
        if self.may.control < 2 || !self.has_room_for(1) {
            return false;
        }
        let to = RemoteSegment {
            addr: place.addr,
            handle: MemHandle(place.handle),
        };
        let grants = std::mem::take(&mut self.owed);
        let write = Descriptor::rdma_write(to).immediate(grants.word());
        let write = gather(write, &work.parts, 0, work.parts.len());
        self.may.control -= 1;
        let of = Some((work.id, Op::Send));
        self.post(&write, None, of, Some(std::mem::take(&mut work.parts)));
        true
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
    pub(super) fn say(
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
