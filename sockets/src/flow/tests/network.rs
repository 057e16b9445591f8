//! A TCP connection in virtual time: what one end sends comes to the other later, in order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;

use super::super::*;

/// What is under way.
enum Segment {
    Bytes(Vec<u8>),
    Finish,
    Reset,
}

/// One direction.
struct Wire {
    /// With the times at which it comes.
    flying: VecDeque<(u64, Segment)>,
    /// Come, and not taken.
    queue: VecDeque<u8>,
    capacity: usize,
    written: u64,
    taken: u64,
    finished: bool,
    ended: bool,
}

impl Wire {
    fn room(&self) -> usize {
        let flying = self.flying.iter().map(|(_, segment)| match segment {
            Segment::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        self.capacity
            .saturating_sub(self.queue.len() + flying.sum::<usize>())
    }
}

/// What an end knows of the connection beside its bytes.
#[derive(Default)]
struct State {
    /// Told once.
    error: Cell<Option<Errno>>,
    is_over: Cell<bool>,
    is_closed: Cell<bool>,
    linger: Cell<Option<Duration>>,
    /// What the next send says, once.
    refusal: Cell<Option<Errno>>,
    /// Both ways are shut.
    is_shut: Cell<bool>,
    /// What is queued is urgent, which a count leaves out.
    has_mark: Cell<bool>,
}

/// Both directions, and the time. The first wire is what end 0 sends.
pub(super) struct Network {
    now: Cell<u64>,
    /// How long the next segments take, in turn.
    delays: Vec<u64>,
    sent: Cell<usize>,
    wires: [RefCell<Wire>; 2],
    states: [State; 2],
}

impl Network {
    /// Without delays, all comes at once.
    pub(super) fn new(capacity: usize, delays: Vec<u64>) -> Self {
        let wire = || {
            RefCell::new(Wire {
                flying: VecDeque::new(),
                queue: VecDeque::new(),
                capacity,
                written: 0,
                taken: 0,
                finished: false,
                ended: false,
            })
        };
        Self {
            now: Cell::new(0),
            delays,
            sent: Cell::new(0),
            wires: [wire(), wire()],
            states: [State::default(), State::default()],
        }
    }

    pub(super) fn end(&self, side: usize) -> End<'_> {
        End {
            network: self,
            side,
        }
    }

    /// Time passes, and what was under way for so long comes.
    pub(super) fn pass(&self, time: u64) {
        self.now.set(self.now.get() + time);
        while self.deliver_one() {}
    }

    /// Until nothing is under way.
    pub(super) fn settle(&self) {
        while self
            .wires
            .iter()
            .any(|wire| !wire.borrow().flying.is_empty())
        {
            self.pass(DELAY_MAX);
        }
    }

    fn deliver_one(&self) -> bool {
        for from in 0..2 {
            let mut wire = self.wires[from].borrow_mut();
            if wire
                .flying
                .front()
                .is_none_or(|(at, _)| *at > self.now.get())
            {
                continue;
            }
            let Some((_, segment)) = wire.flying.pop_front() else {
                continue;
            };
            let to = &self.states[1 - from];
            match segment {
                _ if to.is_over.get() && !to.is_closed.get() => {}
                Segment::Bytes(_) if to.is_closed.get() => {
                    drop(wire);
                    self.fly(1 - from, Segment::Reset);
                }
                Segment::Bytes(_) if to.is_shut.get() => {
                    drop(wire);
                    to.error.set(Some(Errno::CONNRESET));
                    to.is_over.set(true);
                    self.fly(1 - from, Segment::Reset);
                }
                Segment::Bytes(bytes) => wire.queue.extend(bytes),
                Segment::Finish => wire.ended = true,
                Segment::Reset => {
                    to.error.set(Some(Errno::CONNRESET));
                    to.is_over.set(true);
                }
            }
            return true;
        }
        false
    }

    fn fly(&self, from: usize, segment: Segment) {
        let delay = match self.delays.len() {
            0 => 0,
            count => self.delays[self.sent.get() % count],
        };
        self.sent.set(self.sent.get() + 1);
        let mut wire = self.wires[from].borrow_mut();
        let after = wire.flying.back().map_or(0, |(at, _)| *at);
        let at = after.max(self.now.get() + delay);
        wire.flying.push_back((at, segment));
        drop(wire);
        self.pass(0);
    }
}

/// One end of the connection.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    network: &'a Network,
    side: usize,
}

