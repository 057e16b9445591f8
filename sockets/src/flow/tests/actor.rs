//! One end of a connection, which does what it is told and checks what it gets.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};

use proptest::prelude::*;

use super::super::*;
use super::BELLS;
use crate::flow::watch::Act;

/// What one end may do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    Send(usize),
    Receive(usize),
    ReceiveTwo(usize, usize),
    Peek(usize),
    Skip(usize),
    Count(usize),
    /// Goes to sleep to receive, and does not wake.
    ArmReceive,
    ArmSend,
    /// Sends until there is no room, and goes to sleep for some.
    Fill,
    /// Receives all there is.
    Empty,
    PayBell,
    LeaveRing,
    CallBack,
    /// Waits no longer for whom it called.
    GoAlone,
    Finish,
    /// `close` of the last descriptor.
    Close,
    /// `kill -9`.
    Die,
}

/// A number of bytes, mostly few, and now and then more than a ring holds.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1..200usize, 2 => 1..5_000usize, 1 => 1..700_000usize]
}

/// What an end does that stays.
pub(super) fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => size().prop_map(Deed::Send),
        8 => size().prop_map(Deed::Receive),
        2 => (1..100usize, size()).prop_map(|(a, b)| Deed::ReceiveTwo(a, b)),
        2 => (1..300usize).prop_map(Deed::Peek),
        1 => (1..300usize).prop_map(Deed::Skip),
        1 => (1..300usize).prop_map(Deed::Count),
        3 => Just(Deed::ArmReceive),
        1 => Just(Deed::ArmSend),
        1 => Just(Deed::Fill),
        1 => Just(Deed::Empty),
        2 => Just(Deed::PayBell),
        1 => Just(Deed::LeaveRing),
        1 => Just(Deed::CallBack),
        1 => Just(Deed::GoAlone),
        1 => Just(Deed::Finish),
    ]
}

/// A TCP connection that can be left.
pub(super) trait Ground: Kernel {
    /// The last descriptor goes.
    fn close(&self);
    /// For longer than anything is under way, as [`go_back`](crate::handover::go_back) waits before it goes alone.
    fn wait(&self);
}

/// One end.
pub(super) struct Actor<K> {
    pub(super) flow: Flow,
    pub(super) kernel: K,
    /// Calls that sent, or tried to.
    pub(super) sends: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// On its way back to TCP.
    pub(super) away: bool,
    /// What it sends goes to TCP for good.
    pub(super) renounced: bool,
    pub(super) finished: bool,
    pub(super) ended: bool,
    /// What it was told of the connection instead of an end.
    pub(super) failed: Option<Errno>,
    /// The connection can only be reset: doorbells lie behind unread bytes.
    pub(super) stuck: bool,
    /// It asked the other to go back to TCP.
    pub(super) called: bool,
    /// Closed, or dead.
    pub(super) gone: bool,
}

impl<K: Kernel> fmt::Debug for Actor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rx, tx) = (self.flow.stream().rx(), self.flow.stream().tx());
        f.debug_struct("Actor")
            .field("sent", &self.sent)
            .field("received", &self.received)
            .field(
                "stands",
                &(self.away, self.finished, self.ended, self.failed),
            )
            .field("kernel_end", &self.flow.kernel_end())
            .field("phase", &rx.phase())
            .field("in", &(rx.to_ring(), rx.to_tcp(), rx.available().ok()))
            .field("out", &(tx.to_ring(), tx.to_tcp(), self.flow.unread()))
            .field("queued", &self.kernel.queued())
            .finish()
    }
}

