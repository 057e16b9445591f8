//! The ring under loom: every interleaving, with every value that an atomic may return.

use loom::{sync::Arc, thread};

use crate::{
    ring::{Cell, Cells, Consumer, Producer},
    sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell},
};

#[test]
fn loom_frames_arrive_whole_and_in_order() {
    loom::model(|| {
        let direction = Arc::new(Direction::default());
        let sender = {
            let direction = direction.clone();
            thread::spawn(move || send(&direction))
        };
        receive(&direction);
        sender.join().expect("no panic");
    });
}

fn send(direction: &Arc<Direction>) {
    let mut producer = Producer::new(direction.clone());
    for frame in 0..FRAMES {
        let offset = loop {
            match producer.reserve(PIECE) {
                Some(offset) => break offset,
                None => thread::yield_now(),
            }
        };
        // SAFETY: the piece is the producer's until it is published; loom checks that.
        direction.data[(offset / PIECE) as usize].with_mut(|piece| unsafe { *piece = frame });
        producer.publish(Cell([offset + frame; 15]));
    }
    assert!(!producer.is_broken());
}

fn receive(direction: &Arc<Direction>) {
    let mut consumer = Consumer::new(direction.clone());
    for frame in 0..FRAMES {
        let words = loop {
            match consumer.peek() {
                Some(Cell(words)) => break words,
                None => thread::yield_now(),
            }
        };
        let offset = words[0] - frame;
        assert_eq!(words, [offset + frame; 15]);
        // SAFETY: the piece is the consumer's until it is released; loom checks that.
        let data = direction.data[(offset / PIECE) as usize].with(|piece| unsafe { *piece });
        assert_eq!(data, frame);
        consumer.release();
    }
}

/// Two cells and two pieces. What a ring must not touch without leave is in loom's cells, which see races.
#[derive(Default)]
struct Direction {
    heads: [AtomicU64; 2],
    bodies: [UnsafeCell<[u64; 7]>; 2],
    data: [UnsafeCell<u32>; 2],
    consumed: AtomicU32,
}

// SAFETY: the cells are reached as the ring's protocol allows, and loom panics if that is not enough.
unsafe impl Send for Direction {}
// SAFETY: as above.
unsafe impl Sync for Direction {}

impl Cells for Arc<Direction> {
    const COUNT: u32 = 2;

    fn data_len(&self) -> u32 {
        2 * PIECE
    }

    fn head(&self, cell: u32) -> u64 {
        self.heads[cell as usize].load(Ordering::Acquire)
    }

    fn body(&self, cell: u32) -> [u64; 7] {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.bodies[cell as usize].with(|body| unsafe { *body })
    }

    fn publish(&self, cell: u32, head: u64, body: [u64; 7]) {
        // SAFETY: loom checks that nobody reads or writes meanwhile.
        self.bodies[cell as usize].with_mut(|to| unsafe { *to = body });
        self.heads[cell as usize].store(head, Ordering::Release);
    }

    fn consumed(&self) -> u32 {
        self.consumed.load(Ordering::Acquire)
    }

    fn set_consumed(&self, frames: u32) {
        self.consumed.store(frames, Ordering::Release);
    }
}

/// More than there are cells, so that both cells and data are used again.
const FRAMES: u32 = 3;
const PIECE: u32 = 64;
