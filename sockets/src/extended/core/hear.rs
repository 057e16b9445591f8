//! What the peer says, taken as if an enemy had said it.

use proto::extended::{CREDITS, Frame, Grants, HEAD, Lead, SLOT, VERSION};
use sys::errno::Errno;
use sys::mem::Store;
use via::{Memory, Segment};

use super::stream::Unread;
use super::{Core, PEERS_MAX};
use crate::extended::region::Remote;
use crate::extended::work::{Op, Receive};

impl Core {
    /// What has come into a slot; whether it stays there.
    pub(super) fn hear(&mut self, slot: u16, len: usize) -> Result<bool, Errno> {
        let start = usize::from(slot) * SLOT;
        let mut head = [0; HEAD];
        let payload = len.checked_sub(HEAD).ok_or(Errno::PROTO)?;
        let memory = self.slots.memory();
        memory.read(start, &mut head).map_err(|_| Errno::PROTO)?;
        // Of one with a payload only the head is looked at.
        let lead = Lead::decode(&head, payload).map_err(|_| Errno::PROTO)?;
        if let Some((grants, lead)) = lead {
            self.take_grants(grants)?;
            if !self.heard_hello {
                return Err(Errno::PROTO);
            }
            return match lead {
                Lead::Data => self.take_bytes(slot, len),
                Lead::Message { total, offset } => {
                    self.take_piece(total, offset, start + HEAD, payload)?;
                    Ok(false)
                }
            };
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let memory = self.slots.memory();
        let heard = match memory.read(start, &mut scratch) {
            Ok(()) => match Frame::decode(&scratch) {
                Ok((grants, frame)) => self.heed(grants, frame),
                Err(_) => Err(Errno::PROTO),
            },
            Err(_) => Err(Errno::PROTO),
        };
        self.scratch = scratch;
        heard.map(|()| false)
    }

    /// A message is in the only place of the oldest receive.
    pub(super) fn hear_placed(&mut self, grants: Grants, len: u32) -> Result<bool, Errno> {
        self.take_grants(grants)?;
        if !self.heard_hello {
            return Err(Errno::PROTO);
        }
        self.take_placed(len)?;
        Ok(false)
    }

    /// Does with a slot what follows from whether its bytes stay there.
    pub(super) fn take_back(&mut self, slot: u16, stays: bool) -> Result<(), Errno> {
        if stays {
            self.join_last();
        } else {
            self.post_slot(slot).map_err(|_| Errno::CONNRESET)?;
            self.owed.control += 1;
        }
        Ok(())
    }

    fn take_grants(&mut self, grants: Grants) -> Result<(), Errno> {
        self.may.stream = granted(self.may.stream, grants.stream)?;
        self.may.control = granted(self.may.control, grants.control)?;
        Ok(())
    }

    fn take_bytes(&mut self, slot: u16, len: usize) -> Result<bool, Errno> {
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
        self.tell_news();
        Ok(true)
    }

    /// Puts what came last behind what came before it, where that leaves room, so that many small pieces do not use the window up.
    /// As long as half of it is free they stay where they are.
    fn join_last(&mut self) {
        let unread = &mut self.stream.unread;
        if unread.len() <= usize::from(CREDITS / 2) {
            return;
        }
        let Some(last) = unread.pop_back() else {
            return;
        };
        let len = last.end - last.at;
        let memory = self.slots.memory();
        let fits = unread.back_mut().filter(|before| before.end + len <= SLOT);
        if let Some(before) = fits {
            let from = usize::from(last.slot) * SLOT + last.at;
            let to = usize::from(before.slot) * SLOT + before.end;
            let moved = Memory::copy(memory, to, memory, from, len, Store::Own);
            if moved.is_ok() {
                before.end += len;
                self.give_back(last.slot);
                return;
            }
        }
        unread.push_back(last);
    }

    fn heed(&mut self, grants: Grants, frame: Frame<'_>) -> Result<(), Errno> {
        self.take_grants(grants)?;
        if self.heard_hello == matches!(frame, Frame::Hello { .. }) {
            return Err(Errno::PROTO);
        }
        match frame {
            Frame::Hello { version } if version == VERSION => self.heard_hello = true,
            // The last two never come here.
            Frame::Hello { .. } | Frame::Data(_) | Frame::Message { .. } => {
                return Err(Errno::PROTO);
            }
            Frame::Fin => {
                self.stream.heard_fin = true;
                self.tell_news();
                self.announced = 0;
                for receive in std::mem::take(&mut self.receives) {
                    self.dismiss_write(&receive);
                    self.done.push(receive.id, Op::Recv, Err(Errno::SHUTDOWN));
                }
            }
            Frame::Posted(receives) => {
                if self.peer_receives.len() + receives.len() > PEERS_MAX {
                    return Err(Errno::PROTO);
                }
                self.peer_receives.extend(receives);
            }
            Frame::Placed { len } => self.take_placed(len)?,
            Frame::Advertise(advert) => {
                let mut before = None;
                self.remotes.retain(|of| {
                    let other = (of.handle(), of.tag()) != (advert.handle, advert.tag);
                    if !other {
                        before = Some(*of);
                    }
                    other
                });
                if self.remotes.len() >= PEERS_MAX || advert.addr.checked_add(advert.len).is_none()
                {
                    return Err(Errno::PROTO);
                }
                // Told again just as it was, it is the same to who has found it before.
                let same = before.filter(|of| of.advert == advert);
                let remote = same.unwrap_or_else(|| Remote::new(self.socket, advert));
                self.remotes.push_back(remote);
                self.tell_news();
            }
            Frame::Withdraw { handle } => {
                self.remotes.retain(|remote| remote.handle() != handle);
            }
            Frame::Credit => {}
        }
        Ok(())
    }

    /// A piece of a message, `len` bytes at `from` of the slots.
    fn take_piece(
        &mut self,
        total: u32,
        offset: u32,
        from: usize,
        len: usize,
    ) -> Result<(), Errno> {
        let slots = self.slots.memory();
        let Some(receive) = self.receives.front_mut().filter(|_| self.announced > 0) else {
            // Those that were posted have been answered by the end of the other direction.
            return Err(Errno::PROTO);
        };
        if total > receive.parts.len() || offset != receive.got {
            return Err(Errno::PROTO);
        }
        let mut from = from;
        let mut placed = true;
        receive.parts.each(offset, len as u32, |slice, skip, len| {
            let (into, len) = (slice.region.memory(), len as usize);
            // Memory that is read-only to us takes nothing.
            let copied = Memory::copy(into, slice.offset + skip, slots, from, len, Store::Own);
            placed &= copied.is_ok();
            from += len;
        });
        receive.got += len as u32;
        if receive.got == total
            && let Some(receive) = self.take_receive()
        {
            self.dismiss_write(&receive);
            match placed {
                true => self.complete(receive.id, Op::Recv, total),
                false => self.done.push(receive.id, Op::Recv, Err(Errno::FAULT)),
            }
        }
        Ok(())
    }

    fn take_placed(&mut self, len: u32) -> Result<(), Errno> {
        match self.take_receive() {
            Some(receive) if receive.direct && receive.got == 0 && len <= receive.parts.len() => {
                self.dismiss_write(&receive);
                self.complete(receive.id, Op::Recv, len);
                Ok(())
            }
            _ => Err(Errno::PROTO),
        }
    }

    /// Where a NIC may place what it has not checked, until it tells of it: a message that comes as one transfer. Of several the last says nothing to the NIC, which
    /// would go on so with what comes after it.
    pub(in crate::extended) fn guessed_place(&self, receive: &Receive) -> Option<Segment> {
        let place = receive.only_place()?;
        (place.len <= self.max_transfer).then_some(place)
    }

    /// Nothing comes to its place any more.
    fn dismiss_write(&self, receive: &Receive) {
        if let Some(place) = self.guessed_place(receive) {
            self.vi.dismiss_write(place);
        }
    }

    /// The oldest receive that the peer has been told of.
    fn take_receive(&mut self) -> Option<Receive> {
        self.announced = self.announced.checked_sub(1)?;
        self.receives.pop_front()
    }
}

fn granted(had: u16, more: u16) -> Result<u16, Errno> {
    let have = had.checked_add(more).ok_or(Errno::PROTO)?;
    if have > CREDITS {
        return Err(Errno::PROTO);
    }
    Ok(have)
}
