use std::{collections::VecDeque, ops::Range, os::fd::OwnedFd};

use proptest::prelude::*;

use super::*;
use crate::{
    mem::Memory,
    segment::{Control, DATA_MIN, Segment, Side, Wait, split},
};

#[test]
fn a_frame_crosses_with_its_data() {
    let (mut producer, mut consumer) = pair();
    assert!(!consumer.ready());
    assert_eq!(consumer.peek(), None);

    let offset = producer.reserve(5).expect("an empty ring has room");
    producer
        .write_bytes(offset, 0, b"hello")
        .expect("in the piece");
    producer.publish(Cell([7; WORDS]));

    assert!(consumer.ready());
    assert_eq!(consumer.peek(), Some(Frame::Cell(Cell([7; WORDS]))));
    let mut data = [0; 5];
    consumer
        .read_bytes(offset, &mut data)
        .expect("in the data area");
    assert_eq!(&data, b"hello");
    assert!(!producer.is_empty());
    consumer.release();
    assert!(producer.is_empty());
    assert!(!consumer.ready());
}

#[test]
fn words_keep_their_places() {
    let words = std::array::from_fn(|i| 0x8000_0000 + u32::try_from(i).expect("small"));
    let (first, body) = Cell(words).pairs();
    let head = join(u32::MAX, first);
    assert_eq!(low(head), u32::MAX);
    assert_eq!(Cell::unpack(head, body), Cell(words));
}

#[test]
fn a_producer_knows_how_far_the_consumer_is() {
    let (producer, consumer) = pair();
    let (mut producer, mut consumer) = (
        producer.starting_at(u32::MAX),
        consumer.starting_at(u32::MAX),
    );
    let mut published = [producer.published(); 4];
    for count in &mut published[1..] {
        producer.reserve(0).expect("room");
        producer.publish(Cell::default());
        *count = producer.published();
    }
    for released in 0..4 {
        let far = published.map(|frames| producer.has_released(frames));
        assert_eq!(far, std::array::from_fn(|frames| frames <= released));
        if consumer.peek().is_some() {
            consumer.release();
        }
    }
}

/// Whatever went before: who drains a ring in which there was no room says so at least once.
#[test]
fn a_full_ring_that_is_drained_tells_of_room() {
    let mut random = Random(1);
    for round in 0..2000 {
        let (mut producer, mut consumer) = pair();
        let mut lens = VecDeque::new();
        let most = 1 << (round % 13);
        // Some of an earlier lap, so that marks and places are anywhere.
        for _ in 0..random.below(200) {
            let len = random.below(most);
            if producer.reserve(len).is_some() {
                producer.publish(Cell::default());
                lens.push_back(len);
            } else {
                let len = lens.pop_front().expect("it is full");
                consumer.peek().expect("a frame");
                let _told = consumer.release_frame(len);
            }
        }
        let wanted = random.below(most);
        while producer.reserve(wanted).is_some() {
            producer.publish(Cell::default());
            lens.push_back(wanted);
        }
        let mut told = false;
        for len in lens {
            consumer.peek().expect("a frame");
            told |= consumer.release_frame(len);
        }
        assert!(told, "round {round}, frames of {wanted} bytes");
    }
}

#[test]
fn what_is_set_aside_stays_while_the_producer_looks() {
    let (mut producer, mut consumer) = pair();
    producer.reserve(64).expect("room");
    producer.publish(Cell::default());
    consumer.peek().expect("a frame");
    consumer.release();
    let offset = producer.reserve(5).expect("room");
    assert!(producer.has_released(1));
    let written = producer.write_bytes(offset, 0, b"hello");
    written.expect("in the piece");
    producer.publish(Cell::default());
    assert!(producer.reserve(64).is_some(), "all but two pieces is free");
}

#[test]
fn there_are_as_many_frames_in_flight_as_cells() {
    let (mut producer, mut consumer) = pair();
    for _ in 0..CELLS_MAX {
        assert!(producer.room());
        producer.reserve(0).expect("a cell is free");
        producer.publish(Cell::default());
    }
    assert!(!producer.room());
    assert_eq!(producer.reserve(0), None);
    consumer.peek().expect("a frame");
    consumer.release();
    assert!(producer.room());
    assert!(producer.reserve(0).is_some());
}

#[test]
fn data_is_written_into_the_reserved_piece_only() {
    let (mut producer, _consumer) = pair();
    let source = Memory::private(4096).expect("memory");
    assert!(
        producer.write(0, 0, &source, 0, 1).is_err(),
        "nothing is reserved"
    );
    let offset = producer.reserve(100).expect("room");
    assert!(producer.write(offset, 0, &source, 0, 100).is_ok());
    assert!(producer.write(offset, 60, &source, 0, 40).is_ok());
    assert!(producer.write(offset, 60, &source, 0, 41).is_err());
    assert!(
        producer
            .write(offset, u32::MAX, &source, 0, usize::MAX)
            .is_err()
    );
    assert!(producer.write(offset, 0, &source, 4000, 97).is_err());
    assert!(producer.write(offset + 64, 0, &source, 0, 1).is_err());
    producer.publish(Cell::default());
    assert!(
        producer.write(offset, 0, &source, 0, 1).is_err(),
        "it was published"
    );
}

