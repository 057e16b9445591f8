//! Taking turns at the two sides of something that may be taken away.

use std::fmt;
use std::ops::Deref;
#[cfg(not(loom))]
use std::{hint::spin_loop, thread, time::Duration};

use crate::alone::Exchange;
use crate::mem::{fetch_to_write, prefetch};
use crate::sync::{AtomicUsize, Ordering, UnsafeCell, compiler_fence};

#[cfg(not(loom))]
mod held;
mod sole;
mod thread_id;
#[cfg(loom)]
mod unheld;

#[cfg(loom)]
use unheld as held;

pub use held::{Left, end_left, is_in_sole, is_in_turn};
pub use sole::{Busy, Guard, Sole};
pub use thread_id::thread_id;

/// A value with two sides, at each of which one thread acts at a time; it appears and disappears while nobody acts at either.
///
/// Taking a turn costs what taking a [`Lock`](crate::lock::Lock) does, and ending it a plain store. Two things are different.
/// A turn gives a shared reference, so the two sides work at the same time. And a thread that already has the turn gets it again: a signal
/// handler may find its own thread in the middle of one, and must neither wait for it nor fail. What is done in a turn must
/// therefore end in one atomic instruction, and be done again if that shows that a handler came between. One that leaves it by a jump is found out
/// ([`end_left`]).
// Both words come first, and in one line: with thousands of connections each line is fetched from afar, and threads seldom meet at both sides (decision 47).
#[repr(C)]
pub struct Turns<T> {
    takers: [AtomicUsize; 2],
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value goes to other threads by shared reference, and by value when it is taken out.
unsafe impl<T: Send + Sync> Sync for Turns<T> {}
// SAFETY: nothing in it is tied to a thread, as far as nothing in `T` is.
unsafe impl<T: Send> Send for Turns<T> {}

impl<T> Turns<T> {
    /// Nothing to take turns at.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            takers: [AtomicUsize::new(0), AtomicUsize::new(0)],
            value: UnsafeCell::new(None),
        }
    }

    /// Nothing to take turns at.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            takers: [AtomicUsize::new(0), AtomicUsize::new(0)],
            value: UnsafeCell::new(None),
        }
    }

    #[inline]
    fn takers(&self) -> [&AtomicUsize; 2] {
        let [first, second] = &self.takers;
        [first, second]
    }

    /// Asks for what turns touch, and the first `len` bytes of what is there, without waiting for it.
    #[inline]
    pub fn foresee(&self, len: usize) {
        fetch_to_write(&self.takers);
        let whole = size_of_val(&self.value);
        prefetch((&raw const self.value).cast(), len.min(whole));
    }

    /// Takes a turn at `side` (0 or 1), waiting for it; `None` if there is nothing there.
    // Out of line, for what comes back does not fit into registers, a `send` or `recv` of 8 B takes 62 ns instead of 49.
    #[inline(always)]
    pub fn take(&self, side: usize) -> Option<Turn<'_, T>> {
        let [first, second] = self.takers();
        let taker = if side & 1 == 0 { first } else { second };
        let me = thread_id();
        held::announce(me, taker);
        // Acquire pairs with the release at the end of the turn before.
        let turn = match taker.exchange(0, me) {
            Ok(_) => Turn {
                turns: self,
                taker: Some(taker),
            },
            Err(other) => self.take_from(other, taker, me)?,
        };
        turn.value().is_some().then_some(turn)
    }

    /// A thread that is just changing the value has not its own number there, but `CHANGING` with it: its handlers find nothing, rather than half a value.
    #[cold]
    fn take_from<'a>(
        &'a self,
        other: usize,
        taker: &'a AtomicUsize,
        me: usize,
    ) -> Option<Turn<'a, T>> {
        if other & !CHANGING != me {
            wait_for(taker, me, usize::MAX);
        } else {
            held::withdraw(me, taker);
            if other != me {
                return None;
            }
        }
        Some(Turn {
            turns: self,
            taker: (other != me).then_some(taker),
        })
    }

    /// Puts a value there when nobody has a turn. Returns what was there before.
    ///
    /// # Errors
    /// Gives the new value back if the calling thread is in the middle of a turn.
    pub fn replace(&self, value: Option<T>) -> Result<Option<T>, Option<T>> {
        let Some(both) = self.both() else {
            return Err(value);
        };
        let me = thread_id();
        for taker in both.0 {
            taker.store(me | CHANGING, Ordering::Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
        // SAFETY: both sides are taken by this thread, outside a turn of its own, and its signal handlers get none, so no reference to the value
        // exists.
        let before = self
            .value
            .with_mut(|here| std::mem::replace(unsafe { &mut *here }, value));
        compiler_fence(Ordering::SeqCst);
        Ok(before)
    }

    /// Takes both sides, so that no other thread acts at either until the result is dropped; `None` if the calling thread is in a turn.
    pub fn both(&self) -> Option<Both<'_>> {
        let me = thread_id();
        let [first, second] = self.takers();
        if [first, second]
            .iter()
            .any(|taker| taker.load(Ordering::Relaxed) & !CHANGING == me)
        {
            return None;
        }
        loop {
            // Who has a turn at one side may wait for the other, in a signal handler at least. So nobody keeps one while he waits long for the other.
            wait_for(second, me, usize::MAX);
            if wait_for(first, me, PATIENCE) {
                return Some(Both([first, second]));
            }
            second.store(0, Ordering::Release);
            pass_time(YIELDS);
        }
    }

    /// Which side the turn is at, if it is one at this value.
    pub fn side_of(&self, left: &Left) -> Option<usize> {
        self.takers().iter().position(|taker| left.is(taker))
    }

    /// In the child of a fork: whatever other threads were doing, they are not here.
    pub fn forget_turns(&self) {
        for taker in self.takers() {
            taker.store(0, Ordering::Release);
        }
    }
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Turns<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

/// A turn at one side, as long as it lives.
pub struct Turn<'a, T> {
    turns: &'a Turns<T>,
    /// Whom to release: nobody if the thread had the turn already.
    taker: Option<&'a AtomicUsize>,
}

