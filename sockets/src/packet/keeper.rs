//! The thread that sees to what nobody waits for.
//!
//! It begins with the first message that is held back, and sleeps until something is due.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sys::{fork, quiet};

use super::fork::patiently;
use super::stream::Stream;

/// Sends what `stream` holds back at that time, unless it has been sent by then.
pub(super) fn flush_at(due: Instant, stream: &Arc<Stream>) {
    submit(due, Arc::downgrade(stream), Duty::Flush);
}

/// Breaks the connection of a stream that its program has closed, if the peer says nothing for long.
pub(super) fn abort_later(stream: &Arc<Stream>) {
    submit(
        Instant::now() + LINGER_TIME,
        Arc::downgrade(stream),
        Duty::Abort,
    );
}

/// Sends the acknowledgements that `stream` defers, if its program has not come by to take them along.
pub(super) fn tend_later(stream: &Arc<Stream>) {
    submit(
        Instant::now() + TICK,
        Arc::downgrade(stream),
        Duty::Acknowledge,
    );
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    Flush,
    Acknowledge,
    Abort,
}

struct Entry {
    due: Instant,
    stream: Weak<Stream>,
    duty: Duty,
}

struct State {
    entries: Vec<Entry>,
    /// The thread is of this generation of forks; 0 before there is one.
    begun_in: Option<u32>,
}

fn submit(due: Instant, stream: Weak<Stream>, duty: Duty) {
    let mut state = lock();
    let generation = fork::generation();
    if state.begun_in != Some(generation) {
        // A child of fork has none of the streams, and no thread.
        state.entries.clear();
        let begun = quiet::spawn("sovia-keeper", None, run);
        state.begun_in = begun.is_ok().then_some(generation);
    }
    let earliest = state.entries.iter().map(|entry| entry.due).min();
    state.entries.push(Entry { due, stream, duty });
    drop(state);
    if earliest.is_none_or(|earliest| due < earliest) {
        CHANGED.notify_one();
    }
}

fn run() {
    let mut state = lock();
    loop {
        let now = Instant::now();
        let (due, waiting) = state.entries.drain(..).partition(|entry| entry.due <= now);
        state.entries = waiting;
        let due: Vec<Entry> = due;
        if due.is_empty() {
            state = match state.entries.iter().map(|entry| entry.due).min() {
                Some(next) => {
                    let time = next.saturating_duration_since(now);
                    let waited = CHANGED.wait_timeout(state, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            continue;
        }
        drop(state);
        let again: Vec<Entry> = due.into_iter().filter_map(attend).collect();
        state = lock();
        state.entries.extend(again);
    }
}

/// What is to be done again, if anything is.
fn attend(entry: Entry) -> Option<Entry> {
    let stream = entry.stream.upgrade()?;
    match entry.duty {
        Duty::Flush => stream.expire().map(|due| Entry { due, ..entry }),
        Duty::Acknowledge => stream.tick().then(|| Entry {
            due: Instant::now() + TICK,
            ..entry
        }),
        Duty::Abort => {
            stream.abort();
            None
        }
    }
}

/// The keeper's lock.
pub(super) struct Lock {
    _state: MutexGuard<'static, State>,
}

/// Locks the keeper, for a fork.
pub(super) fn try_lock() -> Option<Lock> {
    let _state = patiently(|| STATE.try_lock().ok())?;
    Some(Lock { _state })
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

static STATE: Mutex<State> = Mutex::new(State {
    entries: Vec::new(),
    begun_in: None,
});
static CHANGED: Condvar = Condvar::new();
/// As long as Linux keeps a TCP connection that nobody has (`tcp_fin_timeout`).
const LINGER_TIME: Duration = Duration::from_secs(60);
/// How long an acknowledgement may wait for DATA, twice at most; TCP's may 40 ms.
const TICK: Duration = Duration::from_millis(10);
