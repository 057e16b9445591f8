//! What a wait asks the time, and how it passes it.

use std::cell::Cell;

use rustix::thread::{sched_getcpu, sched_yield};
use rustix::time::{ClockId, clock_gettime};

use super::pause::pause_in_wait;
use super::{Bar, Trial, process::Process};
use crate::fork::generation;

/// Time, and how to pass it.
pub trait Clock {
    /// Monotonic.
    fn now_ns(&self) -> u64;
    /// Passes some nanoseconds on the CPU.
    fn pause(&self);
    /// Lets another thread have the CPU, if one is waiting for it.
    fn yield_now(&self);
    /// The last that a policy had.
    fn last_bar(&self) -> Bar {
        Bar::default()
    }
    /// A policy has this from now on.
    fn note_bar(&self, bar: Bar) {
        let _ = bar;
    }
    /// A yield has lost a slice, until `now_ns`: since when each on this CPU has, of all threads of this process. 0 where it has no other that can have had the slice.
    fn losing_since_ns(&self, now_ns: u64) -> u64 {
        let _ = now_ns;
        0
    }
    /// A yield has lost none.
    fn note_kept(&self) {}
    /// The number that this thread gave here the last time.
    fn last_turn(&self, turn: u64) -> u64 {
        turn
    }
    /// What says whether to poll the kernel; none polls.
    fn trial(&self) -> Option<&Trial> {
        None
    }
}

/// The real clock.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }

    #[inline]
    fn pause(&self) {
        pause_in_wait();
    }

    #[inline]
    fn yield_now(&self) {
        sched_yield();
    }

    fn last_bar(&self) -> Bar {
        PROCESS.last_bar()
    }

    fn note_bar(&self, bar: Bar) {
        PROCESS.note_bar(bar);
    }

    fn losing_since_ns(&self, now_ns: u64) -> u64 {
        PROCESS.losing_since_ns(generation(), sched_getcpu(), now_ns)
    }

    #[inline]
    fn note_kept(&self) {
        if PROCESS.is_losing() {
            PROCESS.note_kept(sched_getcpu());
        }
    }

    #[inline]
    fn last_turn(&self, turn: u64) -> u64 {
        let last = TURN.replace(turn);
        if last == 0 {
            PROCESS.note_thread(generation());
        }
        last
    }

    #[inline]
    fn trial(&self) -> Option<&Trial> {
        Some(&TRIAL)
    }
}

/// This process has sent something by the kernel.
#[inline]
pub fn note_sent() {
    TRIAL.note_sent();
}

static TRIAL: Trial = Trial::new();

static PROCESS: Process = Process::new();

std::thread_local!(static TURN: Cell<u64> = const { Cell::new(0) });
