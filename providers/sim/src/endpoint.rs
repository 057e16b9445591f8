//! One end of a connection, as the engine uses it.

use std::sync::Arc;
use std::time::Instant;

use proto::frame::{HEAD_WORDS, Head};
use sys::mem::{Memory, OutOfRange};
use via::soft::{Garbage, Goodbye, Link, Sleeper, Waiter};

use crate::core::Core;
use crate::event::EndKey;
use crate::packet::{Body, Frame};

/// One end of a connection on a fabric.
pub struct Endpoint {
    core: Arc<Core>,
    key: EndKey,
    frame_max: u32,
    reserved: Option<Vec<u8>>,
    front: Option<Frame>,
}

/// Sleeps on an [`Endpoint`].
#[derive(Clone)]
pub struct Bell {
    core: Arc<Core>,
    key: EndKey,
}

impl Endpoint {
    pub(crate) fn new(core: &Arc<Core>, key: EndKey) -> Self {
        Self {
            core: Arc::clone(core),
            key,
            frame_max: core.config.frame_max,
            reserved: None,
            front: None,
        }
    }

    pub(crate) fn key(&self) -> EndKey {
        self.key
    }

    /// Sends the reserved frame with whatever head: a hostile peer in a test does that.
    pub fn commit_raw(&mut self, words: &[u32; HEAD_WORDS]) {
        if let Some(reserved) = self.reserved.take() {
            let body = Body::seal(reserved, words);
            let side = self.key.side;
            self.core.act(|state| {
                if let Some(conn) = state.conns.get_mut(&self.key.conn) {
                    conn.send(side, body, &mut state.medium);
                }
            });
        }
    }
}

impl Link for Endpoint {
    type Waiter = Bell;

    fn frame_max(&self) -> u32 {
        self.frame_max
    }

    fn reserve(&mut self, len: u32) -> bool {
        let key = self.key;
        let room = len <= self.frame_max
            && self.core.act(|state| {
                let conn = state.conns.get_mut(&key.conn);
                conn.is_some_and(|conn| conn.reserve(key.side))
            });
        self.reserved = room.then(|| Body::reserve(len as usize));
        room
    }

    fn fill(
        &mut self,
        at: u32,
        from: &Memory,
        offset: usize,
        len: usize,
    ) -> Result<(), OutOfRange> {
        let reserved = self.reserved.as_mut().ok_or(OutOfRange)?;
        let payload = Body::payload_mut(reserved);
        let to = range(at, len).and_then(|range| payload.get_mut(range));
        from.read(offset, to.ok_or(OutOfRange)?)
    }

    fn fill_bytes(&mut self, from: &[u8]) -> Result<(), OutOfRange> {
        let reserved = self.reserved.as_mut().ok_or(OutOfRange)?;
        let to = Body::payload_mut(reserved).get_mut(..from.len());
        to.ok_or(OutOfRange)?.copy_from_slice(from);
        Ok(())
    }

    fn commit(&mut self, head: &Head) {
        self.commit_raw(&head.encode());
    }

    fn flush(&mut self) {}

    fn ready(&self) -> bool {
        let key = self.key;
        self.front.is_some()
            || self.core.poll(key, |state| {
                let end = state.end(key)?;
                let waiting = !end.inbox.is_empty();
                (waiting || end.ended.is_some()).then_some(waiting)
            }) == Some(true)
    }

    fn peek(&mut self) -> Result<Option<Head>, Garbage> {
        if self.front.is_none() {
            let key = self.key;
            let found = self.core.poll(key, |state| {
                let end = state.end(key)?;
                let frame = end.inbox.pop_front();
                (frame.is_some() || end.ended.is_some()).then_some(frame)
            });
            self.front = found.flatten();
        }
        match &self.front {
            None => Ok(None),
            Some(frame) => match Head::decode(&frame.words) {
                Ok(head) if head.len as usize == frame.payload().len() => Ok(Some(head)),
                _ => Err(Garbage),
            },
        }
    }

    fn read(&mut self, at: u32, to: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        let frame = self.front.as_ref().ok_or(OutOfRange)?;
        let from = range(at, len).and_then(|range| frame.payload().get(range));
        to.write(offset, from.ok_or(OutOfRange)?)
    }

    fn read_bytes(&mut self, into: &mut [u8]) -> Result<(), OutOfRange> {
        let frame = self.front.as_ref().ok_or(OutOfRange)?;
        let from = frame.payload().get(..into.len()).ok_or(OutOfRange)?;
        into.copy_from_slice(from);
        Ok(())
    }

    fn release(&mut self) {
        if self.front.take().is_some() {
            let key = self.key;
            self.core
                .act(|state| state.on_conn(key, |conn, _| conn.released(key.side)));
        }
    }

    fn ended(&mut self) -> Option<Goodbye> {
        self.core.act(|state| {
            let end = state.end(self.key)?;
            end.bell.news = false;
            end.ended
        })
    }

    fn close(&mut self, why: Goodbye) {
        self.reserved = None;
        self.front = None;
        let key = self.key;
        self.core.act(|state| {
            if let Some(conn) = state.conns.get_mut(&key.conn) {
                conn.close(key.side, why, &mut state.medium);
            }
        });
    }

    fn arm(&mut self, who: Sleeper) -> u32 {
        self.core.act(|state| {
            let Some(end) = state.end(self.key) else {
                return 0;
            };
            match who {
                Sleeper::Caller => end.bell.caller = true,
                Sleeper::Agent => end.bell.agent = true,
            }
            end.bell.rung
        })
    }

    fn disarm(&mut self) {
        self.core.act(|state| {
            if let Some(end) = state.end(self.key) {
                end.bell.caller = false;
                end.bell.agent = false;
            }
        });
    }

    fn waiter(&self) -> Bell {
        Bell {
            core: Arc::clone(&self.core),
            key: self.key,
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if !self.core.is_inherited() {
            self.core.act(|state| state.drop_link(self.key));
        }
    }
}

impl Waiter for Bell {
    fn sleep(&self, ticket: u32, deadline: Option<Instant>) {
        self.core.act(|state| {
            if let Some(end) = state.end(self.key) {
                end.bell.asleep += 1;
            }
        });
        // What has ended is found by looking again.
        let _rung_or_late = self.core.wait(deadline, |state| {
            let end = state.end(self.key);
            end.is_none_or(|end| end.bell.rung != ticket).then_some(())
        });
        self.core.act(|state| state.awake(self.key));
    }

    fn wake(&self) {
        self.core.act(|state| {
            if let Some(end) = state.end(self.key) {
                end.bell.rung += 1;
                state.gate.stir();
            }
        });
    }
}

fn range(at: u32, len: usize) -> Option<std::ops::Range<usize>> {
    let at = at as usize;
    Some(at..at.checked_add(len)?)
}
