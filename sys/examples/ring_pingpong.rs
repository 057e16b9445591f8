//! The floor under everything built on the ring: one-way time of a small frame, and throughput of a stream.
//!
//! Two pinned threads, each on a mapping of its own, polling without pause; the best and the median of many short blocks,
//! for a mean tells more of the machine's neighbours.
//!
//! ```sh
//! cargo run --release -p sys --example ring_pingpong [CPU CPU]
//! ```

use std::{env, hint, thread, time::Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use sys::{
    mem::{Memory, Store},
    ring::{Cell, Consumer, Frame, Producer},
    segment::{Control, DATA_DEFAULT, Segment, Side, Wait, split},
    sync::{AtomicU32, Ordering, fence},
    wait::pause,
};

fn main() {
    let cpus: Vec<usize> = env::args()
        .skip(1)
        .map(|cpu| cpu.parse().expect("a CPU's number"))
        .collect();
    let cpus = <[usize; 2]>::try_from(cpus).unwrap_or([0, 1]);

    println!("a turn in one cache line         {}", token(cpus, false));
    println!("a turn in a line each way        {}", token(cpus, true));
    for (name, knock) in [
        ("8-byte frame in the cell", false),
        ("the same, with a knock each", true),
    ] {
        println!("{name:32} {}", ping_pong(cpus, 0, knock));
    }
    println!(
        "1 KiB frame in the data area     {}",
        ping_pong(cpus, 1024, false)
    );
    for chunk in [1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10] {
        println!(
            "stream of {:3} KiB pieces         {:.1} GB/s",
            chunk >> 10,
            stream(cpus, chunk)
        );
    }
    println!("a frame sent and received alone  {:6.1} ns", alone());
    fences();
    copies();
}

struct Times(Vec<f64>);

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        write!(
            f,
            "{:6.1} ns best, {:6.1} ns median",
            sorted[0],
            sorted[sorted.len() / 2]
        )
    }
}

/// A turn passed to and fro in one line that both write, or in two that have one writer each, as a ring's have: there each
/// hand-off is two transfers, for the writer must first take the line from the one who polls it. No ring can be faster.
fn token(cpus: [usize; 2], each_way: bool) -> Times {
    let lines = [Line::default(), Line::default()];
    let play = |cpu: usize, parity: u32| {
        pin(cpu);
        let (polled, written) = if each_way && parity == 1 {
            (1, 0)
        } else {
            (0, usize::from(each_way))
        };
        let mut times = Vec::new();
        for block in 0..BLOCKS {
            let start = Instant::now();
            for round in 0..ROUNDS {
                let turn = (block * ROUNDS + round) * 2 + parity;
                while lines[polled].0.load(Ordering::Acquire) != turn {
                    hint::spin_loop();
                }
                lines[written].0.store(turn + 1, Ordering::Release);
            }
            times.push(one_way(start));
        }
        times
    };
    thread::scope(|scope| {
        scope.spawn(|| play(cpus[1], 1));
        Times(play(cpus[0], 0))
    })
}

fn ping_pong(cpus: [usize; 2], len: u32, knock: bool) -> Times {
    let (a, b) = sides();
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(cpus[1]);
            let mut end = End::new(b, len, knock);
            for _ in 0..BLOCKS * ROUNDS {
                end.receive();
                end.send();
            }
        });
        pin(cpus[0]);
        let mut end = End::new(a, len, knock);
        let mut times = Vec::new();
        for _ in 0..BLOCKS {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                end.send();
                end.receive();
            }
            times.push(one_way(start));
        }
        Times(times)
    })
}

struct End {
    producer: Producer,
    consumer: Consumer,
    control: Control,
    buffer: Memory,
    len: u32,
    knock: bool,
}

impl End {
    fn new(
        (producer, consumer, control): (Producer, Consumer, Control),
        len: u32,
        knock: bool,
    ) -> Self {
        let buffer = Memory::private(len.max(1) as usize).expect("memory");
        Self {
            producer,
            consumer,
            control,
            buffer,
            len,
            knock,
        }
    }

    fn send(&mut self) {
        let offset = self.producer.reserve(self.len).expect("one frame has room");
        self.producer
            .write(offset, 0, &self.buffer, 0, self.len as usize)
            .expect("in the piece");
        self.producer.publish(Cell([offset; 15]));
        if self.knock {
            assert_eq!(self.control.peer_bell(Wait::Frames).knock(), 0);
        }
    }

