//! The thread that sees to what nobody waits for.
//!
//! It begins with the first message that is held back, and sleeps until something is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sys::{fork, quiet};

use super::fork::patiently;
use super::stream::Stream;

/// Sends what `stream` holds back at that time, unless it has been sent by then.
pub(super) fn flush_at(due: Instant, stream: &Arc<Stream>) {
    submit(due, Arc::downgrade(stream), Duty::Flush);
}

/// Sends what streams of this process hold back: the thread that waits might have sent more on them, and now will not.
pub(super) fn release() {
    let state = lock();
    let held = state.entries.iter();
    let held = held.filter(|entry| entry.duty == Duty::Flush);
    let held: Vec<Arc<Stream>> = held.filter_map(|entry| entry.stream.upgrade()).collect();
    drop(state);
    for stream in held {
        stream.release();
    }
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

/// What is due first is the greatest, for a heap.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Entry {}

struct State {
    entries: BinaryHeap<Entry>,
    /// With so many, those of streams that are gone are thrown away.
    swept_at: usize,
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
    if state.entries.len() >= state.swept_at {
        state.sweep();
    }
    let earliest = state.entries.peek().map(|entry| entry.due);
    state.entries.push(Entry { due, stream, duty });
    drop(state);
    if earliest.is_none_or(|earliest| due < earliest) {
        CHANGED.notify_one();
    }
}

impl State {
    /// Closed connections are soon gone, and would be kept for as long as one that a dead peer has is waited for. Costs each submission a constant, on average.
    fn sweep(&mut self) {
        self.entries.retain(|entry| entry.stream.strong_count() > 0);
        self.swept_at = (self.entries.len() * 2).max(SWEPT_LEAST);
    }
}

fn run() {
    let mut state = lock();
    loop {
        let now = Instant::now();
        let Some(next) = state.entries.peek().map(|entry| entry.due) else {
            state = CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        if next > now {
            let waited = CHANGED.wait_timeout(state, next - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let entry = state.entries.pop();
        drop(state);
        let again = entry.and_then(attend);
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
    entries: BinaryHeap::new(),
    swept_at: SWEPT_LEAST,
    begun_in: None,
});
static CHANGED: Condvar = Condvar::new();
const SWEPT_LEAST: usize = 64;
/// As long as Linux keeps a TCP connection that nobody has (`tcp_fin_timeout`).
const LINGER_TIME: Duration = Duration::from_secs(60);
/// How long an acknowledgement may wait for DATA, twice at most; TCP's may 40 ms.
const TICK: Duration = Duration::from_millis(10);

#[cfg(all(test, not(loom)))]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use crate::packet::{Adapter, Socket, Variant};

    use super::*;

    #[test]
    fn closed_connections_are_not_kept() {
        let adapter = Adapter::open(&shm::DRIVER, Variant::dacks(), None).expect("a NIC");
        let listener = Socket::new(&adapter);
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        listener.bind(at).expect("an address");
        listener.listen(5).expect("a port");
        for _ in 0..CLOSES {
            let asker = Socket::new(&adapter);
            asker.connect(listener.local(), 0).expect("it listens");
            let accepted = listener.accept(|| true).expect("it has asked");
            asker.close();
            accepted.close();
        }
        listener.close();
        // On a busy machine many wait for the NIC's thread, which sees to their ends.
        let patience = Instant::now() + Duration::from_secs(60);
        let is_there = |entry: &Entry| entry.stream.strong_count() > 0;
        while lock().entries.iter().any(is_there) && Instant::now() < patience {
            std::thread::yield_now();
        }
        // So many more are a reason to throw away those that have ended.
        let more = lock().swept_at;
        for _ in 0..=more {
            submit(Instant::now() + LINGER_TIME, Weak::new(), Duty::Abort);
        }
        let kept = lock().entries.len();
        assert!(kept < CLOSES / 2, "{kept}");
    }

    const CLOSES: usize = 1000;
}