#[test]
fn the_whole_data_area_can_be_one_piece() {
    let (mut producer, mut consumer) = pair();
    for _ in 0..3 {
        assert_eq!(producer.reserve(AREA), Some(0));
        producer.publish(Cell::default());
        assert_eq!(producer.reserve(1), None);
        consumer.peek().expect("a frame");
        consumer.release();
    }
    assert_eq!(producer.reserve(AREA + 1), None);
    assert_eq!(producer.reserve(u32::MAX), None);
}

#[test]
fn a_ping_pong_stays_on_the_first_pages() {
    let (mut producer, mut consumer) = pair();
    let mut highest = 0;
    for _ in 0..1000 {
        highest = highest.max(producer.reserve(1000).expect("room"));
        producer.publish(Cell::default());
        consumer.peek().expect("a frame");
        consumer.release();
    }
    assert!(highest <= 16 << 10, "{highest}");
}

#[test]
fn frame_numbers_wrap() {
    let (near_wrap, frames) = (u32::MAX - 100, 300);
    let (producer, consumer) = pair();
    let (mut producer, mut consumer) = (
        producer.starting_at(near_wrap),
        consumer.starting_at(near_wrap),
    );
    for frame in 0..frames {
        producer.reserve(64).expect("room");
        producer.publish(Cell([frame; WORDS]));
        assert_eq!(consumer.peek(), Some(Frame::Cell(Cell([frame; WORDS]))));
        consumer.release();
        assert!(!consumer.ready());
    }
    assert!(producer.is_empty());
}

#[test]
fn a_peer_that_releases_what_was_not_sent_breaks_the_ring() {
    let (segment, fd) = Segment::create(DATA_MIN).expect("a segment");
    let (mut producer, ..) = split(segment, Side::A);
    let peer = Memory::import(fd, 4096).expect("the control page");
    producer.reserve(0).expect("room");
    producer.publish(Cell::default());
    assert!(!producer.is_empty() && !producer.is_broken());

    peer.write(0, &2_u32.to_ne_bytes()).expect("in the page");
    assert!(!producer.is_empty());
    assert!(producer.is_broken());
    assert!(!producer.room());
    assert_eq!(producer.reserve(0), None);
}