/// The byte at this place in a stream: not of a period that could hide a shift.
pub(super) fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl<K: Kernel> Actor<K> {
    /// Both ends of one.
    pub(super) fn both(kernels: [K; 2]) -> [Self; 2] {
        let memory = Stream::memory(SIZE).expect("memfd");
        let other = memory.try_clone().expect("dup");
        let [first, second] = kernels;
        [
            Self::new(Stream::map(memory, Side::A).expect("map"), first),
            Self::new(Stream::map(other, Side::B).expect("map"), second),
        ]
    }

    fn new(stream: Stream, kernel: K) -> Self {
        Self {
            flow: Flow::new(stream, &BELLS),
            kernel,
            sends: 0,
            sent: 0,
            received: 0,
            away: false,
            renounced: false,
            finished: false,
            ended: false,
            failed: None,
            stuck: false,
            called: false,
            gone: false,
        }
    }

    /// Whether nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.ended || self.failed.is_some() || self.gone || self.stuck
    }

    /// Bytes that go over TCP before there are rings.
    pub(super) fn send_early(&mut self, n: u64) {
        let data: Vec<u8> = (0..n).map(byte).collect();
        if n > 0 {
            self.sent = self.kernel.send(&data).unwrap_or(0) as u64;
        }
    }

    pub(super) fn send(&mut self, n: usize) {
        if self.finished || self.is_over() {
            return;
        }
        self.sends += 1;
        let data: Vec<u8> = (self.sent..self.sent + n as u64).map(byte).collect();
        // As `io` does.
        let at_once = n % 2 == 1;
        let (first, second) = data.split_at(if at_once { 0 } else { n / 3 });
        let buffers = [IoSlice::new(first), IoSlice::new(second)];
        let pieces = Pieces {
            buffers: &buffers,
            skip: 0,
            most: usize::MAX,
        };
        let sent = self.flow.watched(Act::Send, |flow| {
            let short = if at_once {
                flow.send_short(&self.kernel, &buffers[1])
            } else {
                None
            };
            short.map_or_else(|| flow.send(&self.kernel, &pieces, false, true), Ok)
        });
        match sent {
            Ok(n) => self.sent += n as u64,
            Err(stop) => self.stopped(stop),
        }
    }

    pub(super) fn receive(&mut self, sizes: &[usize], take: Take) {
        if self.is_over() {
            return;
        }
        let mut rooms: Vec<Vec<u8>> = sizes.iter().map(|&n| vec![0; n]).collect();
        let mut into: Vec<_> = rooms.iter_mut().map(|room| IoSliceMut::new(room)).collect();
        let received = self.flow.watched(Act::Receive, |flow| {
            flow.consent(&self.kernel);
            // As `io` does.
            let short = match &mut into[..] {
                [room] if take == Take::Read => flow.receive_short(room),
                _ => None,
            };
            short.map_or_else(|| flow.receive(&self.kernel, &mut into, take), Ok)
        });
        match received {
            Ok(n) => {
                let bytes = rooms.concat();
                for (at, found) in (self.received..).zip(bytes.iter().take(n)) {
                    if matches!(take, Take::Read | Take::Peek) {
                        assert_eq!(*found, byte(at), "at {at}");
                    }
                }
                if !take.leaves() {
                    self.received += n as u64;
                }
            }
            Err(stop) => {
                self.stopped(stop);
                let serve = |flow: &Flow| flow.serve_back(&self.kernel);
                let _ = self.flow.watched(Act::Serve, serve);
            }
        }
    }

    fn stopped(&mut self, stop: Stop) {
        match stop {
            Stop::Again => {}
            Stop::End => self.ended = true,
            // The caller resets the connection.
            Stop::Failed(Errno::NOBUFS) => self.stuck = true,
            Stop::Failed(errno) => self.failed = Some(errno),
        }
    }

    /// As before a sleep.
    pub(super) fn arm_receive(&mut self) {
        if !self.away && !self.is_over() {
            let armed = |flow: &Flow| flow.arm_receive(&self.kernel);
            self.flow.watched(Act::Sleep, armed).expect("sound");
        }
    }

    fn done(&mut self, done: Result<(), Stop>) {
        if let Err(stop) = done {
            self.stopped(stop);
        }
    }

    pub(super) fn act(&mut self, deed: Deed)
    where
        K: Ground,
    {
        let goes = matches!(deed, Deed::Close | Deed::Die);
        if self.is_over() && !goes {
            return;
        }
        if self.away && !matches!(deed, Deed::Die) {
            // Every other call waits.
            return self.walk_on(Ok(()), matches!(deed, Deed::GoAlone));
        }
        match deed {
            Deed::Send(n) => self.send(n),
            Deed::Receive(n) => self.receive(&[n], Take::Read),
            Deed::ReceiveTwo(a, b) => self.receive(&[a, b], Take::Read),
            Deed::Peek(n) => self.receive(&[n], Take::Peek),
            Deed::Skip(n) => self.receive(&[], Take::Skip(n)),
            Deed::Count(n) => self.receive(&[], Take::Count(n)),
            Deed::ArmReceive => self.arm_receive(),
            Deed::ArmSend => {
                self.flow.arm_send().expect("sound");
            }
            Deed::Fill => self.fill(),
            Deed::Empty => self.receive(&[RING], Take::Read),
            Deed::PayBell => self.pay_bell(),
            Deed::LeaveRing => {
                // There is nowhere to go if the connection is over.
                let _ = self.flow.watched(Act::Leave, |flow| {
                    flow.renounce_ring(&self.kernel)?;
                    flow.serve_back(&self.kernel)
                });
            }
            Deed::CallBack => {
                let called = |flow: &Flow| flow.call_back(&self.kernel, true);
                let called = self.flow.watched(Act::GoBack, called);
                self.away = true;
                self.renounced = false;
                self.called = true;
                self.walk_on(called, false);
            }
            Deed::GoAlone => {}
            Deed::Finish => {
                if !std::mem::replace(&mut self.finished, true) {
                    let finished = |flow: &Flow| flow.finish(&self.kernel, true);
                    match self.flow.watched(Act::Shutdown, finished) {
                        Ok(true) => {}
                        Ok(false) => self.kernel.finish(),
                        Err(stop) => self.stopped(stop),
                    }
                }
            }
            Deed::Close | Deed::Die => {
                if !std::mem::replace(&mut self.gone, true) {
                    if matches!(deed, Deed::Close) {
                        let leave = |flow: &Flow| flow.leave(&self.kernel, true);
                        self.flow.watched(Act::Close, leave);
                    }
                    self.kernel.close();
                }
            }
        }
    }

    /// A step of [`go_back`](crate::handover::go_back). What fails is answered by a reset.
    fn walk_on(&mut self, begun: Result<(), Stop>, alone: bool)
    where
        K: Ground,
    {
        if alone {
            self.kernel.wait();
        }
        let (kernel, renounced) = (&self.kernel, &mut self.renounced);
        let done = self.flow.watched(Act::GoBack, |flow| {
            begun?;
            let mut came = match flow.came_back(kernel) {
                Err(Stop::End) if flow.available() == Ok(0) => true,
                came => came?,
            };
            let alone = !came && alone;
            let rung = alone && !*renounced && flow.call_again(kernel, true)?;
            if came || alone {
                flow.renounce_ring(kernel)?;
                *renounced = true;
            }
            if alone {
                came = flow.go_alone(kernel, rung)?;
            }
            Ok::<_, Stop>(flow.serve_back(kernel)? && came)
        });
        match done {
            Ok(done) => self.away = !done,
            Err(_) => self.stuck = true,
        }
    }

    fn fill(&mut self) {
        let mut before = None;
        while before.replace(self.sent) != Some(self.sent) {
            self.send(2 * RING);
        }
        self.flow.arm_send().expect("sound");
    }

    fn pay_bell(&mut self) {
        if self.flow.owes_bell() && !self.finished {
            let pay = |flow: &Flow| flow.pay_bell(&self.kernel, true);
            let done = self.flow.watched(Act::Bell, pay);
            self.done(done);
        }
    }

    /// What a program does that reads on: its calls serve the other end, too.
    pub(super) fn read_on(&mut self)
    where
        K: Ground,
    {
        if self.gone || self.stuck {
            return;
        }
        if self.away {
            return self.walk_on(Ok(()), false);
        }
        // What is wrong the next call tells.
        let serve = |flow: &Flow| flow.serve_back(&self.kernel);
        let _ = self.flow.watched(Act::Serve, serve);
        self.receive(&[60_000], Take::Read);
        self.arm_receive();
    }
}

/// Rings that are soon full.
const SIZE: Size = Size::LEAST;
pub(super) const RING: usize = SIZE.bytes();
