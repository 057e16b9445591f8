//! What a cache line, and a wake-up, take from one CPU to another.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::sched_yield;

use super::{affinity, pin};
use crate::sync::{AtomicU64, Ordering};

/// What it takes to move a cache line from one CPU to another, one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handoff {
    /// The best block.
    pub best_ns: f64,
    /// The median block.
    pub median_ns: f64,
}

/// Bounces a cache line between the first two CPUs of the affinity mask: 20 blocks of 1000 round trips, normally in under 10 ms.
///
/// # Errors
/// A thread could not be started or pinned.
pub fn handoff() -> io::Result<Option<Handoff>> {
    let Some((near, far)) = two_cpus()? else {
        return Ok(None);
    };
    let line = Arc::new(Line::default());
    let echo = on_cpu(far, {
        let line = Arc::clone(&line);
        move || echo(&line, 0..BLOCKS * ROUNDS)
    })?;
    let timed = on_cpu(near, move || time_blocks(&line))?;

    let blocks = join(timed)?;
    join(echo)?;
    let sorted = sorted(blocks);
    Ok(Some(Handoff {
        best_ns: sorted[0],
        median_ns: sorted[sorted.len() / 2],
    }))
}

/// Wakes a thread that sleeps on an otherwise idle CPU; the median microseconds from before the call until it runs.
///
/// # Errors
/// A thread could not be started or pinned.
pub fn wakeup() -> io::Result<Option<f64>> {
    let Some((near, far)) = two_cpus()? else {
        return Ok(None);
    };
    let line = Arc::new(Line::default());
    let sleeper = on_cpu(far, {
        let line = Arc::clone(&line);
        move || sleep_and_stamp(&line)
    })?;
    let stamps = on_cpu(near, {
        let thread = sleeper.thread().clone();
        move || wake_and_stamp(&line, &thread)
    })?;

    let woken = join(sleeper)?;
    let called = join(stamps)?;
    let micros = called
        .iter()
        .zip(&woken)
        .map(|(called, woken)| woken.saturating_duration_since(*called).as_secs_f64() * 1e6);
    let sorted = sorted(micros.collect());
    Ok(Some(sorted[sorted.len() / 2]))
}

pub(super) const BLOCKS: u64 = 20;
pub(super) const ROUNDS: u64 = 1000;
const WAKEUPS: u64 = 51;

/// Long enough for an idle CPU to halt.
const ASLEEP: Duration = Duration::from_micros(150);

/// Alone on its cache line, and on the one that the prefetcher fetches along.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Line {
    turn: AtomicU64,
}

impl Line {
    /// Spins until the other side has stored `turn`. It yields now and then, should both have come to share a CPU after all.
    pub(super) fn await_turn(&self, turn: u64) {
        let mut polls = 0u32;
        while self.turn.load(Ordering::Acquire) != turn {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(10_000) {
                sched_yield();
            }
            std::hint::spin_loop();
        }
    }

    pub(super) fn pass(&self, turn: u64) {
        // Pairs with the acquire load in `await_turn`.
        self.turn.store(turn, Ordering::Release);
    }
}

fn echo(line: &Line, rounds: Range<u64>) {
    for round in rounds {
        line.await_turn(2 * round + 1);
        line.pass(2 * round + 2);
    }
}

fn time_blocks(line: &Line) -> Vec<f64> {
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let start = Instant::now();
        for round in block * ROUNDS..(block + 1) * ROUNDS {
            line.pass(2 * round + 1);
            line.await_turn(2 * round + 2);
        }
        blocks.push(start.elapsed().as_secs_f64() * 1e9 / (2 * ROUNDS) as f64);
    }
    blocks
}

fn sleep_and_stamp(line: &Line) -> Vec<Instant> {
    let mut stamps = Vec::new();
    for round in 0..WAKEUPS {
        line.pass(2 * round + 1);
        // Parking is a futex wait, and may end for no reason.
        while line.turn.load(Ordering::Acquire) != 2 * round + 2 {
            thread::park();
        }
        stamps.push(Instant::now());
    }
    stamps
}

fn wake_and_stamp(line: &Line, sleeper: &thread::Thread) -> Vec<Instant> {
    let mut stamps = Vec::new();
    for round in 0..WAKEUPS {
        line.await_turn(2 * round + 1);
        let ready = Instant::now();
        while ready.elapsed() < ASLEEP {
            std::hint::spin_loop();
        }
        stamps.push(Instant::now());
        line.pass(2 * round + 2);
        sleeper.unpark();
    }
    stamps
}

pub(super) fn two_cpus() -> io::Result<Option<(usize, usize)>> {
    Ok(match affinity()?.as_slice() {
        [one, other, ..] => Some((*one, *other)),
        _ => None,
    })
}

pub(super) fn on_cpu<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    // A thread that did not get its CPU works all the same, because the other one waits for it; the error comes after.
    thread::Builder::new().spawn(move || {
        let pinned = pin(cpu);
        let done = work();
        pinned.map(|()| done)
    })
}

pub(super) fn join<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

pub(super) fn sorted(mut figures: Vec<f64>) -> Vec<f64> {
    figures.sort_by(f64::total_cmp);
    figures
}