#[derive(Clone, Debug)]
enum Step {
    Abandon(u32),
    Receive,
    Send(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![Just(0), 1..200_u32, 1000..5000_u32, 4000..=AREA];
    prop_oneof![
        1 => len.clone().prop_map(Step::Abandon),
        4 => Just(Step::Receive),
        5 => len.prop_map(Step::Send),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_ring_is_a_queue(steps in prop::collection::vec(step(), 1..400)) {
        let (mut producer, mut consumer) = pair();
        let mut queue: VecDeque<(u32, Vec<u8>)> = VecDeque::new();
        for (number, step) in steps.into_iter().enumerate() {
            let number = u32::try_from(number).expect("few steps");
            match step {
                Step::Abandon(len) => {
                    if let Some(offset) = producer.reserve(len) {
                        producer.write_bytes(offset, 0, &vec![0xee; len as usize]).expect("in the piece");
                    }
                }
                Step::Receive => {
                    let cell = consumer.peek();
                    prop_assert_eq!(cell.is_some(), !queue.is_empty());
                    if let (Some(Frame::Cell(Cell(words))), Some((offset, sent))) = (cell, queue.pop_front()) {
                        let mut received = vec![0; sent.len()];
                        consumer.read_bytes(offset, &mut received).expect("in the data area");
                        prop_assert_eq!(words[14], offset);
                        prop_assert_eq!(received, sent);
                        consumer.release();
                    }
                }
                Step::Send(len) => {
                    let offset = producer.reserve(len);
                    prop_assert!(offset.is_some() || !queue.is_empty());
                    if let Some(offset) = offset {
                        let piece = offset as usize..(offset + len) as usize;
                        prop_assert!(piece.end <= AREA as usize);
                        prop_assert!(queue.iter().all(|(at, sent)| apart(&piece, *at as usize, sent.len())));
                        let sent = vec![u8::try_from(number % 251).expect("small"); len as usize];
                        producer.write_bytes(offset, 0, &sent).expect("in the piece");
                        producer.publish(Cell([offset; WORDS]));
                        queue.push_back((offset, sent));
                    }
                }
            }
            prop_assert_eq!(producer.room(), queue.len() < CELLS_MAX);
            prop_assert_eq!(producer.is_empty(), queue.is_empty());
            prop_assert_eq!(consumer.ready(), !queue.is_empty());
        }
    }
}

fn apart(piece: &Range<usize>, at: usize, len: usize) -> bool {
    piece.is_empty() || len == 0 || piece.end <= at || at + len <= piece.start
}

#[test]
fn a_peer_that_scribbles_harms_only_itself() {
    let mut random = Random(0x5eed);
    for _ in 0..40 {
        let (segment, fd) = Segment::create(DATA_MIN).expect("a segment");
        let mut victim = Victim::new(split(segment, Side::A));
        let peer = Scribbler::new(fd);
        for _ in 0..100 {
            peer.scribble(&mut random);
            for _ in 0..8 {
                victim.act(&mut random);
            }
        }
        victim.check_guards();
    }
}

/// One that does whatever a busy side does, and believes the lengths that it reads.
struct Victim {
    producer: Producer,
    consumer: Consumer,
    control: Control,
    buffer: Memory,
    guarded: Memory,
}

impl Victim {
    fn new((producer, consumer, control): (Producer, Consumer, Control)) -> Self {
        let guarded = Memory::private(3 * GUARD).expect("memory");
        let addr = usize::try_from(guarded.addr()).expect("an address") + GUARD;
        // SAFETY: the range lies within `guarded`, which lives as long.
        let buffer = unsafe { Memory::borrowed(addr, GUARD) }.expect("mapped");
        Self {
            producer,
            consumer,
            control,
            buffer,
            guarded,
        }
    }

    fn act(&mut self, random: &mut Random) {
        let (len, at) = (random.below(GUARD as u32 * 2), random.below(GUARD as u32));
        if let Some(offset) = self.producer.reserve(len) {
            let _ = self
                .producer
                .write(offset, at, &self.buffer, at as usize, len as usize);
            let note = Note([u64::from(at); 3]);
            if !self.producer.note(note, self.consumer.notes()) {
                self.producer.publish(Cell([len; WORDS]));
            }
        }
        let _ = self.producer.room() || self.producer.is_empty();
        if let Some(frame) = self.consumer.peek() {
            assert_eq!(
                self.consumer.peek(),
                Some(frame),
                "a frame does not change once it was looked at"
            );
            let words = match frame {
                Frame::Cell(Cell(words)) => words,
                Frame::Note(Note(words)) => [words[0] as u32; WORDS],
            };
            let _ = self
                .consumer
                .read(words[0], words[1], &self.buffer, words[2] as usize);
            let _ = self.consumer.read(
                words[3] % AREA,
                words[4] % AREA,
                &self.buffer,
                words[5] as usize % GUARD,
            );
            self.consumer.release();
        }
        let bell = self.control.bell(Wait::Frames);
        bell.arm(crate::bell::FUTEX);
        bell.disarm();
        let _ = self.control.peer_bell(Wait::Room).knock();
        let _ = self.control.peer_state();
        let grant = self.control.peer_grant(at as usize % 9);
        if let Some(grant) = grant.filter(|grant| grant.enter().is_some()) {
            grant.leave();
        }
    }

    fn check_guards(&self) {
        let mut guard = vec![1; GUARD];
        for offset in [0, 2 * GUARD] {
            self.guarded
                .read(offset, &mut guard)
                .expect("in the memory");
            assert!(guard.iter().all(|&byte| byte == 0));
        }
    }
}

/// A peer's mapping of the whole segment.
struct Scribbler(Memory);

impl Scribbler {
    fn new(fd: OwnedFd) -> Self {
        Self(Memory::import(fd, SEGMENT).expect("a segment"))
    }

    /// Garbage everywhere, or garbage that looks right: small counts, and tags of the first laps.
    fn scribble(&self, random: &mut Random) {
        let plausible = random.below(4) > 0;
        let words = if plausible { 3 * 4096 / 8 } else { SEGMENT / 8 };
        for word in 0..words {
            let value = match plausible {
                // Heads of notes among them.
                true if word < 4096 / 8 => {
                    let numbers = random.below(3) | random.below(3) << 16;
                    let numbers = numbers * random.below(2);
                    u64::from(random.below(80)) | u64::from(numbers) << 32
                }
                true if word % 8 == 0 => u64::from(random.below(4)) | random.next() << 32,
                _ => random.next(),
            };
            self.0
                .write(word * 8, &value.to_ne_bytes())
                .expect("in the segment");
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u32) -> u32 {
        low(self.next()) % end
    }
}

/// The two ends of one direction, each on a mapping of its own.
fn pair() -> (Producer, Consumer) {
    let (ours, fd) = Segment::create(DATA_MIN).expect("a segment");
    let theirs = Segment::import(fd, DATA_MIN).expect("the same segment");
    let (producer, ..) = split(ours, Side::A);
    let (_, consumer, _) = split(theirs, Side::B);
    (producer, consumer)
}

const AREA: u32 = DATA_MIN as u32;
const SEGMENT: usize = 3 * 4096 + 2 * DATA_MIN;
const GUARD: usize = 4096;
