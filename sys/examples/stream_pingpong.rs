//! What a byte stream costs above the ring of memory that it is: one-way time of small messages, and throughput.
//!
//! Two pinned threads, each on a mapping of its own, taking turns at both sides as a socket does and polling without pause; the best and the median of
//! many short blocks, for a mean tells more of the machine's neighbours.
//!
//! ```sh
//! cargo run --release -p sys --example stream_pingpong [CPU CPU]
//! ```

use std::{env, hint, thread, time::Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use sys::{
    stream::{Side, Size, Stream},
    sync::{AtomicU32, Ordering},
    turn::Turns,
    wait::pause,
};

fn main() {
    let cpus: Vec<usize> = env::args()
        .skip(1)
        .map(|cpu| cpu.parse().expect("a CPU's number"))
        .collect();
    let cpus = <[usize; 2]>::try_from(cpus).unwrap_or([0, 1]);

    println!("a turn in a line each way  {}", token(cpus));
    for len in [1, 64, 256, 1024, 4096, 16 << 10, 64 << 10] {
        println!("{len:6} bytes one way       {}", ping_pong(cpus, len));
    }
    for len in [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10] {
        let [best, median] = stream(cpus, len);
        println!("{len:6} bytes at a time     {best:6.1} GB/s best, {median:6.1} GB/s median");
    }
    println!("64 bytes to oneself        {:6.1} ns", alone());
}

struct Times(Vec<f64>);

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        write!(
            f,
            "{:8.1} ns best, {:8.1} ns median",
            sorted[0],
            sorted[sorted.len() / 2]
        )
    }
}

/// The floor: a line each way, with one writer each.
fn token(cpus: [usize; 2]) -> Times {
    let lines = [Line::default(), Line::default()];
    let play = |side: usize| {
        pin(cpus[side]);
        let mut times = Vec::new();
        for block in 0..BLOCKS {
            let start = Instant::now();
            for round in 0..ROUNDS {
                let turn = block * ROUNDS + round + 1;
                if side == 0 {
                    lines[0].0.store(turn, Ordering::Release);
                }
                while lines[1 - side].0.load(Ordering::Acquire) != turn {
                    hint::spin_loop();
                }
                if side == 1 {
                    lines[1].0.store(turn, Ordering::Release);
                }
            }
            times.push(one_way(start, ROUNDS));
        }
        times
    };
    thread::scope(|scope| {
        scope.spawn(|| play(1));
        Times(play(0))
    })
}

fn ping_pong(cpus: [usize; 2], len: usize) -> Times {
    let (a, b) = ends();
    let rounds = if len > 4096 { ROUNDS / 10 } else { ROUNDS };
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(cpus[1]);
            let mut buffer = vec![0; len];
            for _ in 0..BLOCKS * rounds {
                receive(&b, &mut buffer);
                send(&b, &buffer);
            }
        });
        pin(cpus[0]);
        let mut buffer = vec![0; len];
        let mut times = Vec::new();
        for _ in 0..BLOCKS {
            let start = Instant::now();
            for _ in 0..rounds {
                send(&a, &buffer);
                receive(&a, &mut buffer);
            }
            times.push(one_way(start, rounds));
        }
        Times(times)
    })
}

fn stream(cpus: [usize; 2], len: usize) -> [f64; 2] {
    let (a, b) = ends();
    let mut rates = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(cpus[1]);
            let buffer = vec![1; len];
            let mut left = STREAM * STREAM_BLOCKS;
            while left > 0 {
                send(&b, &buffer);
                left -= len;
            }
        });
        pin(cpus[0]);
        let mut buffer = vec![1; len];
        for _ in 0..STREAM_BLOCKS {
            let start = Instant::now();
            for _ in 0..STREAM / len {
                receive(&a, &mut buffer);
            }
            rates.push(STREAM as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    });
    rates.sort_by(f64::total_cmp);
    [rates[rates.len() - 1], rates[rates.len() / 2]]
}

/// Both ends on one core: what the code costs, without the transfers.
fn alone() -> f64 {
    let (a, b) = ends();
    let mut buffer = [0; 64];
    let start = Instant::now();
    for _ in 0..CALLS {
        send(&a, &buffer);
        receive(&b, &mut buffer);
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn send(end: &Turns<Stream>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let turn = end.take(0).expect("a stream");
        let (n, bits) = turn
            .tx()
            .write(turn.nested(), || [bytes].into_iter())
            .expect("sound");
        drop(turn);
        assert_eq!(bits, 0, "nobody sleeps");
        bytes = &bytes[n..];
        if n == 0 {
            pause();
        }
    }
}

fn receive(end: &Turns<Stream>, bytes: &mut [u8]) {
    let mut got = 0;
    while got < bytes.len() {
        let turn = end.take(1).expect("a stream");
        let rx = turn.rx();
        let head = rx.head();
        let n = rx.peek(head, &mut bytes[got..]).expect("sound");
        if n == 0 {
            // Looking goes without a turn's locked instructions.
            while rx.available() == Ok(0) {
                pause();
            }
            continue;
        }
        assert_eq!(rx.take(head, head + n as u64), (true, false));
        got += n;
    }
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

fn ends() -> (Turns<Stream>, Turns<Stream>) {
    let ours = Stream::memory(Size::DEFAULT).expect("memory");
    let theirs = ours.try_clone().expect("a descriptor");
    let end = |fd, side| {
        let turns = Turns::new();
        let stream = Stream::map(fd, side).expect("its memory");
        turns.replace(Some(stream)).expect("nobody has a turn");
        turns
    };
    (end(ours, Side::A), end(theirs, Side::B))
}

fn one_way(start: Instant, rounds: u32) -> f64 {
    start.elapsed().as_nanos() as f64 / f64::from(rounds) / 2.0
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    if sched_setaffinity(None, &set).is_err() {
        eprintln!("cannot pin to CPU {cpu}");
    }
}

const BLOCKS: u32 = 100;
const ROUNDS: u32 = 1000;
const STREAM: usize = 8 << 20;
const STREAM_BLOCKS: usize = 64;
const CALLS: u32 = 2_000_000;
