//! The stream of bytes.

use std::collections::VecDeque;
use std::io::IoSlice;

use proto::extended::{CREDITS, Frame, PAYLOAD_MAX, SLOT};
use sys::errno::Errno;
use via::Memory;

use super::Core;
use super::say::Payload;

/// The bytes that plain calls move.
#[derive(Debug, Default)]
pub(in crate::extended) struct Stream {
    /// In slots of the peer's frames.
    pub(in crate::extended) unread: VecDeque<Unread>,
    pub(in crate::extended) unread_bytes: usize,
    /// Bytes that came, ever.
    pub(in crate::extended) came: u64,
    pub(in crate::extended) wants_fin: bool,
    pub(in crate::extended) said_fin: bool,
    pub(in crate::extended) heard_fin: bool,
    pub(in crate::extended) deaf: bool,
    /// Whether the program has been told that the connection is gone.
    pub(in crate::extended) told: bool,
}

#[derive(Debug)]
pub(in crate::extended) struct Unread {
    pub(super) slot: u16,
    pub(super) at: usize,
    pub(super) end: usize,
}

impl Core {
    /// Bytes of the stream that can be sent now.
    pub(in crate::extended) fn room(&self) -> usize {
        usize::from(self.may.stream).min(self.free.len()) * PAYLOAD_MAX
    }

    /// Sends as many bytes of the stream as there is room for, from `skip` on.
    pub(in crate::extended) fn write(
        &mut self,
        buffers: &[IoSlice<'_>],
        skip: usize,
    ) -> Result<usize, Errno> {
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
    pub(in crate::extended) fn read(
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
    pub(in crate::extended) fn deafen(&mut self) {
        self.stream.deaf = true;
        while !self.stream.unread.is_empty() {
            self.drop_first();
        }
        self.stream.unread_bytes = 0;
        self.tell_news();
        self.grant();
        self.show();
    }

    pub(super) fn drop_first(&mut self) {
        if let Some(unread) = self.stream.unread.pop_front() {
            self.give_back(unread.slot);
        }
    }

    /// A slot of the stream's is free for the peer again.
    pub(super) fn give_back(&mut self, slot: u16) {
        if self.gone.is_none() && self.post_slot(slot).is_ok() {
            self.owed.stream += 1;
        }
    }

    /// Whether more bytes can come though none is read.
    pub(in crate::extended) fn may_more_come(&self) -> bool {
        let over = self.gone.is_some() || self.stream.heard_fin || self.stream.deaf;
        !over && !self.is_full()
    }

    /// Whether the peer can send no more bytes until some are read.
    pub(in crate::extended) fn is_full(&self) -> bool {
        self.stream.unread.len() + usize::from(self.owed.stream) >= usize::from(CREDITS)
    }
}
