//! All sets held still while the process becomes two.
//!
//! One thread forks at a time, for the sets are held from before until after. But a signal handler may fork, too, and come into its own thread's fork: such a
//! one is within that, finds all held, and gives nothing back.

use std::thread;

use sys::board::{self, Still};
use sys::lock::{Lock, OwnGuard};
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use sys::turn::Busy;

use super::Set;
use super::places::{all, is_changing, try_freeze};
use super::set::Entered;

/// Holds all sets still. First of all that is done before a fork: who has a set may be waiting for a connection.
pub fn before_fork() {
    if is_changing() && DEPTH.load(Ordering::Relaxed) != 0 {
        DEPTH.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // All or none: who has one of these may be waiting for another, in whatever order.
    let frozen = loop {
        match Frozen::new() {
            Ok(frozen) => break frozen,
            Err(Busy) => thread::yield_now(),
        }
    };
    // First: a handler that comes now is within this fork, and leaves what is held alone.
    DEPTH.store(1, Ordering::Relaxed);
    if let Some(mut held) = FROZEN.try_lock() {
        *held = Some(frozen);
    }
}

/// How many forks of this thread hold the sets still, each but the first in a handler that came into the one before.
pub fn fork_depth() -> u32 {
    DEPTH.load(Ordering::Relaxed)
}

/// After a fork, last, in both processes: they share the kernel's instances.
pub fn after_fork(in_child: bool) {
    let depth = DEPTH.load(Ordering::Relaxed);
    // In a child there is no other thread: what is held is given back, for the fork that a handler came into may never go on there.
    if depth > 1 && !in_child {
        DEPTH.store(depth - 1, Ordering::Relaxed);
        return;
    }
    let frozen = FROZEN.try_lock().and_then(|mut held| held.take());
    DEPTH.store(0, Ordering::Relaxed);
    // With the place for what is held free: the next thread that forks is let in by this.
    drop(frozen);
    for set in all() {
        set.forked(in_child);
    }
    if in_child {
        board::part_from_parent();
    }
}

struct Frozen {
    _sets: Vec<Entered<'static>>,
    _boards: Option<Still>,
    /// Given back last.
    _places: Option<OwnGuard<'static>>,
}

impl Frozen {
    fn new() -> Result<Self, Busy> {
        let places = try_freeze()?;
        let sets = all().map(Set::try_hold).filter_map(Result::transpose);
        let sets = sets.map(|set| {
            // Two processes are to see what the program has made of it.
            set.map(|mut members| {
                members.catch_up();
                members.leave_board();
                members
            })
        });
        Ok(Self {
            _sets: sets.collect::<Result<_, _>>()?,
            _boards: board::hold()?,
            _places: places,
        })
    }
}

static FROZEN: Lock<Option<Frozen>> = Lock::new(None);
/// See [`fork_depth`]. Written by the thread that holds the sets still.
static DEPTH: AtomicU32 = AtomicU32::new(0);