    fn receive(&mut self) {
        while !self.consumer.ready() {
            pause();
        }
        let Some(Frame::Cell(Cell([offset, ..]))) = self.consumer.peek() else {
            unreachable!("a cell is ready")
        };
        self.consumer
            .read(offset, self.len, &self.buffer, 0)
            .expect("in the data area");
        self.consumer.release();
    }
}

/// Both ends on one core: what the code costs, without the transfers.
fn alone() -> f64 {
    let (a, b) = sides();
    let (mut a, mut b) = (End::new(a, 0, false), End::new(b, 0, false));
    let start = Instant::now();
    for _ in 0..CALLS {
        a.send();
        b.receive();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn stream(cpus: [usize; 2], chunk: u32) -> f64 {
    let ((mut producer, ..), (_, mut consumer, _)) = sides();
    let mut rates = Vec::new();
    let chunks = STREAM / chunk as usize;
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(cpus[1]);
            let from = warm(STREAM);
            for block in 0..STREAM_BLOCKS * chunks {
                let offset = loop {
                    match producer.reserve(chunk) {
                        Some(offset) => break offset,
                        None => hint::spin_loop(),
                    }
                };
                let at = block % chunks * chunk as usize;
                producer
                    .write(offset, 0, &from, at, chunk as usize)
                    .expect("in the piece");
                producer.publish(Cell([offset; 15]));
            }
        });
        pin(cpus[0]);
        let to = warm(STREAM);
        for _ in 0..STREAM_BLOCKS {
            let start = Instant::now();
            for at in 0..chunks {
                while !consumer.ready() {
                    hint::spin_loop();
                }
                let Some(Frame::Cell(Cell([offset, ..]))) = consumer.peek() else {
                    unreachable!("a cell is ready")
                };
                consumer
                    .read(offset, chunk, &to, at * chunk as usize)
                    .expect("in the data area");
                consumer.release();
            }
            rates.push(STREAM as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    });
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// What a waker could do between publishing and looking whether anybody sleeps; no one sleeps here.
fn fences() {
    let (published, armed) = (AtomicU32::new(0), AtomicU32::new(0));
    let time = |name: &str, look: &dyn Fn() -> u32| {
        let start = Instant::now();
        for turn in 0..CALLS {
            published.store(turn, Ordering::Release);
            hint::black_box(look());
        }
        println!(
            "{name:32} {:6.1} ns",
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        );
    };
    time("publish, load armed (wrong)", &|| {
        armed.load(Ordering::Acquire)
    });
    time("publish, fence, load armed", &|| {
        fence(Ordering::SeqCst);
        armed.load(Ordering::Relaxed)
    });
    time("publish, swap armed (knock)", &|| {
        armed.swap(0, Ordering::AcqRel)
    });
}

/// One core's copies, from and to warm memory.
fn copies() {
    let (from, to) = (warm(1 << 20), warm(1 << 20));
    for (name, store) in [("plain", Store::Plain), ("streaming", Store::Streaming)] {
        let start = Instant::now();
        for turn in 0..COPIES {
            let at = turn % 16 * CHUNK;
            Memory::copy(&to, at, &from, at, CHUNK, store).expect("inside");
        }
        let rate = (COPIES * CHUNK) as f64 / start.elapsed().as_secs_f64() / 1e9;
        println!("64 KiB copies, {name:9}         {rate:.1} GB/s");
    }
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

type Ends = (Producer, Consumer, Control);

fn sides() -> (Ends, Ends) {
    let (ours, fd) = Segment::create(DATA_DEFAULT).expect("a segment");
    let theirs = Segment::import(fd, DATA_DEFAULT).expect("the same segment");
    (split(ours, Side::A), split(theirs, Side::B))
}

fn warm(len: usize) -> Memory {
    let memory = Memory::private(len).expect("memory");
    memory.write(0, &vec![1; len]).expect("all of it");
    memory
}

fn one_way(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS) / 2.0
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    if sched_setaffinity(None, &set).is_err() {
        eprintln!("cannot pin to CPU {cpu}");
    }
}

const BLOCKS: u32 = 200;
const ROUNDS: u32 = 2000;
const STREAM: usize = 8 << 20;
const STREAM_BLOCKS: usize = 64;
const CALLS: u32 = 2_000_000;
const COPIES: usize = 20_000;
const CHUNK: usize = 64 << 10;