impl<T> Turn<'_, T> {
    /// Whether the thread was in a turn already: this is a signal handler that came in between.
    #[inline]
    pub fn nested(&self) -> bool {
        self.taker.is_none()
    }

    #[inline]
    fn value(&self) -> &Option<T> {
        // SAFETY: this thread has a side, and the value changes only when nobody has one (`replace`).
        self.turns.value.with(|value| unsafe { &*value })
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self.value() {
            Some(value) => value,
            None => unreachable!("`take` makes no turn at nothing"),
        }
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(taker) = self.taker {
            // Release pairs with the acquire in `take`.
            taker.store(0, Ordering::Release);
            held::withdraw(thread_id(), taker);
        }
    }
}

/// Both turns, as long as it lives.
#[derive(Debug)]
pub struct Both<'a>([&'a AtomicUsize; 2]);

impl Drop for Both<'_> {
    fn drop(&mut self) {
        for taker in self.0 {
            taker.store(0, Ordering::Release);
        }
    }
}

/// Takes the turn, looking at most `tries` times; whether it has it.
#[cold]
fn wait_for(taker: &AtomicUsize, me: usize, tries: usize) -> bool {
    for tried in 0..tries {
        // Looking does not take the line away from the holder.
        if taker.load(Ordering::Relaxed) == 0
            && taker
                .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            return true;
        }
        pass_time(tried);
    }
    false
}

#[cfg(not(loom))]
fn pass_time(tried: usize) {
    match tried {
        ..PAUSES => spin_loop(),
        PAUSES..YIELDS => thread::yield_now(),
        _ => thread::sleep(NAP),
    }
}

#[cfg(loom)]
fn pass_time(_: usize) {
    loom::thread::yield_now();
}

/// With the number of a thread, which is even: it changes the value.
const CHANGING: usize = 1;
#[cfg(not(loom))]
const PAUSES: usize = 64;
const YIELDS: usize = 4096;
/// How often a thread that has one side looks for the other, before it gives up what it has.
const PATIENCE: usize = if cfg!(loom) { 1 } else { 256 };
#[cfg(not(loom))]
const NAP: Duration = Duration::from_micros(50);

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
