//! The ring under loom: every interleaving, with every value that an atomic may return.

use loom::{sync::Arc, thread};

use crate::{
    bell::{Bell, FUTEX},
    ring::{Cell, Cells, Consumer, Frame, Note, Producer},
    segment::state::State,
    sync::{AtomicU32, AtomicU64, UnsafeCell},
};

#[test]
fn loom_a_cell_is_used_again_once_it_is_released() {
    exchange(0);
}

#[test]
fn loom_data_are_overwritten_once_they_are_released() {
    exchange(AREA);
}

#[test]
fn loom_a_note_is_overwritten_once_its_answer_says_that_it_was_read() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let other = {
            let line = line.clone();
            thread::spawn(move || {
                let (mut producer, mut consumer) = ends(&line, 1);
                for turn in 0..NOTES {
                    assert_eq!(await_note(&mut consumer), Note([turn; 3]));
                    let heard = consumer.notes();
                    assert!(producer.note(Note([!turn; 3]), heard), "it was read");
                }
            })
        };
        let (mut producer, mut consumer) = ends(&line, 0);
        for turn in 0..NOTES {
            assert_eq!(producer.reserve(0), Some(0));
            assert!(
                producer.note(Note([turn; 3]), consumer.notes()),
                "it was read"
            );
            assert_eq!(await_note(&mut consumer), Note([!turn; 3]));
        }
        other.join().expect("no panic");
    });
}

/// The writer need not have read the answer.
#[test]
fn loom_a_note_is_overwritten_once_an_answer_lies_there() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let other = {
            let line = line.clone();
            thread::spawn(move || {
                let (mut producer, mut consumer) = ends(&line, 1);
                assert_eq!(await_note(&mut consumer), Note([1; 3]));
                assert!(producer.note(Note([2; 3]), consumer.notes()));
                assert_eq!(await_note(&mut consumer), Note([3; 3]));
            })
        };
        let (mut producer, consumer) = ends(&line, 0);
        assert!(producer.note(Note([1; 3]), consumer.notes()));
        while !producer.has_note_room(consumer.notes()) {
            thread::yield_now();
        }
        assert!(producer.note(Note([3; 3]), consumer.notes()));
        other.join().expect("no panic");
    });
}

#[test]
fn loom_notes_that_crossed_are_overwritten_once_frames_are_counted() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let cross = |line: &Arc<Line>, side| {
            let (mut producer, mut consumer) = ends(line, side);
            assert!(producer.note(Note([1; 3]), consumer.notes()));
            assert_eq!(await_note(&mut consumer), Note([1; 3]));
            assert_eq!(producer.reserve(0), Some(0));
            producer.publish(Cell([2; 15]));
            assert_eq!(await_frame(&mut consumer), Frame::Cell(Cell([2; 15])));
            consumer.release();
            // The peer read our note before it sent this cell.
            assert!(producer.note(Note([3; 3]), consumer.notes()));
            assert_eq!(await_note(&mut consumer), Note([3; 3]));
        };
        let other = {
            let line = line.clone();
            thread::spawn(move || cross(&line, 1))
        };
        cross(&line, 0);
        other.join().expect("no panic");
    });
}

#[test]
fn loom_an_answer_releases_the_data_before_the_note() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let other = {
            let line = line.clone();
            thread::spawn(move || {
                let (mut producer, mut consumer) = ends(&line, 1);
                let from = &line.0[0];
                receive(from, &mut consumer, AREA, 0);
                assert_eq!(await_note(&mut consumer), Note([1; 3]));
                assert!(producer.note(Note([1; 3]), consumer.notes()));
                assert_eq!(await_note(&mut consumer), Note([2; 3]));
                receive(from, &mut consumer, AREA, 3);
            })
        };
        let (mut producer, mut consumer) = ends(&line, 0);
        let to = &line.0[0];
        send(to, &mut producer, AREA, 0);
        assert!(producer.note(Note([1; 3]), consumer.notes()));
        assert_eq!(await_note(&mut consumer), Note([1; 3]));
        // From here on the counter of frames is not asked.
        assert!(producer.note(Note([2; 3]), consumer.notes()));
        send(to, &mut producer, AREA, 3);
        other.join().expect("no panic");
    });
}

