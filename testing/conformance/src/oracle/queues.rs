//! Work queues: first in, first out, once each; flushed at the end.

use std::collections::VecDeque;

use via::{Completion, Done, Fault, Queue, Reliability, Vi, ViState};

use super::End;
use crate::Lab;
use crate::buffer::Buffer;
use crate::kit::{Must, Pair, await_state, connect, next, poll};

/// An operation on the pair.
#[derive(Debug, Clone, Copy)]
pub enum QueueOp {
    /// Posts a receive of the full size.
    Receive(End),
    /// Posts a send of so many bytes, unless the peer has no receive for it.
    Send(End, u16),
    /// Looks at the head.
    Look(End, Queue),
    /// Waits for the head, if the model knows that it will complete.
    Wait(End, Queue),
    /// Disconnects.
    Disconnect(End),
    /// Disconnects both, takes off what is left, and connects anew.
    Reconnect,
}

/// Runs `ops` on a pair at `level`.
///
/// # Panics
/// When the pair does anything that the model does not.
pub fn check_queues(lab: &dyn Lab, level: Reliability, ops: &[QueueOp]) {
    let mut model = Model::new(lab, level);
    for op in ops {
        model.run(*op);
    }
    model.run(QueueOp::Reconnect);
}

struct Model<'l> {
    level: Reliability,
    pair: Pair<'l>,
    ends: [Side; 2],
    /// Nobody has disconnected.
    up: bool,
    /// The number of the last descriptor: none is used twice.
    last: u64,
}

struct Side {
    /// By queue: what is posted, oldest first.
    posted: [VecDeque<Posted>; 2],
    /// By queue: something has come back flushed, so that nothing may succeed any more.
    flushed: [bool; 2],
    /// What came back done since the connection was made: `[sends, receives]`.
    done: [usize; 2],
    /// Seed and length of the messages to this end since then.
    messages: Vec<(u64, u32)>,
    /// Receives posted for this connection, in all.
    receives: usize,
    /// This end has disconnected.
    idle: bool,
    buffers: [Buffer; 2],
}

#[derive(Clone, Copy)]
struct Posted {
    token: u64,
    /// Its place in the queue's buffer.
    at: u32,
    /// It was posted when nothing could complete any more but by a flush.
    late: bool,
}

impl<'l> Model<'l> {
    fn new(lab: &'l dyn Lab, level: Reliability) -> Self {
        let pair = Pair::new(lab, level);
        let sides = [&pair.a, &pair.b].map(|site| Side {
            posted: Default::default(),
            flushed: [false; 2],
            done: [0; 2],
            messages: Vec::new(),
            receives: 0,
            idle: false,
            buffers: [(); 2].map(|()| Buffer::new(site, SLOTS as u32 * SLOT)),
        });
        Self {
            level,
            pair,
            ends: sides,
            up: true,
            last: 0,
        }
    }

    fn run(&mut self, op: QueueOp) {
        match op {
            QueueOp::Receive(end) => self.receive(end),
            QueueOp::Send(end, len) => self.send(end, u32::from(len) % (SLOT + 1)),
            QueueOp::Look(end, queue) => {
                self.look(end, queue);
            }
            QueueOp::Wait(end, queue) => self.wait(end, queue),
            QueueOp::Disconnect(end) => {
                self.vi(end).disconnect().must();
                self.up = false;
                self.ends[end as usize].idle = true;
                assert_eq!(self.vi(end).state(), Ok(ViState::Idle));
                self.drain(end);
            }
            QueueOp::Reconnect => self.reconnect(),
        }
    }

    fn receive(&mut self, end: End) {
        let Some(Posted { token, at, .. }) = self.push(end, Queue::Recv) else {
            return;
        };
        let side = &mut self.ends[end as usize];
        side.buffers[Queue::Recv as usize].write(at, &[EMPTY; SLOT as usize]);
        side.receives += 1;
        let vi = self.vi(end);
        let buffer = &self.ends[end as usize].buffers[Queue::Recv as usize];
        vi.post_recv(&buffer.recv(at..at + SLOT), token).must();
    }

    fn send(&mut self, end: End, len: u32) {
        let peer = &self.ends[1 - end as usize];
        if self.up && peer.messages.len() == peer.receives {
            return;
        }
        let Some(Posted { token, at, .. }) = self.push(end, Queue::Send) else {
            return;
        };
        let side = &mut self.ends[end as usize];
        side.buffers[Queue::Send as usize].fill(at..at + len, token);
        if self.up {
            self.ends[1 - end as usize].messages.push((token, len));
        }
        let buffer = &self.ends[end as usize].buffers[Queue::Send as usize];
        self.vi(end)
            .post_send(&buffer.send(at..at + len).immediate(token as u32), token)
            .must();
    }

    /// Whether there was anything to take.
    fn look(&mut self, end: End, queue: Queue) -> bool {
        let empty = self.ends[end as usize].posted[queue as usize].is_empty();
        assert_eq!(self.vi(end).ops().is_empty(queue), Ok(empty));
        match self.vi(end).ops().done(queue).must() {
            Done::Completed(completion) => {
                self.completed(end, queue, completion);
                true
            }
            Done::Empty => {
                assert!(empty, "a descriptor is gone");
                false
            }
            Done::NotDone => {
                assert!(!empty, "nothing is posted");
                false
            }
        }
    }

