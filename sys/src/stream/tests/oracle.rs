//! Lists of operations against a queue of bytes.

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::turn::Turns;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn both_directions_carry_what_a_queue_carries(small in any::<bool>(), steps in proptest::collection::vec((any::<bool>(), step()), 1..200)) {
        let (a, b) = pair_of(if small { Size::LEAST } else { Size::DEFAULT });
        let mut models = [Model::default(), Model::default()];
        for (way, step) in steps {
            let (from, to) = if way { (&a, &b) } else { (&b, &a) };
            models[usize::from(way)].step(from, to, step);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<usize>),
    /// In pieces of the second length, up to the first in all.
    Read(usize, usize),
    PeekOnly(usize),
    Unread(usize, usize),
    SleepForBytes,
    SleepForRoom,
    Release,
    Finish,
}

fn step() -> impl Strategy<Value = Step> {
    let len = || {
        prop_oneof![
            5 => 0..200usize,
            2 => BESIDE - 2..BESIDE + 3,
            2 => BEHIND - 2..BEHIND + 3,
            2 => 4000..4200usize,
            2 => 0..RING / 2,
            1 => RING - 2..RING + 3,
        ]
    };
    prop_oneof![
        8 => proptest::collection::vec(len(), 0..4).prop_map(Step::Write),
        8 => (len(), 1..RING).prop_map(|(all, part)| Step::Read(all, part)),
        2 => len().prop_map(Step::PeekOnly),
        1 => (len(), len()).prop_map(|(skip, n)| Step::Unread(skip, n)),
        2 => Just(Step::SleepForBytes),
        2 => Just(Step::SleepForRoom),
        2 => Just(Step::Release),
        1 => Just(Step::Finish),
    ]
}

#[derive(Default)]
struct Model {
    bytes: VecDeque<u8>,
    next: u64,
    finished: bool,
    asleep_for_bytes: bool,
    asleep_for_room: bool,
}

impl Model {
    fn step(&mut self, from: &Stream, to: &Stream, step: Step) {
        let (tx, rx) = (from.tx(), to.rx());
        match step {
            Step::Write(lens) if !self.finished => {
                let pieces: Vec<Vec<u8>> = lens.iter().map(|len| self.fresh(*len)).collect();
                let all: usize = lens.iter().sum();
                let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
                let (n, bits) = write(tx, false, &slices);
                assert_eq!(n, all.min(from.size().bytes() - self.bytes.len()));
                self.bytes.extend(pieces.concat().iter().take(n));
                // What did not fit is not sent.
                self.next -= (all - n) as u64;
                if n > 0 {
                    assert_eq!(bits & SLEEPER != 0, self.asleep_for_bytes);
                    assert_eq!(tx.knock() != 0, self.asleep_for_bytes);
                    self.asleep_for_bytes = false;
                }
            }
            Step::Write(_) => {}
            Step::Read(all, part) => self.read(rx, all, part),
            Step::PeekOnly(n) => {
                let mut into = vec![0; n];
                let n = rx.peek(rx.head(), &mut into).expect("sound");
                assert_eq!(n, into.len().min(self.bytes.len()));
                assert!(into[..n].iter().eq(self.bytes.iter().take(n)));
            }
            Step::Unread(skip, n) => {
                let mut into = vec![0; n];
                let n = tx.unread(skip as u64, &mut into).expect("sound");
                assert_eq!(n, into.len().min(self.bytes.len().saturating_sub(skip)));
                assert!(into[..n].iter().eq(self.bytes.iter().skip(skip).take(n)));
            }
            Step::SleepForBytes => {
                rx.arm();
                assert!(rx.is_armed());
                assert_eq!(rx.settled(), self.bytes.is_empty() && !self.finished);
                self.asleep_for_bytes = true;
            }
            Step::SleepForRoom => {
                tx.arm();
                let full = self.bytes.len() > 3 * from.size().bytes() / 4;
                assert_eq!(tx.writable(), Ok(!full));
                if full {
                    self.asleep_for_room = true;
                }
            }
            Step::Release => tx.release_unused(),
            Step::Finish => {
                let bits = tx.finish(FIN);
                assert_eq!(bits & SLEEPER != 0, self.asleep_for_bytes);
                self.finished = true;
            }
        }
        assert_eq!(rx.available(), Ok(self.bytes.len()));
        assert_eq!(tx.drained(), Ok(self.bytes.is_empty()));
        assert_eq!(rx.finished() == FIN, self.finished);
        // Nobody sleeps by a ring that is half empty.
        assert!(!self.asleep_for_room || self.bytes.len() > from.size().bytes() / 2);
    }