#[test]
fn loom_what_was_sent_before_a_goodbye_is_there_with_it() {
    loom::model(|| {
        let (line, state) = (Arc::new(Line::default()), Arc::new(AtomicU32::new(0)));
        let sender = {
            let (line, state) = (line.clone(), state.clone());
            thread::spawn(move || {
                let (mut producer, _) = ends(&line, 0);
                send(&line.0[0], &mut producer, AREA, 0);
                send(&line.0[0], &mut producer, 0, 1);
                State::new(&*state).set(7);
            })
        };
        let (_, mut consumer) = ends(&line, 1);
        let mut frame = 0;
        loop {
            // As the engine looks: at the end first, at the ring then.
            let ended = State::new(&*state).get();
            while consumer.peek().is_some() {
                receive(
                    &line.0[0],
                    &mut consumer,
                    if frame == 0 { AREA } else { 0 },
                    frame,
                );
                frame += 1;
            }
            if ended != 0 {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(frame, 2, "frames before the goodbye");
        sender.join().expect("no panic");
    });
}

/// An RDMA write that goes to its place without the ring comes after one whose data goes through it.
#[test]
fn loom_a_write_beside_the_ring_does_not_overtake_one_within() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let writer = {
            let line = line.clone();
            thread::spawn(move || {
                let (mut producer, _) = ends(&line, 0);
                let place = &line.0[0].data;
                send(&line.0[0], &mut producer, 0, 0);
                let written = producer.published();
                send(&line.0[0], &mut producer, 0, 1);
                while !producer.has_released(written) {
                    thread::yield_now();
                }
                // SAFETY: what the consumer wrote there it wrote before it released the frame; loom checks that.
                place.with_mut(|place| unsafe { *place = 2 });
                send(&line.0[0], &mut producer, 0, 2);
            })
        };
        let (_, mut consumer) = ends(&line, 1);
        let place = &line.0[0].data;
        assert_eq!(await_frame(&mut consumer), Frame::Cell(Cell([0; 15])));
        // SAFETY: the writer waits for the release that follows; loom checks that.
        place.with_mut(|place| unsafe { *place = 1 });
        consumer.release();
        receive(&line.0[0], &mut consumer, 0, 1);
        assert_eq!(await_frame(&mut consumer), Frame::Cell(Cell([2; 15])));
        // SAFETY: the writer sent the frame when it had written; loom checks that.
        assert_eq!(place.with(|place| unsafe { *place }), 2);
        consumer.release();
        writer.join().expect("no panic");
    });
}

/// A sender that finds no room arms both its bells and sleeps on one word, as the NIC over shared memory does; a receiver rings only at its marks.
#[test]
fn loom_a_sender_that_sleeps_for_room_is_told_of_it() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let bells = Arc::new(<[AtomicU32; 3]>::default());
        let sender = {
            let (line, bells) = (line.clone(), bells.clone());
            thread::spawn(move || {
                let (mut producer, consumer) = ends_of::<4>(&line, 0);
                let [room, frames, word] = &*bells;
                for frame in 0..MANY {
                    // A note is a frame in flight that brings no mark nearer.
                    if frame == 0 {
                        assert!(producer.note(Note([0; 3]), consumer.notes()));
                        continue;
                    }
                    while producer.reserve(0).is_none() {
                        Bell::new(room, word).arm(FUTEX);
                        let seen = Bell::new(frames, word).arm(FUTEX);
                        if !producer.room() {
                            // Ends only if the receiver changes the word.
                            Bell::new(frames, word).sleep(seen, None);
                        }
                    }
                    producer.publish(Cell([frame; 15]));
                }
            })
        };
        let (_, mut consumer) = ends_of::<4>(&line, 1);
        let [room, _, word] = &*bells;
        for _ in 0..MANY {
            await_frame(&mut consumer);
            if consumer.release_frame(0) && Bell::new(room, word).knock() & FUTEX != 0 {
                Bell::new(room, word).wake();
            }
        }
        sender.join().expect("no panic");
    });
}

fn exchange(len: u32) {
    loom::model(move || {
        let line = Arc::new(Line::default());
        let sender = {
            let line = line.clone();
            thread::spawn(move || {
                let (mut producer, _) = ends(&line, 0);
                for frame in 0..FRAMES {
                    send(&line.0[0], &mut producer, len, frame);
                }
                assert!(!producer.is_broken());
            })
        };
        let (_, mut consumer) = ends(&line, 1);
        for frame in 0..FRAMES {
            receive(&line.0[0], &mut consumer, len, frame);
        }
        sender.join().expect("no panic");
    });
}

fn ends(line: &Arc<Line>, side: usize) -> (Producer<Way>, Consumer<Way>) {
    ends_of(line, side)
}

