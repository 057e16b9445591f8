//! Two ends over a model of TCP, in every interleaving of what they can do: the bytes that arrive are the bytes that were sent.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

static BELLS: AtomicU64 = AtomicU64::new(0);

/// One direction of a TCP connection.
struct Pipe {
    bytes: RefCell<VecDeque<u8>>,
    capacity: usize,
    written: Cell<u64>,
    taken: Cell<u64>,
    ended: Cell<bool>,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self {
            bytes: RefCell::default(),
            capacity,
            written: Cell::new(0),
            taken: Cell::new(0),
            ended: Cell::new(false),
        }
    }
}

/// One end of it.
struct Model<'a> {
    out: &'a Pipe,
    input: &'a Pipe,
    /// What the next send says, once.
    refusal: Cell<Option<Errno>>,
    is_reset: Cell<bool>,
}

impl Kernel for Model<'_> {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if let Some(errno) = self.refusal.take() {
            return Err(errno);
        }
        let mut queue = self.out.bytes.borrow_mut();
        let n = bytes.len().min(self.out.capacity - queue.len());
        if n == 0 {
            return Err(Errno::AGAIN);
        }
        queue.extend(&bytes[..n]);
        self.out.written.set(self.out.written.get() + n as u64);
        Ok(n)
    }

    fn recv(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let n = self.peek(into)?;
        self.input.bytes.borrow_mut().drain(..n);
        self.input.taken.set(self.input.taken.get() + n as u64);
        Ok(n)
    }

    fn peek(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let queue = self.input.bytes.borrow();
        if queue.is_empty() && !self.input.ended.get() {
            return Err(Errno::AGAIN);
        }
        let n = into.len().min(queue.len());
        for (to, from) in into.iter_mut().zip(queue.iter()) {
            *to = *from;
        }
        Ok(n)
    }

    fn reset_on_close(&self) {}

    fn reset_now(&self) {
        self.is_reset.set(true);
    }

    fn finish(&self) {
        self.out.ended.set(true);
    }

    fn written(&self) -> Result<u64, Errno> {
        Ok(self.out.written.get())
    }

    fn taken(&self) -> Result<u64, Errno> {
        Ok(self.input.taken.get())
    }

    fn queued(&self) -> Result<usize, Errno> {
        Ok(self.input.bytes.borrow().len())
    }
}

/// What one end may do.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Send(usize),
    Receive(usize),
    ReceiveTwo(usize, usize),
    Peek(usize),
    Skip(usize),
    Count(usize),
    /// Goes to sleep to receive, and does not wake.
    ArmReceive,
    ArmSend,
    PayBell,
    LeaveRing,
    CallBack,
    Finish,
}

fn deeds() -> impl Strategy<Value = Vec<(bool, Deed)>> {
    let size = || prop_oneof![4 => 1..200usize, 2 => 1..5_000usize, 1 => 1..700_000usize];
    let deed = prop_oneof![
        8 => size().prop_map(Deed::Send),
        8 => size().prop_map(Deed::Receive),
        2 => (1..100usize, size()).prop_map(|(a, b)| Deed::ReceiveTwo(a, b)),
        2 => (1..300usize).prop_map(Deed::Peek),
        1 => (1..300usize).prop_map(Deed::Skip),
        1 => (1..300usize).prop_map(Deed::Count),
        3 => Just(Deed::ArmReceive),
        1 => Just(Deed::ArmSend),
        2 => Just(Deed::PayBell),
        1 => Just(Deed::LeaveRing),
        1 => Just(Deed::CallBack),
        1 => Just(Deed::Finish),
    ];
    prop::collection::vec((any::<bool>(), deed), 1..120)
}

/// One end, with what it has sent and received.
struct End<'a> {
    flow: Flow,
    kernel: Model<'a>,
    sent: u64,
    received: u64,
    /// Waits for what it called back.
    away: bool,
    finished: bool,
    ended: bool,
    reset: bool,
}

