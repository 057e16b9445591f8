//! The ring under loom: every interleaving, with every value that an atomic may return.

use loom::{sync::Arc, thread};

use crate::{
    ring::{Cell, Cells, Consumer, Producer},
    sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell},
};

#[test]
fn loom_a_cell_is_used_again_once_it_is_released() {
    exchange(0);
}

#[test]
fn loom_data_are_overwritten_once_they_are_released() {
    exchange(AREA);
}

fn exchange(len: u32) {
    loom::model(move || {
        let direction = Arc::new(Direction::default());
        let sender = {
            let direction = direction.clone();
            thread::spawn(move || send(&direction, len))
        };
        receive(&direction, len);
        sender.join().expect("no panic");
    });
}

fn send(direction: &Arc<Direction>, len: u32) {
    let mut producer = Producer::new(direction.clone());
    for frame in 0..FRAMES {
        while producer.reserve(len) != Some(0) {
            thread::yield_now();
        }
        if len > 0 {
            // SAFETY: the data is the producer's until it is published; loom checks that.
            direction.data.with_mut(|data| unsafe { *data = frame });
        }
        producer.publish(Cell([frame; 15]));
    }
    assert!(!producer.is_broken());
}

fn receive(direction: &Arc<Direction>, len: u32) {
    let mut consumer = Consumer::new(direction.clone());
    for frame in 0..FRAMES {
        let words = loop {
            match consumer.peek() {
                Some(Cell(words)) => break words,
                None => thread::yield_now(),
            }
        };
        assert_eq!(words, [frame; 15]);
        if len > 0 {
            // SAFETY: the data is the consumer's until it is released; loom checks that.
            assert_eq!(direction.data.with(|data| unsafe { *data }), frame);
        }
        consumer.release();
    }
}

/// Two cells, and room for the data of one. What a ring must not touch without leave is in loom's cells, which see races.
#[derive(Default)]
struct Direction {
    heads: [AtomicU64; 2],
    bodies: [UnsafeCell<[u64; 7]>; 2],
    data: UnsafeCell<u32>,
    consumed: AtomicU32,
}

// SAFETY: the cells are reached as the ring's protocol allows, and loom panics if that is not enough.
unsafe impl Send for Direction {}
// SAFETY: as above.
unsafe impl Sync for Direction {}

impl Cells for Arc<Direction> {
    const COUNT: u32 = 2;

    fn data_len(&self) -> u32 {
        AREA
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
const AREA: u32 = 64;