fn ends_of<const CELLS: u32>(
    line: &Arc<Line>,
    side: usize,
) -> (Producer<Way<CELLS>>, Consumer<Way<CELLS>>) {
    let [ours, theirs] = [side, 1 - side].map(|sender| Way(line.clone(), sender));
    (Producer::new(ours), Consumer::new(theirs))
}

/// A cell that is full of `fill`, and the data of `len` bytes that belong to it.
fn send(to: &Direction, producer: &mut Producer<Way>, len: u32, fill: u32) {
    while producer.reserve(len) != Some(0) {
        thread::yield_now();
    }
    if len > 0 {
        // SAFETY: the data is the producer's until it is published; loom checks that.
        to.data.with_mut(|data| unsafe { *data = fill });
    }
    producer.publish(Cell([fill; 15]));
}

fn receive(from: &Direction, consumer: &mut Consumer<Way>, len: u32, fill: u32) {
    assert_eq!(await_frame(consumer), Frame::Cell(Cell([fill; 15])));
    if len > 0 {
        // SAFETY: the data is the consumer's until it is released; loom checks that.
        assert_eq!(from.data.with(|data| unsafe { *data }), fill);
    }
    consumer.release();
}

fn await_note(consumer: &mut Consumer<Way>) -> Note {
    let frame = await_frame(consumer);
    consumer.release();
    match frame {
        Frame::Note(note) => note,
        Frame::Cell(_) => unreachable!("a note is next"),
    }
}

fn await_frame<const CELLS: u32>(consumer: &mut Consumer<Way<CELLS>>) -> Frame {
    loop {
        match consumer.peek() {
            Some(frame) => return frame,
            None => thread::yield_now(),
        }
    }
}

/// Two cells that are used, or four, and room for the data of one. What a ring must not touch without leave is in loom's cells, which see races.
#[derive(Default)]
struct Direction {
    heads: [AtomicU64; 4],
    bodies: [UnsafeCell<[u64; 7]>; 4],
    data: UnsafeCell<u32>,
    consumed: AtomicU32,
    note_head: AtomicU64,
    note_body: UnsafeCell<[u64; 3]>,
}

/// Both directions.
#[derive(Default)]
struct Line([Direction; 2]);

/// One of them.
#[derive(Clone)]
struct Way<const CELLS: u32 = 2>(Arc<Line>, usize);

impl<const CELLS: u32> Way<CELLS> {
    fn direction(&self) -> &Direction {
        &self.0.0[self.1]
    }
}

// SAFETY: the cells are reached as the ring's protocol allows, and loom panics if that is not enough.
unsafe impl Send for Direction {}
// SAFETY: as above.
unsafe impl Sync for Direction {}

impl<const CELLS: u32> Cells for Way<CELLS> {
    const COUNT: u32 = CELLS;
    type Head = AtomicU64;
    type Frames = AtomicU32;

    fn data_len(&self) -> u32 {
        AREA
    }

    fn head_of(&self, cell: u32) -> &AtomicU64 {
        &self.direction().heads[cell as usize]
    }

    fn body(&self, cell: u32) -> [u64; 7] {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.direction().bodies[cell as usize].with(|body| unsafe { *body })
    }

    fn set_body(&self, cell: u32, body: [u64; 7]) {
        // SAFETY: loom checks that nobody reads or writes meanwhile.
        self.direction().bodies[cell as usize].with_mut(|to| unsafe { *to = body });
    }

    fn head_of_note(&self) -> &AtomicU64 {
        &self.direction().note_head
    }

    fn note_body(&self) -> [u64; 3] {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.direction().note_body.with(|body| unsafe { *body })
    }

    fn set_note_body(&self, body: [u64; 3]) {
        // SAFETY: loom checks that nobody reads or writes meanwhile.
        self.direction()
            .note_body
            .with_mut(|place| unsafe { *place = body });
    }

    fn head_of_other_note(&self) -> &AtomicU64 {
        let Self(line, sender) = self;
        &line.0[1 - sender].note_head
    }

    fn consumed_frames(&self) -> &AtomicU32 {
        &self.direction().consumed
    }
}

/// More than there are cells, so that both cells and data are used again.
const FRAMES: u32 = 3;
/// More than four cells hold, and a note.
const MANY: u32 = 7;
const AREA: u32 = 64;
/// Notes each way: the second is where the first was.
const NOTES: u64 = 2;