/// The byte at this place in a stream: not of a period that could hide a shift.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl End<'_> {
    fn send(&mut self, n: usize) {
        if self.finished {
            return;
        }
        let data: Vec<u8> = (self.sent..self.sent + n as u64).map(byte).collect();
        let (first, second) = data.split_at(n / 3);
        let buffers = [IoSlice::new(first), IoSlice::new(second)];
        let pieces = Pieces {
            buffers: &buffers,
            skip: 0,
        };
        match self.flow.send(&self.kernel, &pieces, false, true) {
            Ok(n) => self.sent += n as u64,
            Err(Stop::Again) => {}
            Err(stop) => panic!("send: {stop:?}"),
        }
    }

    fn receive(&mut self, sizes: &[usize], take: Take) {
        let back = if self.away {
            self.flow.came_back(&self.kernel)
        } else {
            Ok(true)
        };
        match back {
            Ok(true) => {}
            Ok(false) => return,
            // Doorbells behind unread bytes: the caller resets the connection.
            Err(Stop::Failed(Errno::NOBUFS)) => {
                self.reset = true;
                return;
            }
            Err(stop) => panic!("came_back: {stop:?}"),
        }
        self.away = false;
        self.flow.consent(&self.kernel);
        let mut rooms: Vec<Vec<u8>> = sizes.iter().map(|&n| vec![0; n]).collect();
        let mut into: Vec<_> = rooms.iter_mut().map(|room| IoSliceMut::new(room)).collect();
        match self.flow.receive(&self.kernel, &mut into, take) {
            Ok(n) => {
                let bytes = rooms.concat();
                for (i, found) in bytes.iter().take(n).enumerate() {
                    if matches!(take, Take::Read | Take::Peek) {
                        assert_eq!(
                            *found,
                            byte(self.received + i as u64),
                            "at {}",
                            self.received + i as u64
                        );
                    }
                }
                if !take.leaves() {
                    self.received += n as u64;
                }
            }
            Err(Stop::Again) => {}
            Err(Stop::End) => self.ended = true,
            Err(stop) => panic!("receive: {stop:?}"),
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Send(n) => self.send(n),
            Deed::Receive(n) => self.receive(&[n], Take::Read),
            Deed::ReceiveTwo(a, b) => self.receive(&[a, b], Take::Read),
            Deed::Peek(n) => self.receive(&[n], Take::Peek),
            Deed::Skip(n) => self.receive(&[], Take::Skip(n)),
            Deed::Count(n) => self.receive(&[], Take::Count(n)),
            Deed::ArmReceive => {
                if !self.away {
                    self.flow.arm_receive(&self.kernel).expect("sound");
                }
            }
            Deed::ArmSend => {
                self.flow.arm_send().expect("sound");
            }
            Deed::PayBell => {
                if self.flow.owes_bell() && !self.finished {
                    self.flow.pay_bell(&self.kernel, true).expect("sound");
                }
            }
            Deed::LeaveRing => self.flow.leave_ring(&self.kernel).expect("sound"),
            Deed::CallBack => {
                if !self.finished && !self.away {
                    match self.flow.call_back(&self.kernel, true) {
                        Ok(()) => self.away = true,
                        Err(Stop::Failed(Errno::NOBUFS)) => self.reset = true,
                        Err(stop) => panic!("call_back: {stop:?}"),
                    }
                }
            }
            Deed::Finish => {
                if !self.finished {
                    if !self.flow.finish(&self.kernel, true).expect("sound") {
                        self.kernel.finish();
                    }
                    self.finished = true;
                }
            }
        }
    }
}

