use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::{
    ring::{CELLS_MAX, Cell, Consumer, Frame, Producer, WORDS},
    segment::{DATA_MIN, Segment, Side, split},
};

#[test]
fn an_answer_makes_room_for_the_next_note() {
    let [mut a, mut b] = ends();
    for turn in 0..5 {
        assert!(a.note(turn), "the one before was answered");
        assert!(!a.note(turn), "that is under way");
        assert_eq!(b.take(), Some(Frame::Note(Note([turn; 3]))));
        assert!(!a.note(turn), "nobody has said that it was read");
        assert!(b.note(!turn));
        assert_eq!(a.take(), Some(Frame::Note(Note([!turn; 3]))));
    }
}

#[test]
fn notes_that_cross_make_room_within_a_lap() {
    let [mut a, mut b] = ends();
    for _ in 0..3 {
        assert!(a.note(1) && b.note(2));
        assert_eq!(a.take(), Some(Frame::Note(Note([2; 3]))));
        assert_eq!(b.take(), Some(Frame::Note(Note([1; 3]))));
        let mut cells = 0;
        while !a.note(3) {
            a.cell(0);
            assert!(b.take().is_some() && !b.note(3));
            cells += 1;
            assert!(cells < CELLS_MAX);
        }
        assert_eq!(b.take(), Some(Frame::Note(Note([3; 3]))));
        assert!(b.note(4), "the answer says what was read");
        assert_eq!(a.take(), Some(Frame::Note(Note([4; 3]))));
    }
}

#[test]
fn a_note_that_crossed_and_lies_unread_is_not_overwritten() {
    let [mut a, mut b] = ends();
    assert!(a.note(1) && b.note(2));
    assert!(a.take().is_some());
    for _ in 1..CELLS_MAX {
        assert!(!a.note(3));
        a.cell(0);
    }
    assert!(!a.note(3) && a.producer.reserve(0).is_none());
    assert_eq!(b.take(), Some(Frame::Note(Note([1; 3]))));
    assert!(!a.producer.is_broken());
}

#[test]
fn a_note_takes_the_place_of_what_was_reserved() {
    let [mut a, mut b] = ends();
    assert!(a.producer.reserve(DATA_MIN as u32).is_some());
    assert!(a.note(1));
    assert!(a.producer.reserve(DATA_MIN as u32).is_some());
    assert_eq!(b.take(), Some(Frame::Note(Note([1; 3]))));
}

#[test]
fn what_was_not_looked_at_can_be_taken_at_once() {
    let [mut a, mut b] = ends();
    a.cell(0);
    assert!(a.note(1));
    assert_eq!(b.consumer.note(), None, "a cell comes first");
    assert!(b.consumer.cell().is_some());
    assert!(!b.consumer.take_cell(), "one of many");
    assert_eq!(b.consumer.cell(), None);
    assert_eq!(b.consumer.note(), Some(Note([1; 3])));
    b.consumer.take_note();
    assert!(!b.consumer.ready() && a.producer.is_empty());
    assert!(b.note(2));
    assert!(a.take().is_some() && a.note(3));
    assert!(b.consumer.peek().is_some());
    assert_eq!(b.consumer.note(), None, "it was looked at");
}

#[test]
fn an_answer_releases_what_came_before_the_note() {
    let [mut a, mut b] = ends();
    for turn in 0..1000 {
        // As many as there is room for, and a note among them: not one more fits until they are released.
        assert!(a.note(turn));
        for _ in 1..CELLS_MAX {
            a.cell(7);
        }
        assert_eq!(a.producer.reserve(0), None);
        while b.take().is_some() {}
        assert!(b.note(turn));
        assert!(a.take().is_some());
        assert!(a.producer.reserve(0).is_some());
        assert!(!a.producer.is_broken());
    }
}

/// A cell that nobody wrote since its tag's last time round would be taken for a frame.
#[test]
fn no_cell_is_passed_over_for_long() {
    let [mut a, mut b] = ends();
    let mut passed_over = [0_u32; CELLS_MAX];
    for frame in 0..3 * LAPS * CELLS_MAX as u32 {
        let place = &mut passed_over[frame as usize % CELLS_MAX];
        *place += 1;
        if !a.note(0) {
            a.cell(0);
            *place = 0;
        }
        assert!(*place < LAPS, "frame {frame}");
        assert!(b.take().is_some());
        if !b.note(0) {
            b.cell(0);
        }
        assert!(a.take().is_some());
    }
    assert!(!a.producer.is_broken() && !b.producer.is_broken());
}

