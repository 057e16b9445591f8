//! The floor under every ping-pong through memory.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::line::{BLOCKS, Line, ROUNDS, join, on_cpu, sorted, two_cpus};
use crate::mem::prefetch_to_write;
use crate::sync::{AtomicU64, Ordering};

/// Nanoseconds for 64 bytes there and back between the first two CPUs of the affinity mask, with nothing around them: the sender writes a line of data and
/// then a line that says so, the receiver polls the latter and reads the former, and neither line ever has another writer. The median of 20
/// blocks of 1000; `None` with a single CPU.
///
/// No byte stream that two processes share can be faster than this; what it takes beyond is its own.
///
/// # Errors
/// A thread could not be started or pinned.
pub fn bare_round_trip() -> io::Result<Option<f64>> {
    let Some((near, far)) = two_cpus()? else {
        return Ok(None);
    };
    let ways = Arc::new([Way::default(), Way::default()]);
    let echo = on_cpu(far, {
        let ways = Arc::clone(&ways);
        move || {
            for round in 1..=BLOCKS * ROUNDS {
                let words = ways[0].receive(round, &ways[1]);
                ways[1].send(round, words);
            }
        }
    })?;
    let timed = on_cpu(near, move || time_blocks(&ways))?;
    let blocks = join(timed)?;
    join(echo)?;
    let sorted = sorted(blocks);
    Ok(Some(sorted[sorted.len() / 2]))
}

#[derive(Default)]
struct Way {
    data: Data,
    said: Line,
}

#[derive(Default)]
#[repr(align(128))]
struct Data([AtomicU64; 8]);

impl Way {
    fn send(&self, turn: u64, words: [u64; 8]) {
        for (place, word) in self.data.0.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.said.pass(turn);
    }

    /// Asks for the line that the answer will be written to, as soon as nobody reads it any more.
    fn receive(&self, turn: u64, answer: &Self) -> [u64; 8] {
        self.said.await_turn(turn);
        prefetch_to_write(
            std::ptr::from_ref(&answer.data).cast(),
            size_of::<[u64; 8]>(),
        );
        self.data
            .0
            .each_ref()
            .map(|word| word.load(Ordering::Relaxed))
    }
}

fn time_blocks(ways: &[Way; 2]) -> Vec<f64> {
    let mut words = [1; 8];
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let start = Instant::now();
        for round in block * ROUNDS + 1..=(block + 1) * ROUNDS {
            ways[0].send(round, words);
            words = ways[1].receive(round, &ways[0]);
        }
        blocks.push(start.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64);
    }
    blocks
}