fn ends<'a>(pipes: &'a [Pipe; 2]) -> [End<'a>; 2] {
    let memory = Stream::memory(Size::DEFAULT).expect("memfd");
    let other = memory.try_clone().expect("dup");
    let end = |stream, out, input| End {
        flow: Flow::new(stream, &BELLS),
        kernel: Model {
            out,
            input,
            refusal: Cell::new(None),
            is_reset: Cell::new(false),
        },
        sent: 0,
        received: 0,
        away: false,
        finished: false,
        ended: false,
        reset: false,
    };
    [
        end(
            Stream::map(memory, Side::A).expect("map"),
            &pipes[0],
            &pipes[1],
        ),
        end(
            Stream::map(other, Side::B).expect("map"),
            &pipes[1],
            &pipes[0],
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn what_arrives_is_what_was_sent(deeds in deeds(), early in (0..3000u64, 0..3000u64), capacity in 1000..200_000usize) {
        let pipes = [Pipe::new(capacity), Pipe::new(capacity)];
        let [mut a, mut b] = ends(&pipes);
        // Some bytes were on TCP before there were rings.
        for (end, n) in [(&mut a, early.0), (&mut b, early.1)] {
            let data: Vec<u8> = (0..n).map(byte).collect();
            if n > 0 {
                end.sent = end.kernel.send(&data).unwrap_or(0) as u64;
            }
        }
        for (first, deed) in deeds {
            if first { a.act(deed) } else { b.act(deed) }
        }
        // In the end both read all there is; who called back is served.
        for _ in 0..4000 {
            for end in [&mut a, &mut b] {
                end.flow.serve_back(&end.kernel).expect("sound");
                end.receive(&[60_000], Take::Read);
            }
            if a.reset || b.reset {
                return Ok(());
            }
            if a.received == b.sent && b.received == a.sent {
                break;
            }
        }
        prop_assert_eq!(a.received, b.sent);
        prop_assert_eq!(b.received, a.sent);
        let peers = [b.finished, a.finished];
        for (end, peer) in [&mut a, &mut b].into_iter().zip(peers) {
            end.receive(&[10], Take::Read);
            prop_assert_eq!(end.ended, peer, "an end is seen where there is one");
        }
    }
}

/// Sends until there is no room, and says that it would sleep for some.
fn fill(end: &mut End<'_>) {
    end.flow.consent(&end.kernel);
    while end.flow.unread() < sys::stream::RING as u64 {
        end.send(100_000);
    }
    assert_eq!(end.flow.arm_send(), Ok(true));
}

#[test]
fn a_bell_that_cannot_go_now_is_owed() {
    let pipes = [Pipe::new(1000), Pipe::new(1000)];
    let [mut sender, mut receiver] = ends(&pipes);
    receiver.flow.consent(&receiver.kernel);
    fill(&mut sender);
    receiver.receive(&[sys::stream::RING], Take::Read);
    assert!(receiver.flow.owes_bell());
    // Another thread is in the middle of a send on TCP.
    receiver
        .flow
        .pay_bell(&receiver.kernel, false)
        .expect("sound");
    assert_eq!(pipes[1].written.get(), 0);
    receiver
        .flow
        .pay_bell(&receiver.kernel, true)
        .expect("sound");
    assert_eq!(pipes[1].written.get(), 1, "the doorbell");
    assert!(!receiver.flow.owes_bell());
}

#[test]
fn who_goes_back_wakes_whom_it_can_wake_no_more() {
    let pipes = [Pipe::new(1000), Pipe::new(1000)];
    let [mut sender, mut receiver] = ends(&pipes);
    receiver.flow.consent(&receiver.kernel);
    sender.flow.consent(&sender.kernel);
    receiver.send(1);
    fill(&mut sender);
    assert!(sender.flow.can_be_rung());
    receiver
        .flow
        .leave_ring(&receiver.kernel)
        .expect("on the ring");
    assert_eq!(pipes[1].written.get(), 1, "the doorbell");
    assert!(!sender.flow.can_be_rung());
}

#[test]
fn a_bell_that_is_refused_is_told_after_the_bytes_and_at_both_ends() {
    let pipes = [Pipe::new(1000), Pipe::new(1000)];
    let [mut sender, mut receiver] = ends(&pipes);
    receiver.flow.consent(&receiver.kernel);
    sender.flow.consent(&sender.kernel);
    sender.send(3);
    receiver.receive(&[3], Take::Read);
    assert_eq!(receiver.flow.arm_receive(&receiver.kernel), Ok(true));
    sender.kernel.refusal.set(Some(Errno::NOMEM));
    // Told that it failed, a program would send the same again.
    sender.send(5);
    assert_eq!(sender.sent, 8);
    assert!(sender.kernel.is_reset.get());
    receiver.receive(&[5], Take::Read);
    assert_eq!(receiver.received, 8);
    // Who has read everything would take a reset for the death of one that was killed, and that for an orderly end.
    receiver.flow.note_error(Errno::CONNRESET);
    for end in [&sender, &receiver] {
        assert_eq!(end.flow.kernel_end(), Some(Some(Errno::CONNRESET)));
    }
}