impl End<'_> {
    fn state(&self) -> &State {
        &self.network.states[self.side]
    }

    fn out(&self) -> &RefCell<Wire> {
        &self.network.wires[self.side]
    }

    fn input(&self) -> &RefCell<Wire> {
        &self.network.wires[1 - self.side]
    }

    /// Whether the kernel has forgotten its counts.
    fn has_no_counts(&self) -> bool {
        let (out, input) = (self.out().borrow(), self.input().borrow());
        self.state().is_over.get() || (out.finished && out.flying.is_empty() && input.ended)
    }

    pub(super) fn refuse(&self, errno: Errno) {
        self.state().refusal.set(Some(errno));
    }

    /// The next call that hears of errors is told this one.
    pub(super) fn tell(&self, errno: Errno) {
        self.state().error.set(Some(errno));
    }

    /// Whether what is queued is urgent.
    pub(super) fn set_mark(&self, on: bool) {
        self.state().has_mark.set(on);
    }

    /// `shutdown(SHUT_RDWR)`.
    pub(super) fn shut(&self) {
        self.state().is_shut.set(true);
        self.finish();
    }

    pub(super) fn is_reset(&self) -> bool {
        self.state().is_over.get()
    }

    /// Bytes that this end has put there.
    pub(super) fn put(&self) -> u64 {
        self.out().borrow().written
    }

    /// Until all that is under way by now has come.
    pub(super) fn wait_for_all(&self) {
        self.network.pass(2 * DELAY_MAX);
    }

    /// The last descriptor goes, by `close` or with its process.
    pub(super) fn close(&self) {
        let state = self.state();
        if state.is_closed.replace(true) || state.is_over.get() {
            return;
        }
        if self.resets_on_close() || !self.input().borrow().queue.is_empty() {
            self.network.fly(self.side, Segment::Reset);
        } else {
            self.finish();
        }
    }
}

impl Kernel for End<'_> {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let state = self.state();
        if let Some(errno) = state.refusal.take().or_else(|| state.error.take()) {
            return Err(errno);
        }
        if state.is_over.get() || self.out().borrow().finished {
            return Err(Errno::PIPE);
        }
        let n = bytes.len().min(self.out().borrow().room());
        if n == 0 {
            return Err(Errno::AGAIN);
        }
        self.out().borrow_mut().written += n as u64;
        let segment = Segment::Bytes(bytes.iter().take(n).copied().collect());
        self.network.fly(self.side, segment);
        Ok(n)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
        self.send(&pieces.concat())
    }

    fn recv(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let n = self.peek(into)?;
        let mut wire = self.input().borrow_mut();
        wire.queue.drain(..n);
        wire.taken += n as u64;
        Ok(n)
    }

    fn peek(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let wire = self.input().borrow();
        if wire.queue.is_empty() {
            if let Some(errno) = self.state().error.take() {
                return Err(errno);
            }
            if !wire.ended && !self.state().is_over.get() {
                return Err(Errno::AGAIN);
            }
        }
        let n = into.len().min(wire.queue.len());
        for (to, from) in into.iter_mut().zip(wire.queue.iter()) {
            *to = *from;
        }
        Ok(n)
    }

    fn linger(&self) -> Option<Duration> {
        self.state().linger.get()
    }

    fn set_linger(&self, linger: Option<Duration>) {
        self.state().linger.set(linger);
    }

    fn reset_now(&self) {
        if !self.state().is_over.replace(true) {
            self.network.fly(self.side, Segment::Reset);
        }
    }

    fn finish(&self) {
        if !self.state().is_over.get()
            && !std::mem::replace(&mut self.out().borrow_mut().finished, true)
        {
            self.network.fly(self.side, Segment::Finish);
        }
    }

    fn has_finished(&self) -> bool {
        self.state().is_over.get() || self.out().borrow().finished
    }

    fn has_ended(&self) -> bool {
        self.state().is_over.get() || self.input().borrow().ended
    }

    fn written(&self) -> Result<u64, Errno> {
        if self.has_no_counts() {
            return Err(Errno::NOTCONN);
        }
        Ok(self.out().borrow().written)
    }

    fn taken(&self) -> Result<u64, Errno> {
        if self.has_no_counts() {
            return Err(Errno::NOTCONN);
        }
        Ok(self.input().borrow().taken)
    }

    fn queued(&self) -> Result<usize, Errno> {
        if self.has_mark() {
            return Ok(0);
        }
        self.queued_past_mark()
    }

    fn queued_past_mark(&self) -> Result<usize, Errno> {
        Ok(self.input().borrow().queue.len())
    }

    fn has_mark(&self) -> bool {
        self.state().has_mark.get()
    }
}

/// No segment takes longer.
pub(super) const DELAY_MAX: u64 = 1000;
