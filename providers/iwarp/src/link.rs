//! A connection as the engine of VIs sees it: an RDMA stream over a socket.

mod read;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::ddp::Stag;
use proto::mpa::{Crc, Piece, Place, Role};
use proto::rdmap::{Action, Code, Engine, Operation, PostError, Receive, Remote, Work, WorkId};
use rustix::net::SendFlags;
use sys::mem::Memory;
use sys::vectored::{self, Run};
use via::soft::{Agent, Goodbye, Ground, Link, Look, Sleeper};

use crate::departures::Departures;
use crate::pace::{LONG_MIN, Pace};
use crate::runs::Vectors;
use crate::stream::{INLINE_MAX, Stream};
use crate::wire::{NUDGE_AFTER, Sleepers, Wire};
use read::SEAMS;

/// One end of an RDMA stream.
pub(crate) struct IwarpLink {
    wire: Arc<Wire>,
    engine: Engine,
    /// The peer is sovia.
    is_ours: bool,
    /// Nothing comes any more.
    is_ended: bool,
    /// The last read emptied the socket: the next would only be told so.
    is_drained: bool,
    /// What a look for a short message found: the next read's answer.
    looked: Option<io::Result<Option<usize>>>,
    /// Octets that a look for an expected message found, to be handled by the next read.
    guessed: Option<usize>,
    pace: Pace,
    /// Whoever looks at this next sleeps until it rings. Else the owner looks again, or the agent does with its next tick.
    is_watched: bool,
    /// Nothing has come yet, since then, from a stranger whom we asked.
    unheard_since: Option<Duration>,
    /// The socket lost octets that it cannot do without: it ends in the middle of one record.
    is_torn: bool,
    /// What lies between guesses, of the read that is being made; kept, so that it need not be cleared for each.
    seams: Option<Box<[u8; SEAMS]>>,
    agent: Arc<Agent<Departures>>,
}

impl IwarpLink {
    pub(crate) fn new(wire: Arc<Wire>, stream: &Stream, agent: &Arc<Agent<Departures>>) -> Self {
        let unheard = !stream.is_ours && stream.terms.role == Role::Initiator;
        wire.set_unheard(unheard);
        Self {
            engine: Engine::new(&stream.terms, stream.config(&wire)),
            wire,
            unheard_since: unheard.then(now),
            is_ours: stream.is_ours,
            is_ended: false,
            is_drained: false,
            looked: None,
            guessed: None,
            pace: Pace::new(stream.terms.send_markers),
            is_watched: false,
            is_torn: false,
            seams: None,
            agent: Arc::clone(agent),
        }
    }

    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    /// Linux siw as a responder leaves unread what comes between its Reply and its being ready, until more comes: once, to a
    /// stranger that says nothing, an RDMA Write of no octets, which has no other effect.
    ///
    /// Whether that is to be written now.
    fn nudge(&mut self, came: usize) -> bool {
        let Some(since) = self.unheard_since else {
            return false;
        };
        let late = now().saturating_sub(since) >= NUDGE_AFTER;
        if came == 0 && late {
            let nothing = Remote {
                stag: Stag(1),
                to: 0,
            };
            let work = Work {
                id: NOBODYS,
                operation: Operation::Write {
                    from: Place::new(0),
                    len: 0,
                    to: nothing,
                },
                fence: false,
            };
            // One that has ended hears nothing more.
            let _ended = self.engine.post(work);
        }
        if came > 0 || late {
            self.unheard_since = None;
            self.wire.set_unheard(false);
        }
        came == 0 && late
    }

    fn send(&self, ground: &Ground<'_>) -> io::Result<usize> {
        let mut pieces = self.engine.pieces();
        if let (Some(Piece::Own(octets)), None) = (pieces.next(), pieces.next()) {
            return Ok(rustix::net::send(self.wire.tcp(), octets, FLAGS)?);
        }
        let pieces = Vectors::new(self.engine.pieces(), ground);
        vectored::send(self.wire.tcp(), pieces)
    }

    /// Writes all that there is, as far as the socket takes it.
    fn write_out(&mut self, ground: &mut Ground<'_>) {
        let now = now();
        loop {
            self.engine.set_alone_min(self.pace.alone_min());
            self.engine.fill(ground, now);
            if self.engine.waiting() == 0 || !self.write(ground, now) {
                break;
            }
        }
        self.pace.handle_gathered();
        self.wire.set_wants_room(self.engine.waiting() > 0);
    }

    /// Writes once; whether the socket may take more.
    fn write(&mut self, ground: &Ground<'_>, now: Duration) -> bool {
        let waiting = self.engine.waiting();
        match self.send(ground) {
            // Memory that was being sent has gone, and the stream cannot go on without it.
            Ok(0) => {
                self.is_torn = true;
                self.is_ended = true;
                self.engine.handle_reset(now);
                false
            }
            Ok(n) => {
                self.engine.handle_written(n as u64, now);
                self.pace.handle_written(n);
                // A socket that took less is full, unless there were more pieces than one call takes.
                n as u64 >= waiting || n >= SHORT_WRITE
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(_) => {
                // What came before the end is still there to be read.
                false
            }
        }
    }
}

impl Link for IwarpLink {
    type Waiter = Sleepers;

    const MESSAGES: bool = true;

    fn post(&mut self, work: Work) -> Result<(), PostError> {
        let octets = work.operation.sent_len();
        // It tells of the write before it, and is no message of its own.
        let is_told = matches!(work.operation, Operation::Immediate { .. });
        self.engine.post(work)?;
        if !is_told {
            self.pace.handle_posted(octets, Instant::now);
        }
        Ok(())
    }