#[test]
fn an_old_note_is_no_new_frame_when_frame_numbers_come_round() {
    let frame = 5 * CELLS_MAX as u32;
    let [mut a, mut b] = ends_at(frame);
    assert!(a.note(1));
    assert!(b.take().is_some());
    b.consumer = b.consumer.starting_at(frame);
    assert!(!b.consumer.ready());
}

#[test]
fn numbers_wrap() {
    let [mut a, mut b] = ends_at(u32::MAX - 500);
    // More notes than 16 bits count.
    for turn in 0..70_000 {
        for back in [false, true] {
            let (from, to) = if back {
                (&mut b, &mut a)
            } else {
                (&mut a, &mut b)
            };
            let is_note = from.note(turn);
            if !is_note {
                from.cell(0);
            }
            let frame = to.take();
            assert_eq!(matches!(frame, Some(Frame::Note(_))), is_note);
            assert!(frame.is_some() && !to.consumer.ready());
        }
    }
    assert!(!a.producer.is_broken() && !b.producer.is_broken());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Short,
    Long(u32),
    Receive,
}

proptest! {
    #[test]
    fn notes_and_cells_stay_in_order(steps in prop::collection::vec((any::<bool>(), step()), 1..500), start: u32) {
        let mut ends = ends_at(start);
        let mut queues = [VecDeque::new(), VecDeque::new()];
        for (number, (side, step)) in (0u64..).zip(steps) {
            let end = &mut ends[usize::from(side)];
            match step {
                Step::Short | Step::Long(_) if queues[usize::from(side)].len() == CELLS_MAX => {
                    prop_assert_eq!(end.producer.reserve(0), None);
                }
                Step::Short => {
                    if end.note(number) {
                        queues[usize::from(side)].push_back(Frame::Note(Note([number; 3])));
                    } else {
                        end.cell(number as u32);
                        queues[usize::from(side)].push_back(Frame::Cell(Cell([number as u32; WORDS])));
                    }
                }
                Step::Long(len) => {
                    if end.producer.reserve(len).is_some() {
                        end.producer.publish(Cell([number as u32; WORDS]));
                        queues[usize::from(side)].push_back(Frame::Cell(Cell([number as u32; WORDS])));
                    }
                }
                Step::Receive => prop_assert_eq!(end.take(), queues[usize::from(!side)].pop_front()),
            }
            prop_assert!(!ends.iter().any(|end| end.producer.is_broken()));
        }
        for (side, end) in ends.iter_mut().enumerate() {
            while let Some(frame) = queues[1 - side].pop_front() {
                prop_assert_eq!(end.take(), Some(frame));
            }
            prop_assert_eq!(end.take(), None);
        }
        prop_assert!(ends.iter_mut().all(|end| end.producer.is_empty()));

        // Whatever was before, who answers message with message has notes again: one lap may be the cells', and in one the counter is looked at.
        let mut notes = 0;
        for turn in 0..3 * CELLS_MAX {
            let (from, to) = ends.split_at_mut(1);
            let (from, to) = if turn % 2 == 0 { (&mut from[0], &mut to[0]) } else { (&mut to[0], &mut from[0]) };
            if from.note(0) {
                notes += 1;
            } else {
                from.cell(0);
            }
            prop_assert!(to.take().is_some());
        }
        prop_assert!(notes > 0);
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Short),
        1 => (1..DATA_MIN as u32).prop_map(Step::Long),
        5 => Just(Step::Receive),
    ]
}

struct End {
    producer: Producer,
    consumer: Consumer,
}

impl End {
    fn note(&mut self, fill: u64) -> bool {
        self.producer.note(Note([fill; 3]), self.consumer.notes())
    }

    fn cell(&mut self, fill: u32) {
        self.producer.reserve(0).expect("room");
        self.producer.publish(Cell([fill; WORDS]));
    }

    fn take(&mut self) -> Option<Frame> {
        let frame = self.consumer.peek()?;
        self.consumer.release();
        Some(frame)
    }
}

fn ends() -> [End; 2] {
    ends_at(0)
}

fn ends_at(frame: u32) -> [End; 2] {
    let (ours, fd) = Segment::create(DATA_MIN).expect("a segment");
    let theirs = Segment::import(fd, DATA_MIN).expect("the same segment");
    [split(ours, Side::A), split(theirs, Side::B)].map(|(producer, consumer, _)| End {
        producer: producer.starting_at(frame),
        consumer: consumer.starting_at(frame),
    })
}