    fn wait(&mut self, end: End, queue: Queue) {
        let side = &self.ends[end as usize];
        let sure = match (queue, side.posted[queue as usize].front()) {
            (_, None) => false,
            (Queue::Send, Some(_)) => true,
            (Queue::Recv, Some(_)) => {
                let arrives = side.done[Queue::Recv as usize] < side.messages.len();
                !side.idle && (arrives || !self.up)
            }
        };
        if sure {
            let completion = next(self.vi(end), queue);
            self.completed(end, queue, completion);
        }
    }

    fn completed(&mut self, end: End, queue: Queue, completion: Completion) {
        let up = self.up;
        let both = self.level == Reliability::ReliableReception;
        let side = &mut self.ends[end as usize];
        let Posted { token, at, late } = side.posted[queue as usize]
            .pop_front()
            .expect("it was posted");
        assert_eq!(completion.token, token, "not the oldest of {queue:?}");
        match completion.status.fault() {
            None => {
                assert!(!late && !side.flushed[queue as usize], "done after the end");
                let nth = side.done[queue as usize];
                side.done[queue as usize] += 1;
                match queue {
                    Queue::Recv => side.check_message(at, nth, completion),
                    Queue::Send if both => {
                        let peer = 1 - end as usize;
                        self.reached(peer, nth);
                    }
                    Queue::Send => {}
                }
            }
            Some(fault) => {
                assert!(!up, "{queue:?} failed while connected: {fault:?}");
                // The end may come in the middle of a message, whose receive then was the next.
                let cut = queue == Queue::Recv
                    && !side.flushed[queue as usize]
                    && side.done[queue as usize] < side.messages.len();
                let possible = fault == Fault::Flushed || cut && fault == Fault::Partial;
                assert!(possible, "{queue:?}: {fault:?}");
                side.flushed[queue as usize] = true;
            }
        }
    }

    /// At reliable reception: the message is in memory, whether its receive was taken off or not.
    fn reached(&self, peer: usize, nth: usize) {
        let side = &self.ends[peer];
        let (seed, len) = side.messages[nth];
        let done = side.done[Queue::Recv as usize];
        let flushed = side.flushed[Queue::Recv as usize];
        // Its receive is the one that many behind those that were taken off.
        let receive = nth.checked_sub(done).filter(|_| !flushed);
        let Some(posted) = receive.and_then(|ahead| side.posted[Queue::Recv as usize].get(ahead))
        else {
            return;
        };
        side.buffers[Queue::Recv as usize].assert_holds(posted.at..posted.at + len, seed);
    }

    /// After a disconnect everything comes back at once.
    fn drain(&mut self, end: End) {
        for queue in [Queue::Send, Queue::Recv] {
            while self.look(end, queue) {}
            let left = self.ends[end as usize].posted[queue as usize].len();
            assert_eq!(left, 0, "{queue:?} is not flushed");
        }
    }

    fn reconnect(&mut self) {
        if self.up {
            // Nothing is in the way: all that was sent arrives.
            for end in [End::A, End::B] {
                while !self.ends[end as usize].posted[Queue::Send as usize].is_empty() {
                    self.wait(end, Queue::Send);
                }
                while self.ends[end as usize].done[1] < self.ends[end as usize].messages.len() {
                    self.wait(end, Queue::Recv);
                }
            }
            self.run(QueueOp::Disconnect(End::A));
        }
        let lab = self.pair.lab();
        for end in [End::A, End::B] {
            if self.vi(end).state() != Ok(ViState::Idle) {
                await_state(lab, self.vi(end), ViState::Error);
                // What is posted to a broken VI comes back by itself.
                for queue in [Queue::Send, Queue::Recv] {
                    while !self.ends[end as usize].posted[queue as usize].is_empty() {
                        let completion = poll(lab, self.vi(end), queue);
                        self.completed(end, queue, completion);
                    }
                }
            }
            self.run(QueueOp::Disconnect(end));
        }
        let Pair { a, b, va, vb } = &self.pair;
        connect((a, va), (b, vb));
        self.up = true;
        for side in &mut self.ends {
            side.flushed = [false; 2];
            side.done = [0; 2];
            side.messages.clear();
            side.receives = 0;
            side.idle = false;
        }
    }

    fn vi(&self, end: End) -> &Vi {
        match end {
            End::A => &self.pair.va,
            End::B => &self.pair.vb,
        }
    }

    /// Notes one more descriptor, if there is room for it.
    fn push(&mut self, end: End, queue: Queue) -> Option<Posted> {
        let late = self.vi(end).state() != Ok(ViState::Connected);
        self.last += 1;
        let side = &mut self.ends[end as usize];
        let posted = &mut side.posted[queue as usize];
        if posted.len() == SLOTS {
            return None;
        }
        // First in, first out: the place behind the last one has been free for longest.
        let at = posted.back().map_or(0, |last| last.at + SLOT) % (SLOTS as u32 * SLOT);
        let new = Posted {
            token: self.last,
            at,
            late,
        };
        posted.push_back(new);
        Some(new)
    }
}

impl Side {
    /// The `nth` message since the connection was made is in the receive at `at`, and nothing else.
    fn check_message(&self, at: u32, nth: usize, completion: Completion) {
        let (seed, len) = self.messages[nth];
        let buffer = &self.buffers[Queue::Recv as usize];
        assert_eq!(completion.length, len);
        assert_eq!(completion.immediate, Some(seed as u32));
        buffer.assert_holds(at..at + len, seed);
        let rest = buffer.read(at + len..at + SLOT);
        assert!(rest.iter().all(|&byte| byte == EMPTY), "written behind it");
    }
}

/// Descriptors posted to a queue at a time.
const SLOTS: usize = 24;
/// More than a frame of any provider's network, less than a transfer.
const SLOT: u32 = 2500;
const EMPTY: u8 = 0xee;
