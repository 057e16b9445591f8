//! What a fork finds locked by another thread stays locked in the child, which has not that thread.

use std::cell::Cell;

use sys::section::{self, Section};

use super::table::sharing;
use super::{keeper, relay, table};

/// Locks that the forking thread has meanwhile.
struct Locks {
    _sharing: Option<sharing::Lock>,
    _table: Option<table::Locks>,
    _keeper: Option<keeper::Lock>,
    relay: Option<relay::Locks>,
    /// No handler meets them. The last to go.
    _section: Section,
}

/// Before this process forks: the child has its connections, too, and nobody is in the middle of anything that it may do.
pub fn before() {
    if table::any() {
        lock(sharing::all);
    }
}

/// The same, where the child can only close its copies: they stay this process's alone.
pub fn before_unshared() {
    if table::any() {
        lock(sharing::try_lock);
    }
}

fn lock(share: impl FnOnce() -> Option<sharing::Lock>) {
    let section = Section::begin(section::cancellations());
    let locks = Locks {
        _sharing: share(),
        _table: table::try_lock(),
        _keeper: keeper::try_lock(),
        relay: relay::try_lock(),
        _section: section,
    };
    // A thread that ends has no place for them.
    let _ = LOCKS.try_with(|place| place.set(Some(locks)));
}

/// After it, in the process that forked.
pub fn after() {
    let _ = LOCKS.try_with(Cell::take);
}

/// After it, in the child.
pub fn in_child() {
    let locks = LOCKS.try_with(Cell::take).ok().flatten();
    if let Some(relay) = locks.and_then(|locks| locks.relay) {
        relay::in_child(relay);
    }
    table::part_from_parent();
}

/// The lock, if it is to be had. Bounded: `fork` may be called in a signal handler, of a thread that has it.
pub(super) fn patiently<L>(mut try_lock: impl FnMut() -> Option<L>) -> Option<L> {
    (0..TRIES).find_map(|_| {
        let lock = try_lock();
        if lock.is_none() {
            std::thread::yield_now();
        }
        lock
    })
}

thread_local! {
    static LOCKS: Cell<Option<Locks>> = const { Cell::new(None) };
}

const TRIES: u32 = 100_000;