    fn read(&mut self, rx: Rx<'_>, all: usize, part: usize) {
        let head = rx.head();
        let mut got = 0;
        while got < all {
            let mut into = vec![0; part.min(all - got)];
            let n = rx.peek(head + got as u64, &mut into).expect("sound");
            let expected = self.bytes.iter().skip(got).take(into.len());
            assert!(into[..n].iter().eq(expected));
            got += n;
            if n < into.len() {
                break;
            }
        }
        assert_eq!(got, all.min(self.bytes.len()));
        let (taken, wake) = rx.take(head, head + got as u64);
        assert!(taken);
        if wake {
            self.asleep_for_room &= !rx.knock();
        }
        self.bytes.drain(..got);
    }

    fn fresh(&mut self, len: usize) -> Vec<u8> {
        let bytes = (self.next..).take(len).map(byte_at).collect();
        self.next += len as u64;
        bytes
    }
}

#[test]
fn a_ring_begins_again_at_its_start_at_any_fill() {
    let (a, b) = pair();
    let mut sent = 0u64;
    for fill in (1..RING).step_by(4093) {
        for len in [fill, RING - fill / 2, 1] {
            let data: Vec<u8> = (sent..).take(len).map(byte_at).collect();
            let written = a.tx().write(false, || [&data[..]].into_iter());
            assert_eq!(written, Ok((len, 0)));
            assert_eq!(read(&b, len), data);
            sent += len as u64;
        }
    }
}

#[test]
fn counts_wrap() {
    let (a, b) = pair();
    let near = u64::MAX - RING as u64 - 1000;
    let words = a.direction(0);
    words.published.tail.store(near, Ordering::Relaxed);
    words.sender.tail.store(near, Ordering::Relaxed);
    words.receiver.head.store(near, Ordering::Relaxed);
    words.receiver.looked.store(near, Ordering::Relaxed);
    let mut model = Model::default();
    for round in 0..40 {
        model.step(&a, &b, Step::Write(vec![RING / 3, round, 100_000]));
        model.step(&a, &b, Step::Unread(5, 1000));
        let (rx, head) = (b.rx(), b.rx().head());
        let mut into = vec![0; RING / 2];
        let n = rx.peek(head, &mut into).expect("sound");
        assert!(
            into[..n]
                .iter()
                .eq(model.bytes.drain(..n).collect::<Vec<_>>().iter())
        );
        assert!(rx.take(head, head.wrapping_add(n as u64)).0);
    }
    assert!(b.rx().head() < near, "it did");
}

#[test]
fn two_threads_lose_and_double_nothing() {
    let (a, b) = pair();
    let ends = [a, b].map(|stream| {
        let turns = Turns::new();
        turns.replace(Some(stream)).expect("nobody has a turn");
        turns
    });
    thread::scope(|scope| {
        for (seed, end) in (1u64..).zip(&ends) {
            scope.spawn(move || send_all(end, seed, BYTES));
            scope.spawn(move || receive_all(end, seed, BYTES));
        }
    });
}

fn send_all(end: &Turns<Stream>, seed: u64, bytes: u64) {
    let mut random = Random(seed);
    let mut sent = 0;
    while sent < bytes {
        let lens = [random.len(), random.len()].map(|len| len.min(bytes - sent) as usize / 2);
        let data: Vec<u8> = (sent..).take(lens.iter().sum()).map(byte_at).collect();
        let turn = end.take(0).expect("a stream");
        let (one, two) = data.split_at(lens[0]);
        let pieces = [one, two];
        let pieces = if random.below(2) == 0 {
            &pieces[..]
        } else {
            &[&data[..]]
        };
        let (n, _) = write(turn.tx(), turn.nested(), pieces);
        drop(turn);
        sent += n as u64;
        if n == 0 {
            if bytes - sent == 1 {
                let last = [byte_at(sent)];
                let turn = end.take(0).expect("a stream");
                sent += turn
                    .tx()
                    .write(false, || [&last[..]].into_iter())
                    .expect("sound")
                    .0 as u64;
            }
            thread::yield_now();
        }
    }
}

fn receive_all(end: &Turns<Stream>, seed: u64, bytes: u64) {
    let mut random = Random(seed + 100);
    let mut into = vec![0; RING];
    let mut got = 0;
    while got < bytes {
        let len = random.len() as usize;
        let turn = end.take(1).expect("a stream");
        let rx = turn.rx();
        let head = rx.head();
        let n = rx.peek(head, &mut into[..len]).expect("sound");
        assert!(rx.take(head, head + n as u64).0);
        drop(turn);
        assert!(
            (got..).map(byte_at).take(n).eq(into[..n].iter().copied()),
            "at {got}"
        );
        got += n as u64;
        if n == 0 {
            thread::yield_now();
        }
    }
}

const BYTES: u64 = 40 << 20;
