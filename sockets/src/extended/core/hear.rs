//! What the peer says, taken as if an enemy had said it.

use proto::extended::{CREDITS, Frame, Grants, HEAD, SLOT, VERSION, is_data};
use sys::errno::Errno;

use super::stream::Unread;
use super::{Core, PEERS_MAX};
use crate::extended::region::Remote;
use crate::extended::work::{Op, PeerReceive};

impl Core {
    pub(super) fn hear(&mut self, slot: u16, len: usize) -> Result<(), Errno> {
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
        if data {
            self.join_last();
        } else {
            self.post_slot(slot).map_err(|_| Errno::CONNRESET)?;
            self.owed.control += 1;
        }
        Ok(())
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
        if let (Some(before), Some(bytes)) = (fits, self.scratch.get_mut(..len)) {
            let (from, to) = (usize::from(last.slot), usize::from(before.slot));
            let moved = memory
                .read(from * SLOT + last.at, bytes)
                .and_then(|()| memory.write(to * SLOT + before.end, bytes));
            if moved.is_ok() {
                before.end += len;
                self.give_back(last.slot);
                return;
            }
        }
        unread.push_back(last);
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
                self.tell_news();
            }
            Frame::Fin => {
                self.stream.heard_fin = true;
                self.tell_news();
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
                    self.complete(receive.id, Op::Recv, len);
                }
                _ => return Err(Errno::PROTO),
            },
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
            match placed {
                true => self.complete(receive.id, Op::Recv, total),
                false => self.done.push(receive.id, Op::Recv, Err(Errno::FAULT)),
            }
        }
        Ok(())
    }
}

fn granted(had: u16, more: u16) -> Result<u16, Errno> {
    let have = had.checked_add(more).ok_or(Errno::PROTO)?;
    if have > CREDITS {
        return Err(Errno::PROTO);
    }
    Ok(have)
}
