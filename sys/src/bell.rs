//! The doorbell: how one who goes to sleep asks to be woken, and how a busy one finds that there is nobody to wake.
//!
//! ```text
//! sleeper                                  waker
//! seen = bell.arm(bits)                    publish
//! re-check; if there is something: disarm  bits = bell.knock()
//! bell.sleep(seen), or sleep on an fd      FUTEX: bell.wake(); SOCKET: write a byte
//! ```
//!
//! No wake-up is lost: `arm` and `knock` are both read-modify-writes of `armed`, so one of them is first. If it is `arm`,
//! `knock` reads the bits. If it is `knock`, `arm` reads what `knock` released, and with it everything published before, which
//! the re-check then sees. And `seen` is loaded before the re-check, so a `wake` that comes between it and `sleep` has
//! changed the word, and the kernel refuses to sleep.

use std::time::Duration;

use crate::{
    futex::Wake,
    sync::{Ordering, Word, mapped},
};

/// The sleeper waits for a byte on the connection's socket.
pub const SOCKET: u32 = 1;
/// The sleeper waits on the bell's own word.
pub const FUTEX: u32 = 2;

/// One bell: one process sleeps, the other rings. It lies in memory that both can write, so a peer can ring for nothing or fail to ring; nothing else.
#[derive(Debug)]
pub struct Bell<'a, W: Word = mapped::AtomicU32> {
    armed: &'a W,
    word: &'a W,
}

impl<'a, W: Word> Bell<'a, W> {
    #[inline]
    pub(crate) fn new(armed: &'a W, word: &'a W) -> Self {
        Self { armed, word }
    }

    /// Sleeper: asks for the wake-ups in `bits` ([`SOCKET`], [`FUTEX`]). Look for work once more after this and before the sleep.
    /// Returns what [`Bell::sleep`] needs.
    pub fn arm(&self, bits: u32) -> u32 {
        // Acquire keeps the re-check after it, and pairs with the release in `wake`.
        let seen = self.word.load(Ordering::Acquire);
        // Acquire pairs with `knock`: see the module. Release is for a `knock` that takes the bits.
        self.armed.fetch_or(bits, Ordering::AcqRel);
        seen
    }

    /// Sleeper: takes the request back. Returns the bits that nobody has knocked for; for the others a wake-up is on its way.
    ///
    /// Where several threads or processes sleep on one bell, leave it armed instead: a stale bit costs one needless ring,
    /// but the bits that this clears may be another sleeper's.
    pub fn disarm(&self) -> u32 {
        self.armed.swap(0, Ordering::AcqRel)
    }

    /// Sleeper: sleeps until [`Bell::wake`], unless there was one since [`Bell::arm`] returned `seen`.
    pub fn sleep(&self, seen: u32, timeout: Option<Duration>) -> Wake {
        self.word.wait(seen, timeout)
    }

    /// Waker, after it has published: takes the sleeper's request. Returns the bits to wake it by, 0 if nobody sleeps; each `arm` is answered once.
    ///
    /// It costs one locked instruction on a line that only sleepers take away: cheaper than a full fence and a load (6.5 ns against 8.5),
    /// and a load alone would be wrong. A frame is not later for it: it drains the store buffer, and the frame with it.
    #[inline]
    #[must_use = "the sleeper must be woken by the ways in these bits"]
    pub fn knock(&self) -> u32 {
        // Release publishes what came before to an `arm` that follows; acquire pairs with the `arm` whose bits it takes.
        self.armed.swap(0, Ordering::AcqRel)
    }

    /// Waker: wakes those who [`sleep`](Bell::sleep).
    pub fn wake(&self) {
        // Release pairs with the load in `arm`: who sees the new word sees what was published.
        self.word.fetch_add(1, Ordering::Release);
        self.word.wake(u32::MAX);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::sync::AtomicU32;

    #[test]
    fn each_arm_is_answered_once() {
        let (armed, word) = (AtomicU32::new(0), AtomicU32::new(0));
        let bell = Bell::new(&armed, &word);
        assert_eq!(bell.knock(), 0);
        bell.arm(SOCKET);
        bell.arm(FUTEX);
        assert_eq!(bell.knock(), SOCKET | FUTEX);
        assert_eq!(bell.knock(), 0);
    }

    #[test]
    fn disarm_tells_whether_a_ring_is_under_way() {
        let (armed, word) = (AtomicU32::new(0), AtomicU32::new(0));
        let bell = Bell::new(&armed, &word);
        bell.arm(SOCKET);
        assert_eq!(bell.disarm(), SOCKET);
        bell.arm(SOCKET);
        assert_eq!(bell.knock(), SOCKET);
        assert_eq!(bell.disarm(), 0);
    }

    #[test]
    fn a_wake_before_the_sleep_is_not_lost() {
        let (armed, word) = (AtomicU32::new(0), AtomicU32::new(u32::MAX));
        let bell = Bell::new(&armed, &word);
        let seen = bell.arm(FUTEX);
        bell.wake();
        assert_eq!(bell.sleep(seen, None), Wake::Changed);
    }

    #[test]
    fn two_threads_hand_a_token_over_asleep() {
        let words: [AtomicU32; 4] = Default::default();
        let token = AtomicU32::new(0);
        let play = |parity: u32, mine: &Bell<'_>, other: &Bell<'_>| {
            for turn in (parity..2000).step_by(2) {
                while token.load(Ordering::Acquire) != turn {
                    let seen = mine.arm(FUTEX);
                    if token.load(Ordering::Acquire) == turn {
                        mine.disarm();
                    } else {
                        mine.sleep(seen, None);
                    }
                }
                token.store(turn + 1, Ordering::Release);
                if other.knock() & FUTEX != 0 {
                    other.wake();
                }
            }
        };
        let (a, b) = (
            Bell::new(&words[0], &words[1]),
            Bell::new(&words[2], &words[3]),
        );
        thread::scope(|scope| {
            scope.spawn(|| play(0, &a, &b));
            scope.spawn(|| play(1, &b, &a));
        });
        assert_eq!(token.load(Ordering::Relaxed), 2000);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::sync::AtomicU32;

    #[test]
    fn loom_no_wake_up_is_lost() {
        loom::model(|| {
            let words: Arc<[AtomicU32; 3]> =
                Arc::new([AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)]);
            let waker = {
                let words = words.clone();
                thread::spawn(move || {
                    let [published, armed, word] = &*words;
                    published.store(1, Ordering::Release);
                    let bell = Bell::new(armed, word);
                    if bell.knock() & FUTEX != 0 {
                        bell.wake();
                    }
                })
            };
            let [published, armed, word] = &*words;
            let bell = Bell::new(armed, word);
            let seen = bell.arm(FUTEX);
            if published.load(Ordering::Acquire) == 0 {
                // Ends only if the waker changes the word.
                bell.sleep(seen, None);
                assert_eq!(published.load(Ordering::Acquire), 1);
            } else {
                bell.disarm();
            }
            waker.join().expect("no panic");
        });
    }
}
