//! T_sync: what it takes to wake a blocked thread of the same process, as the paper measured it: both on one processor.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::machine;

/// Microseconds for one thread to wake another on this CPU, each time: the median of blocks.
pub(super) fn measure(cpu: usize) -> Result<f64> {
    // A thread of its own, for it stays on that CPU.
    let measured = thread::scope(|scope| {
        let on = scope.spawn(|| machine::pin(cpu).map(|()| ping_pong()));
        on.join()
    });
    measured.unwrap_or(Err(Error::Closed))
}

fn ping_pong() -> f64 {
    let turns = Turns::default();
    let mut times = thread::scope(|scope| {
        scope.spawn(|| turns.take(1, ROUNDS * BLOCKS));
        let block = |_| {
            let start = Instant::now();
            turns.take(0, ROUNDS);
            start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * ROUNDS)
        };
        (0..BLOCKS).map(block).collect::<Vec<_>>()
    });
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Whose turn it is, and where the other waits.
#[derive(Default)]
struct Turns {
    whose: Mutex<u32>,
    changed: Condvar,
}

impl Turns {
    fn take(&self, mine: u32, rounds: u32) {
        for _ in 0..rounds {
            let whose = self.whose.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.changed.wait_while(whose, |whose| *whose != mine);
            *waited.unwrap_or_else(PoisonError::into_inner) = 1 - mine;
            self.changed.notify_one();
        }
    }
}

const ROUNDS: u32 = 500;
const BLOCKS: u32 = 9;