    #[inline(always)]
    fn send_short(
        &mut self,
        len: u32,
        immediate: Option<u32>,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        // What waits to be gathered is before it.
        if len > INLINE_MAX || self.pace.has_posted() {
            return false;
        }
        let Some(octets) = self.engine.frame_short(len, immediate.map(Stag), fill) else {
            return false;
        };
        let Ok(n) = rustix::net::send(self.wire.tcp(), octets, FLAGS) else {
            return false;
        };
        let is_whole = n == octets.len();
        self.engine.handle_short_written(n);
        if !is_whole {
            self.wire.set_wants_room(true);
        }
        true
    }

    #[inline]
    fn send_lone(&mut self, work: &Work, len: u32, from: (&Memory, usize)) -> Option<bool> {
        // What is long may leave in parts, or with what comes behind it.
        if len <= INLINE_MAX || len >= LONG_MIN || self.pace.has_posted() {
            return None;
        }
        let (memory, offset) = from;
        let run = Run {
            memory,
            offset,
            len: len as usize,
        };
        let digest = |crc: &mut Crc| memory.digest(offset, run.len, crc.as_mut()).is_ok();
        let [before, behind] = self.engine.frame_lone(len, None, digest)?;
        let n = vectored::send_around(self.wire.tcp(), before, run, behind).ok()?;
        let is_whole = self.engine.handle_lone_written(n, work);
        if !is_whole {
            self.wire.set_wants_room(true);
        }
        Some(is_whole)
    }

    #[inline(always)]
    fn look(&mut self) -> Look {
        let waits = self.engine.waiting() > 0 || self.pace.has_posted();
        if waits || self.unheard_since.is_some() {
            return Look::Unclear;
        }
        match self.engine.expects_lone() {
            Some(len) => Look::Expected(len),
            None => self.read_short(),
        }
    }

    #[inline]
    fn look_for(&mut self, id: WorkId, len: u32, into: (&Memory, usize)) -> Look {
        self.read_lone(id, len, into)
    }

    #[inline]
    fn receive_short(&mut self, id: WorkId, place: impl FnOnce(&[u8]) -> bool) -> Option<u32> {
        let len = self.engine.take_short(id, place)?;
        // It has been heard of.
        self.looked = None;
        self.is_drained = false;
        self.pace.handle_arrival();
        Some(len)
    }

    fn post_receive(&mut self, receive: Receive) -> Result<(), PostError> {
        self.engine.post_receive(receive)
    }

    fn push(&mut self, ground: &mut Ground<'_>) {
        if self.is_watched || !self.pace.gathers() {
            self.write_out(ground);
        }
    }

    fn hurry(&mut self, ground: &mut Ground<'_>) {
        if self.pace.has_posted() {
            self.write_out(ground);
        }
    }

    fn turn(&mut self, ground: &mut Ground<'_>) -> bool {
        let was_blocked = self.engine.is_blocked();
        let came = self.read(ground);
        if came > 0 {
            self.pace.handle_arrival();
        }
        let nudged = self.nudge(came);
        if came > 0 || was_blocked {
            self.engine.handle_arrivals(ground, now());
        }
        let arrived = came > 0 || (was_blocked && !self.engine.is_blocked());
        let waits = self.engine.waiting() > 0 || self.pace.has_posted();
        if (arrived || nudged || waits) && !ground.has_refused() {
            self.write_out(ground);
        }
        arrived
    }

    fn refuse(&mut self, code: Code, written: Option<(Stag, u64)>, ground: &Ground<'_>) {
        self.engine.refuse(code, written, ground, now());
    }

    fn refuse_blocked(&mut self, ground: &Ground<'_>) {
        self.engine.refuse_blocked(ground, now());
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.engine.poll_action()
    }

    fn is_blocked(&self) -> bool {
        self.engine.is_blocked()
    }

    fn has_immediate(&self) -> bool {
        self.is_ours
    }

    fn takes_reads(&self) -> bool {
        self.engine.reads()
    }

    fn close(&mut self, _why: Goodbye) {
        // Whatever the reason, the peer hears FIN, behind what there is still to be written.
    }

    fn arm(&mut self, who: Sleeper) -> u32 {
        self.is_watched = true;
        match who {
            Sleeper::Caller => self.wire.arm_sleeper(),
            Sleeper::Agent => {
                self.wire.arm_set();
                0
            }
        }
    }

    fn disarm(&mut self) {
        self.is_watched = false;
        // It rings once more for nothing, which costs less than a system call now.
    }

    fn unwatch(&mut self) {
        self.wire.unwatch();
    }

    fn waiter(&self) -> Sleepers {
        Sleepers(Arc::clone(&self.wire))
    }
}

impl Drop for IwarpLink {
    fn drop(&mut self) {
        let mut last = Vec::new();
        for piece in self.engine.pieces() {
            match piece {
                Piece::Own(octets) => last.extend_from_slice(octets),
                // The memory is its user's again: the record remains torn, and the peer sees that.
                Piece::Payload { .. } => break,
            }
        }
        let is_over = self.is_torn || (self.is_ended && last.is_empty());
        if !is_over {
            let departures = self.agent.duties();
            departures.see_off(&self.agent, &self.wire, last);
        }
    }
}

/// Time as the engines measure it: they count in seconds, so a tick more or less is nothing.
pub(crate) fn now() -> Duration {
    sys::time::coarse()
}

const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// A write of so many octets may have been cut short by its number of pieces.
const SHORT_WRITE: usize = 32 << 10;
/// Of a work that no descriptor stands for: what is even ends none.
const NOBODYS: WorkId = WorkId(0);
