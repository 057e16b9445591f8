//! Sleeping on a word of memory, across processes.

use std::cell::Cell;
use std::time::Duration;

use rustix::{
    io::Errno,
    thread::futex::{self, Flags},
    time::Timespec,
};

use crate::section;
use crate::sync::{AtomicU32, mapped::AtomicU32 as MappedU32};

/// Why a [`wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The word was not what the caller expected: it did not sleep.
    Changed,
    /// A signal was delivered.
    Interrupted,
    /// The time was up.
    TimedOut,
    /// Someone called [`wake`], or the kernel woke us for no reason: look again.
    Woken,
}

thread_local! {
    static INTERRUPTIONS: Cell<u32> = const { Cell::new(0) };
}

/// How many sleeps of this thread signals have ended, or what else waits for the end of a [`section`]. A signal whose handler asks for it (`SA_RESTART`) ends none that is without limit.
pub fn interruptions() -> u32 {
    INTERRUPTIONS.get()
}

/// Sleeps while `word` is `expected`, at most for `timeout`. The word may lie in memory that processes share.
///
/// The kernel compares and goes to sleep in one step with respect to [`wake`]: a waker that changes the word first is never missed.
#[cfg(not(loom))]
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wake {
    wait_mapped(word, expected, timeout)
}

/// Wakes up to `n` sleepers of `word` in all processes. Returns how many.
#[cfg(not(loom))]
pub fn wake(word: &AtomicU32, n: u32) -> usize {
    wake_mapped(word, n)
}

/// The model of a sleep: a thread that runs again once the word has changed. A lost wake-up shows as an execution without end.
#[cfg(loom)]
pub fn wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) -> Wake {
    while word.load(crate::sync::Ordering::SeqCst) == expected {
        loom::thread::yield_now();
    }
    Wake::Woken
}

/// The model of a wake-up: nothing, for the change of the word is what [`wait`] sees.
#[cfg(loom)]
pub fn wake(_word: &AtomicU32, _n: u32) -> usize {
    0
}

pub(crate) fn wait_mapped(word: &MappedU32, expected: u32, timeout: Option<Duration>) -> Wake {
    let woken = section::sleep(word, expected, timeout)
        .unwrap_or_else(|| wait_outside(word, expected, timeout));
    if woken == Wake::Interrupted {
        note_interruption();
    }
    woken
}

/// As [`interruptions`] counts them.
pub(crate) fn note_interruption() {
    INTERRUPTIONS.set(INTERRUPTIONS.get().wrapping_add(1));
}

/// As [`wait_mapped`], in no section.
fn wait_outside(word: &MappedU32, expected: u32, timeout: Option<Duration>) -> Wake {
    // A time that the kernel cannot express is longer than any machine's life.
    let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
    match futex::wait(word, Flags::empty(), expected, timeout.as_ref()) {
        Err(Errno::AGAIN) => Wake::Changed,
        Err(Errno::INTR) => Wake::Interrupted,
        Err(Errno::TIMEDOUT) => Wake::TimedOut,
        // No other error can occur on an aligned, mapped word; if one did, "look again" is the safe answer.
        Ok(()) | Err(_) => Wake::Woken,
    }
}

pub(crate) fn wake_mapped(word: &MappedU32, n: u32) -> usize {
    // The kernel takes a signed count.
    futex::wake(word, Flags::empty(), n.min(i32::MAX.cast_unsigned())).unwrap_or(0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn a_changed_word_is_not_slept_on() {
        assert_eq!(wait(&AtomicU32::new(1), 0, None), Wake::Changed);
    }

    #[test]
    fn a_sleep_ends_with_its_time() {
        assert_eq!(
            wait(&AtomicU32::new(0), 0, Some(Duration::from_millis(1))),
            Wake::TimedOut
        );
    }

    #[test]
    fn a_sleeper_is_woken() {
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 && wait(&word, 0, None) != Wake::Changed {}
            });
            word.store(1, Ordering::Release);
            while !sleeper.is_finished() {
                wake(&word, u32::MAX);
                thread::yield_now();
            }
        });
    }
}
